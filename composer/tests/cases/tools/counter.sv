// A counter with a small memory that remembers its values.
module counter (
    input  logic        clk,
    input  logic        rst,
    input  logic [ 8:0] address,
    output logic [15:0] then,
    output logic [23:0] count
);
    logic [15:0] memory[512];

    always_ff @(posedge clk) begin
        if (rst) begin
            count <= 0;
        end else begin
            count <= count + 1;
        end
    end

    always_ff @(posedge clk) begin
        memory[count[8:0]] <= count[23:8];
        then               <= memory[address];
    end
endmodule
