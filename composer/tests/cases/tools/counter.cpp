// Counts to 100; with a trace, writes it to the file that is the first argument.
#include <cstdio>

#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif

int main(int argc, char** argv) {
    VerilatedContext context;
    context.commandArgs(argc, argv);
    Vtop top{&context};
#if VM_TRACE_FST
    context.traceEverOn(true);
    VerilatedFstC trace;
    top.trace(&trace, 99);
    trace.open(argv[1]);
#endif
    top.address = 0;
    for (int cycle = 0; cycle <= 100; ++cycle) {
        top.rst = cycle == 0;
        for (int level = 0; level < 2; ++level) {
            top.clk = level;
            top.eval();
            context.timeInc(1);
#if VM_TRACE_FST
            trace.dump(context.time());
#endif
        }
    }
    std::printf("count %u\n", top.count);
    top.final();
#if VM_TRACE_FST
    trace.close();
#endif
    return 0;
}
