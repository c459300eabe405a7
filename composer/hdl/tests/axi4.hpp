// An AXI4 client for benches of memories: bursts under way in both directions, every byte checked against what was written.
//
// The top has the ports of `kinds::axi4` under their own names. Reads and writes that are under way together have no order: a read
// byte is right if it is any value that the byte may have had between the address and the beat.
#pragma once

#include <map>

#include "bench.hpp"

namespace axi4 {

using bench::below;
using bench::chance;

/// The values that the bytes of a memory may have.
class History {
    struct Value {
        uint8_t value;
        uint64_t from, sure;  // when it may be seen first, and from when on nothing older may be
    };
    std::map<uint64_t, std::vector<Value>> bytes;

public:
    /// A write is offered.
    void offer(uint64_t address, uint8_t value, uint64_t now) { bytes[address].push_back({value, now, UINT64_MAX}); }

    /// The oldest write of this byte that had no answer has one; `oldest` is when the oldest read under way was asked.
    void done(uint64_t address, uint64_t now, uint64_t oldest) {
        auto& list = bytes[address];
        for (auto& v : list)
            if (v.sure == UINT64_MAX) {
                v.sure = now;
                break;
            }
        while (list.size() > 1 && list[1].sure < oldest) list.erase(list.begin());
    }

    /// Whether a byte may be `value` for a read that was asked at `asked` and is answered now.
    bool may_be(uint64_t address, uint8_t value, uint64_t asked) const {
        auto found = bytes.find(address);
        if (found == bytes.end() || found->second[0].sure >= asked) return true;  // never written
        const auto& list = found->second;
        for (size_t i = 0; i < list.size(); ++i)
            if (list[i].value == value && (i + 1 == list.size() || list[i + 1].sure >= asked)) return true;
        return false;
    }

    bool written(uint64_t address) const { return bytes.count(address) != 0; }

    /// What a byte is when nothing is under way; 0 where nothing was written.
    uint8_t at(uint64_t address) const {
        auto found = bytes.find(address);
        return found == bytes.end() ? 0 : found->second.back().value;
    }
};

struct Burst {
    uint64_t address;
    unsigned beats;
    bool refused;                      // outside of the memory
    unsigned id = 0;
    uint64_t asked = 0;                // cycle in which the address was offered
    std::vector<uint8_t> data, strobe; // a member per byte
};

/// One client; `sample` just before the clock edge, `drive` after it.
template <class Dut>
struct Client {
    Dut& d;
    unsigned bytes;            // per beat
    unsigned id_max = 2;       // ids are below
    unsigned read_percent = 100, write_percent = 100, take_percent = 100;
    unsigned under_way = 8;    // bursts of each direction
    History history{};
    std::deque<Burst> to_read{}, to_write{};        // not offered yet
    std::deque<Burst> reading{}, writing{}, data{}; // offered; `data` are writes whose beats are not all taken
    uint64_t cycle = 0, reads = 0, writes = 0, read_beats = 0, write_beats = 0, refused_reads = 0, refused_writes = 0;
    uint64_t read_longest = 0, write_longest = 0;   // cycles from address to first beat, to answer
    uint64_t read_first = 0, read_last = 0;         // cycles of the first and the last beat
    unsigned got = 0, sent = 0;
    bool ar = false, aw = false, w = false;

    void reset() { d.arvalid = d.awvalid = d.wvalid = d.rready = d.bready = 0; }

    bool idle() const { return to_read.empty() && to_write.empty() && reading.empty() && writing.empty() && data.empty(); }

    void read(uint64_t address, unsigned beats, bool refused = false) { to_read.push_back({address, beats, refused, unsigned(below(id_max))}); }

    /// Random bytes, all of them or `percent` of them.
    void write(uint64_t address, unsigned beats, unsigned percent = 100, bool refused = false) {
        Burst b{address, beats, refused, unsigned(below(id_max))};
        b.data = bench::random_bytes(size_t(beats) * bytes);
        for (size_t i = 0; i < b.data.size(); ++i) b.strobe.push_back(chance(percent));
        to_write.push_back(std::move(b));
    }

    void sample() {
        ++cycle;
        if (d.arvalid && d.arready) ar = false;
        if (d.awvalid && d.awready) aw = false;
        if (d.wvalid && d.wready) {
            w = false;
            ++write_beats;
            if (++sent == data.front().beats) {
                data.pop_front();
                sent = 0;
            }
        }
        if (d.rvalid) CHECK(!reading.empty(), "data that nobody asked for");
        if (d.rvalid && d.rready && !reading.empty()) {
            Burst& b = reading.front();
            if (got == 0) read_longest = std::max(read_longest, cycle - b.asked);
            if (!read_first) read_first = cycle;
            read_last = cycle;
            CHECK(d.rid == b.id, "read of %llx: id %u, not %u", (unsigned long long)b.address, unsigned(d.rid), b.id);
            CHECK(d.rresp == (b.refused ? 3 : 0), "read of %llx: response %u", (unsigned long long)b.address, unsigned(d.rresp));
            for (unsigned i = 0; i < bytes; ++i) {
                const uint64_t at = b.address + uint64_t(got) * bytes + i;
                const uint8_t value = bench::get_byte(d.rdata, i);
                if (b.refused) CHECK(value == 0, "read of %llx outside: %02x", (unsigned long long)at, value);
                else CHECK(history.may_be(at, value, b.asked), "byte %llx is %02x, not %02x", (unsigned long long)at, value, history.at(at));
            }
            ++got;
            ++read_beats;
            CHECK(d.rlast == (got == b.beats), "last on beat %u of %u", got, b.beats);
            if (got == b.beats) {
                refused_reads += b.refused;
                reading.pop_front();
                got = 0;
                ++reads;
            }
        }
        if (d.bvalid) CHECK(writing.size() > data.size(), "an answer before the data");
        if (d.bvalid && d.bready && !writing.empty()) {
            Burst& b = writing.front();
            write_longest = std::max(write_longest, cycle - b.asked);
            CHECK(d.bid == b.id, "write of %llx: id %u, not %u", (unsigned long long)b.address, unsigned(d.bid), b.id);
            CHECK(d.bresp == (b.refused ? 3 : 0), "write of %llx: response %u", (unsigned long long)b.address, unsigned(d.bresp));
            const uint64_t oldest = reading.empty() ? cycle : reading.front().asked;
            for (size_t i = 0; !b.refused && i < b.data.size(); ++i)
                if (b.strobe[i]) history.done(b.address + i, cycle, oldest);
            refused_writes += b.refused;
            writing.pop_front();
            ++writes;
        }
    }

    void drive() {
        if (!ar && !to_read.empty() && reading.size() < under_way && chance(read_percent)) {
            ar = true;
            reading.push_back(to_read.front());
            to_read.pop_front();
            reading.back().asked = cycle;
            d.araddr = reading.back().address;
            d.arlen = reading.back().beats - 1;
            d.arid = reading.back().id;
        }
        d.arvalid = ar;
        if (!aw && !to_write.empty() && writing.size() < under_way && chance(write_percent)) {
            aw = true;
            Burst b = to_write.front();
            to_write.pop_front();
            b.asked = cycle;
            d.awaddr = b.address;
            d.awlen = b.beats - 1;
            d.awid = b.id;
            for (size_t i = 0; !b.refused && i < b.data.size(); ++i)
                if (b.strobe[i]) history.offer(b.address + i, b.data[i], cycle);
            writing.push_back(b);
            data.push_back(std::move(b));
        }
        d.awvalid = aw;
        if (!w && !data.empty() && chance(write_percent)) {
            w = true;
            const Burst& b = data.front();
            for (unsigned i = 0; i < bytes; ++i) {
                const size_t at = size_t(sent) * bytes + i;
                bench::set_byte(d.wdata, i, b.strobe[at] ? b.data[at] : uint8_t(bench::rng()));
                const uint8_t old = bench::get_byte(d.wstrb, i / 8);
                bench::set_byte(d.wstrb, i / 8, uint8_t((old & ~(1u << i % 8)) | (b.strobe[at] << i % 8)));
            }
            d.wlast = sent + 1 == b.beats;
        }
        d.wvalid = w;
        d.rready = chance(take_percent);
        d.bready = chance(take_percent);
    }
};

template <class Dut>
Client<Dut> client(Dut& d, unsigned bytes) { return {d, bytes}; }

}  // namespace axi4
