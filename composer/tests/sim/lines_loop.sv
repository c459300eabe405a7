// Sends back what comes in, symbol by symbol: RGMII with behavioural double data rate cells, GMII, MII, a serial line.
module lines_loop (
    input  logic       eth0_rx_clk,
    input  logic       eth0_rx_ctl,
    input  logic [3:0] eth0_rx_data,
    output logic       eth0_tx_clk,
    output logic       eth0_tx_ctl,
    output logic [3:0] eth0_tx_data,

    input  logic       eth1_rx_clk,
    input  logic       eth1_rx_dv,
    input  logic       eth1_rx_er,
    input  logic [7:0] eth1_rx_data,
    output logic       eth1_gtx_clk,
    output logic       eth1_tx_en,
    output logic       eth1_tx_er,
    output logic [7:0] eth1_tx_data,

    input  logic       eth2_rx_clk,
    input  logic       eth2_rx_dv,
    input  logic       eth2_rx_er,
    input  logic [3:0] eth2_rx_data,
    input  logic       eth2_tx_clk,
    output logic       eth2_tx_en,
    output logic [3:0] eth2_tx_data,

    input  logic       serial0_rx,
    output logic       serial0_tx,
    output logic [3:0] leds_led
);
    // Status between frames is not sent back: a transmitter's idle is zeros.
    logic [4:0] rise, fall, out_rise, out_fall;
    always_ff @(posedge eth0_rx_clk) rise <= {eth0_rx_ctl, eth0_rx_data};
    always_ff @(negedge eth0_rx_clk) fall <= {eth0_rx_ctl, eth0_rx_data};
    always_ff @(posedge eth0_rx_clk) begin
        out_rise <= rise[4] ? rise : 5'd0;
        out_fall <= rise[4] ? fall : 5'd0;
    end
    assign {eth0_tx_ctl, eth0_tx_data} = eth0_rx_clk ? out_rise : out_fall;
    assign eth0_tx_clk = eth0_rx_clk;

    assign eth1_gtx_clk = eth1_rx_clk;
    always_ff @(posedge eth1_rx_clk) {eth1_tx_en, eth1_tx_er, eth1_tx_data} <= {eth1_rx_dv, eth1_rx_er, eth1_rx_data};

    logic [5:0] mii;
    always_ff @(posedge eth2_rx_clk) mii <= {eth2_rx_dv, eth2_rx_er, eth2_rx_data};
    always_ff @(posedge eth2_tx_clk) {eth2_tx_en, eth2_tx_data} <= {mii[5], mii[3:0]};

    always_ff @(posedge eth1_rx_clk) serial0_tx <= serial0_rx;
    assign leds_led = 4'b0101;
endmodule
