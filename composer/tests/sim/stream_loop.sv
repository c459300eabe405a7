// Sends every good frame back as it came; drops the others. A beat counter in a second domain shows that other clocks run.
module stream_loop #(
    parameter int W = 64
) (
    input  logic           clk_other,
    input  logic           button,
    input  logic           eth0_clk,
    input  logic [W-1:0]   eth0_rx_tdata,
    input  logic [W/8-1:0] eth0_rx_tkeep,
    input  logic           eth0_rx_tlast,
    input  logic           eth0_rx_terr,
    input  logic           eth0_rx_tvalid,
    output logic [W-1:0]   eth0_tx_tdata,
    output logic [W/8-1:0] eth0_tx_tkeep,
    output logic           eth0_tx_tlast,
    output logic           eth0_tx_terr,
    output logic           eth0_tx_tvalid,
    input  logic           eth0_tx_tready
);
    localparam int A = 12;
    logic [W+W/8:0] mem [2**A];
    logic [A-1:0] write, commit, read;
    logic [7:0] other /* verilator public */;

    always_ff @(posedge clk_other) other <= other + 1;

    assign {eth0_tx_tlast, eth0_tx_tkeep, eth0_tx_tdata} = mem[read];
    assign eth0_tx_tvalid = read != commit;
    assign eth0_tx_terr   = 1'b0;

    always_ff @(posedge eth0_clk) begin
        if (eth0_rx_tvalid) mem[write] <= {eth0_rx_tlast, eth0_rx_tkeep, eth0_rx_tdata};
        if (!button) begin
            write  <= 0;
            commit <= 0;
            read   <= 0;
        end else begin
            if (eth0_rx_tvalid) begin
                write <= eth0_rx_tlast && eth0_rx_terr ? commit : write + 1;
                if (eth0_rx_tlast && !eth0_rx_terr) commit <= write + 1;
            end
            if (eth0_tx_tvalid && eth0_tx_tready) read <= read + 1;
        end
    end
endmodule
