// One clock for benches that look at the whole design between two of its edges.
#pragma once

#include "bench.hpp"

namespace bench {

/// One cycle of 10 ns of `dut.clk`, with what the inputs are.
template <class Dut>
void cycle(Dut& dut) {
    dut.clk = 1;
    dut.eval();
    dut.clk = 0;
    dut.eval();
    now_ps += 10000;
}

}  // namespace bench
