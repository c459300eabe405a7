// The black box behind io::hard_mac_10g, for lint and for Yosys. In Vivado a wrapper of the same
// name around "10G/25G Ethernet Subsystem (xxv_ethernet)" takes its place.
//
// A black box has no inside: its inputs go nowhere and its outputs come from nowhere.
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
(* blackbox *)
module hard_mac_10g_ip (
    input  logic         init_clk,
    input  logic         sys_reset,
    input  logic         gt_ref_clk_p,
    input  logic         gt_ref_clk_n,
    input  logic [0:0]   gt_rxp_in,
    input  logic [0:0]   gt_rxn_in,
    output logic [0:0]   gt_txp_out,
    output logic [0:0]   gt_txn_out,
    output logic         user_clk,
    output logic         user_reset,
    output logic [63:0] rx_axis_tdata,
    output logic [7:0]  rx_axis_tkeep,
    output logic         rx_axis_tlast,
    output logic         rx_axis_tuser,
    output logic         rx_axis_tvalid,
    input  logic [63:0] tx_axis_tdata,
    input  logic [7:0]  tx_axis_tkeep,
    input  logic         tx_axis_tlast,
    input  logic         tx_axis_tuser,
    input  logic         tx_axis_tvalid,
    output logic         tx_axis_tready
);
endmodule
/* verilator lint_on UNDRIVEN */
/* verilator lint_on UNUSEDSIGNAL */
