// Black boxes of the primitives that Yosys' `xilinx/cells_xtra.v` leaves out: it has them as models, in a file that is not SystemVerilog.
// Ports as in AMD's libraries guide (UG953, UG974).
(* blackbox *)
module BUFG (
    input  I,
    output O
);
endmodule

(* blackbox *)
module IOBUF (
    input  I,
    input  T,
    output O,
    inout  IO
);
endmodule
