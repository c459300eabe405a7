// Management datagrams of real connections between two Linux soft-RoCE endpoints, from captures: `rping` and `perftest`
// with -R. The words of the MAD, the first byte highest; what is left out is 0.
#pragma once

#include <array>
#include <cstdint>

namespace captured {

using Mad = std::array<uint32_t, 64>;

/// From 10.0.0.2.
inline const Mad rping_req = {
    0x01070203, 0, 0x00000002, 0xc4d43396, 0x00100000, 0, 0x9633d4c4, 0, 0, 0x01061c06, 0x505400ff, 0xfe000002, 0, 0, 0x00001101,
    0x00000001, 0x000000a0, 0xd573bca7, 0xffff37f0, 0xffffffff, 0, 0, 0x0000ffff, 0x0a000002, 0, 0, 0x0000ffff, 0x0a000001,
    0x8fcf3000, 0x00400098, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0040cd73, 0, 0, 0, 0x0a000002, 0, 0, 0, 0x0a000001};
/// From 10.0.0.1.
inline const Mad rping_rep = {
    0x01070203, 0, 0x00000002, 0xc4d43396, 0x00130000, 0, 0xe3af80dc, 0x9633d4c4, 0, 0x00001100, 0, 0x6ea5a600, 0x010178e0,
    0x505400ff, 0xfe000001};
/// From 10.0.0.2.
inline const Mad rping_rtu = {
    0x01070203, 0, 0x00000002, 0xc4d43396, 0x00140000, 0, 0x9633d4c4, 0xe3af80dc};
/// From 10.0.0.2.
inline const Mad rping_dreq = {
    0x01070203, 0, 0x00000002, 0xc4d43396, 0x00150000, 0, 0x9633d4c4, 0xe3af80dc, 0x00001100};
/// From 10.0.0.1.
inline const Mad rping_drep = {
    0x01070203, 0, 0x00000002, 0xc4d43396, 0x00160000, 0, 0xe3af80dc, 0x9633d4c4};
/// From 10.0.0.2.
inline const Mad perftest_req = {
    0x01070203, 0, 0x00000002, 0xc4d43397, 0x00100000, 0, 0x9733d4c4, 0, 0, 0x01064853, 0x505400ff, 0xfe000002, 0, 0, 0x00001600,
    0, 0x000000a0, 0x7d54eda7, 0xffff37f0, 0xffffffff, 0, 0, 0x0000ffff, 0x0a000002, 0, 0, 0x0000ffff, 0x0a000001, 0x18232000,
    0x00400098, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00408e41, 0, 0, 0, 0x0a000002, 0, 0, 0, 0x0a000001};
/// From 10.0.0.1.
inline const Mad perftest_rep = {
    0x01070203, 0, 0x00000002, 0xc4d43397, 0x00130000, 0, 0xe1af80dc, 0x9733d4c4, 0, 0x00001600, 0, 0x610d4a00, 0x000078e0,
    0x505400ff, 0xfe000001};
/// From 10.0.0.2.
inline const Mad perftest_rtu = {
    0x01070203, 0, 0x00000002, 0xc4d43397, 0x00140000, 0, 0x9733d4c4, 0xe1af80dc};
/// From 10.0.0.2.
inline const Mad perftest_req_2 = {
    0x01070203, 0, 0x00000002, 0xc4d43394, 0x00100000, 0, 0x9433d4c4, 0, 0, 0x01064853, 0x505400ff, 0xfe000002, 0, 0, 0x00001700,
    0, 0x000000a0, 0xd04345a7, 0xffff37f0, 0xffffffff, 0, 0, 0x0000ffff, 0x0a000002, 0, 0, 0x0000ffff, 0x0a000001, 0x92f4e000,
    0x00400098, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0040cda5, 0, 0, 0, 0x0a000002, 0, 0, 0, 0x0a000001};
/// From 10.0.0.1.
inline const Mad perftest_rep_2 = {
    0x01070203, 0, 0x00000002, 0xc4d43394, 0x00130000, 0, 0xe7af80dc, 0x9433d4c4, 0, 0x00001700, 0, 0x86648f00, 0x000078e0,
    0x505400ff, 0xfe000001};
/// From 10.0.0.2.
inline const Mad perftest_rtu_2 = {
    0x01070203, 0, 0x00000002, 0xc4d43394, 0x00140000, 0, 0x9433d4c4, 0xe7af80dc};

}  // namespace captured
