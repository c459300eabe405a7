// I/O cells of the ECP5: PLL, DDR registers and delays in both directions, two clocks.
module io_test (
    input  logic clk25,
    input  logic rx_clk,
    input  logic rx_d,
    output logic tx_clk,
    output logic tx_d,
    output logic led
);
    logic sys;
    logic lock;
    logic delayed;
    logic rising;
    logic falling;
    logic early;
    logic [1:0] pair;
    logic [7:0] sum;
    logic [1:0] synced;
    logic [25:0] count;

    EHXPLLL #(
        .CLKI_DIV(1), .CLKFB_DIV(3), .CLKOP_DIV(8), .CLKOP_ENABLE("ENABLED"), .FEEDBK_PATH("CLKOP")
    ) pll (
        .CLKI(clk25), .CLKFB(sys), .CLKOP(sys), .LOCK(lock), .RST(1'b0), .STDBY(1'b0), .ENCLKOP(1'b1)
    );

    DELAYF #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(80)) delay_in (
        .A(rx_d), .Z(delayed), .LOADN(1'b1), .MOVE(1'b0), .DIRECTION(1'b0)
    );
    IDDRX1F ddr_in (.D(delayed), .SCLK(rx_clk), .RST(1'b0), .Q0(rising), .Q1(falling));

    always_ff @(posedge rx_clk) begin
        pair <= {rising, falling};
        sum  <= sum + 8'(pair);
    end

    always_ff @(posedge sys) begin
        synced <= {synced[0], sum[7]};
        count  <= count + 26'(synced[1]);
    end

    ODDRX1F ddr_out (.D0(synced[1]), .D1(count[25]), .SCLK(sys), .RST(1'b0), .Q(early));
    DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(21)) delay_out (.A(early), .Z(tx_d));
    ODDRX1F ddr_clock (.D0(1'b1), .D1(1'b0), .SCLK(sys), .RST(1'b0), .Q(tx_clk));

    assign led = count[25] ^ lock;
endmodule
