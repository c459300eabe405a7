// Primitives of the ECP5 that Yosys maps but does not declare (`ecp5/cells_bb.v` has the others).

(* blackbox *)
module IFS1P3DX (
    input  CD,
    input  D,
    input  SP,
    input  SCLK,
    output Q
);
endmodule

(* blackbox *)
module OFS1P3DX (
    input  CD,
    input  D,
    input  SP,
    input  SCLK,
    output Q
);
endmodule

(* blackbox *)
module BB (
    input  I,
    input  T,
    output O,
    inout  B
);
endmodule
