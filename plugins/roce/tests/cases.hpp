// Single packets to `bench_engine`, and what is to come of them.
#pragma once
#include "engine.hpp"

using namespace roce;
using D = Driver<Vdut>;

constexpr uint32_t QPN = 0x100, PEER = 0x777;
inline std::array<uint32_t, 7> reth(uint64_t va, uint32_t key, uint32_t length, uint32_t imm = 0) {
    return {uint32_t(va >> 32), uint32_t(va), key, length, imm, 0, 0};
}

// One packet, and the jobs it makes.
inline std::vector<Unit> give(D& t, uint8_t opcode, uint32_t psn, bool ackreq, std::array<uint32_t, 7> ext, Bytes data) {
    t.jobs.clear();
    t.taken.clear();
    t.packet(opcode, QPN, psn, ackreq, ext, std::move(data));
    t.quiet();
    return {t.jobs.begin(), t.jobs.end()};
}
#define EXPECT_ACK(list, want_psn, want_syn)                                                                                                        \
    do {                                                                                                                                            \
        auto l_ = list;                                                                                                                             \
        CHECK(l_.size() == 1 && l_[0].opcode == ACK && l_[0].psn == ((want_psn) & 0xffffff) && l_[0].syndrome() == (want_syn) && l_[0].dqpn == PEER, \
              "%zu jobs, opcode %x psn %x syndrome %x", l_.size(), l_.empty() ? 0 : l_[0].opcode, l_.empty() ? 0 : l_[0].psn, l_.empty() ? 0 : l_[0].syndrome()); \
    } while (0)
#define EXPECT_NOTHING(list)                                                              \
    do {                                                                                  \
        auto l_ = list;                                                                   \
        CHECK(l_.empty(), "opcode %x psn %x", l_[0].opcode, l_[0].psn);                   \
        CHECK(t.taken.size() == 1 && t.taken[0].action == 0, "not dropped");              \
    } while (0)
