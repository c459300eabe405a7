// top: gw::bench_keep_code
// param: B = 1, 2, 4, 8, 32, 64
//
// Every legal pair of `tkeep` and `tlast` has a code of its own, as its description says, and comes back from it.
#include "bench.hpp"

using namespace bench;

int main(int argc, char** argv) {
    begin(argc, argv);
    Vdut d;
    constexpr unsigned TOP = B < 4 ? 2 : B == 4 ? 4 : B == 8 ? 8 : B == 32 ? 32 : 64;  // the bit L of the code
    auto pair = [&](unsigned bytes, bool last, unsigned want) {
        const uint64_t keep = bytes == 64 ? ~0ull : (1ull << bytes) - 1;
        d.keep = keep;
        d.last = last;
        d.eval();
        CHECK(d.code == want, "%u bytes, last %d: code %x, not %x", bytes, last, d.code, want);
        CHECK(static_cast<uint64_t>(d.out_keep) == keep && d.out_last == last, "%u bytes, last %d came back as %llx, %d", bytes, last, (unsigned long long)d.out_keep, d.out_last);
    };
    pair(B, false, 0);
    pair(0, true, 1);
    for (unsigned n = 1; n <= B; n++) pair(n, true, TOP + n - 1);
    ok("every pair");
    return end();
}
