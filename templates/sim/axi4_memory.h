// A memory behind an AXI4 port, as a controller from elsewhere is: random pauses on every channel, a latency, and now and then
// a refresh that stops all of it. It checks the rules of AXI4 at its port and says in `fault` which of them was broken.
//
// Once per clock: `edge` gets what the master drives just before the rising edge and leaves in `out` what the memory drives after it. Answers
// come in the order of the addresses, reads and writes apart. What it leaves open is random: a read sees a write that is under way with it or
// not, and what was never written reads as anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

class Axi4Memory {
public:
    using Bytes = std::vector<uint8_t>;

    /// When it takes the data of a write: with or before the address as it comes, only after the address, or only before it.
    enum class Order { Any, AddressFirst, DataFirst };

    struct Pace {
        unsigned stall_percent = 25;                 // chance of a pause in each cycle, on each channel
        uint64_t latency = 30;                       // cycles from address to first beat and from last beat to answer: half to one and a half of it
        uint64_t pause_every = 0, pause_for = 0;     // cycles of a refresh
        Order order = Order::Any;
    };

    struct Address {
        bool valid = false;
        uint64_t at = 0;
        unsigned len = 0, id = 0;
        bool operator==(const Address& o) const { return valid == o.valid && at == o.at && len == o.len && id == o.id; }
    };
    struct Data {
        bool valid = false, last = false;
        Bytes bytes{}, strobe{};                     // strobe: bits, as on the bus
        bool operator==(const Data& o) const { return valid == o.valid && last == o.last && bytes == o.bytes && strobe == o.strobe; }
    };
    /// What the master drives.
    struct Master {
        Address ar{}, aw{};
        Data w{};
        bool rready = false, bready = false;
    };
    /// What the memory drives.
    struct Slave {
        bool arready = false, awready = false, wready = false, rvalid = false, rlast = false, bvalid = false;
        unsigned rid = 0, bid = 0;
        Bytes rdata{};
    };

    Axi4Memory(unsigned beat, uint64_t bytes, uint64_t seed) : width(beat), size(bytes), rng(seed) {}

    Pace pace{};
    Slave out{};
    std::string fault{};
    uint64_t read_beats = 0, write_beats = 0, pauses = 0;

    void edge(const Master& m) {
        ++cycle;
        held(waits.ar, m.ar, "the address of a read");
        held(waits.aw, m.aw, "the address of a write");
        held(waits.w, m.w, "the data of a write");
        take(m);
        waits = m;
        waits.ar.valid &= !out.arready;
        waits.aw.valid &= !out.awready;
        waits.w.valid &= !out.wready;
        pair();
        drive();
    }

    /// The byte at an address, for who compares.
    uint8_t& byte(uint64_t at) {
        auto found = pages.find(at / PAGE);
        if (found == pages.end()) {
            found = pages.emplace(at / PAGE, Page{}).first;
            for (auto& b : found->second) b = static_cast<uint8_t>(rng());
        }
        return found->second[at % PAGE];
    }

private:
    static constexpr uint64_t PAGE = 4096;
    /// Bursts of each direction, and beats of data, that it takes before it has to have done any.
    static constexpr size_t DEEP = 16, WORDS = 32;
    using Page = std::array<uint8_t, PAGE>;

    struct Burst {
        uint64_t at;
        unsigned beats, id;
        uint64_t due = 0;
        Bytes bytes{}, strobe{};                     // of a write, and of a read that has looked already; strobe: a byte per byte
        unsigned done = 0;
        bool kept = false;                           // a write that is in the memory
    };

    uint64_t below(uint64_t n) { return n < 2 ? 0 : rng() % n; }
    bool goes() { return !paused && below(100) >= pace.stall_percent; }
    uint64_t due() { return cycle + pace.latency / 2 + below(pace.latency + 1); }
    void wrong(std::string what) {
        if (fault.empty()) fault = std::move(what);
    }

    template <class Beat>
    void held(const Beat& was, const Beat& is, const char* what) {
        if (was.valid && !(is == was)) wrong(std::string(what) + (is.valid ? " changed" : " was taken back") + " before it was taken");
    }

    void check(const Address& a, const char* what) {
        const uint64_t first = a.at / width * width, last = first + (a.len + 1) * uint64_t(width) - 1;
        char place[48];
        std::snprintf(place, sizeof place, " of %u beats at 0x%llx", a.len + 1, static_cast<unsigned long long>(a.at));
        if (first / PAGE != last / PAGE) wrong(std::string("a ") + what + place + " crosses a boundary of 4096 bytes");
        if (last >= size) wrong(std::string("a ") + what + place + " is outside of the memory");
    }

    void take(const Master& m) {
        if (out.rvalid && m.rready) {
            out.rvalid = false;
            ++read_beats;
            if (++reads.front().done == reads.front().beats) reads.pop_front();
        }
        if (out.bvalid && m.bready) out.bvalid = false, answers.pop_front();
        if (m.ar.valid && out.arready) {
            check(m.ar, "read");
            reads.push_back({m.ar.at / width * width, m.ar.len + 1, m.ar.id, due()});
            if (below(2)) look(reads.back());
        }
        if (m.aw.valid && out.awready) {
            check(m.aw, "write");
            writes.push_back({m.aw.at / width * width, m.aw.len + 1, m.aw.id});
        }
        if (m.w.valid && out.wready) {
            words.push_back(m.w);
            whole += m.w.last;
            ++write_beats;
        }
    }

    /// Data and addresses of writes, in their orders.
    void pair() {
        while (!writes.empty() && !words.empty()) {
            Burst& b = writes.front();
            const Data& w = words.front();
            for (unsigned i = 0; i < width; ++i) {
                b.bytes.push_back(w.bytes[i]);
                b.strobe.push_back(w.strobe[i / 8] >> (i % 8) & 1);
            }
            if (w.last != (++b.done == b.beats)) wrong("the last beat of a write is not where its address says");
            whole -= w.last;
            words.pop_front();
            if (b.done < b.beats) continue;
            b.due = due();
            answers.push_back(std::move(b));
            writes.pop_front();
            if (below(2)) keep(answers.size());
        }
    }

    /// The first `n` writes that wait for their answers are in the memory from now on.
    void keep(size_t n) {
        for (size_t k = 0; k < n; ++k) {
            Burst& b = answers[k];
            if (b.kept) continue;
            b.kept = true;
            for (size_t i = 0; i < b.bytes.size(); ++i)
                if (b.strobe[i]) byte(b.at + i) = b.bytes[i];
        }
    }

    void look(Burst& b) {
        b.bytes.resize(size_t(b.beats) * width);
        for (size_t i = 0; i < b.bytes.size(); ++i) b.bytes[i] = byte(b.at + i);
    }

    void drive() {
        const bool was = paused;
        paused = pace.pause_every && cycle % pace.pause_every < pace.pause_for;
        pauses += paused && !was;
        out.arready = reads.size() < DEEP && goes();
        out.awready = writes.size() + answers.size() < DEEP && (pace.order != Order::DataFirst || whole) && goes();
        const bool room = pace.order == Order::AddressFirst ? words.empty() && !writes.empty() : pace.order == Order::DataFirst ? !whole : words.size() < WORDS;
        out.wready = room && goes();
        if (!out.rvalid && !reads.empty() && reads.front().due <= cycle && goes()) {
            Burst& b = reads.front();
            if (b.bytes.empty()) look(b);
            out.rvalid = true;
            out.rlast = b.done + 1 == b.beats;
            out.rid = b.id;
            const auto from = b.bytes.begin() + static_cast<std::ptrdiff_t>(size_t(b.done) * width);
            out.rdata.assign(from, from + width);
        }
        if (!out.bvalid && !answers.empty() && answers.front().due <= cycle && goes()) {
            keep(1);
            out.bvalid = true;
            out.bid = answers.front().id;
        }
    }

    unsigned width;
    uint64_t size;
    std::mt19937_64 rng;
    uint64_t cycle = 0;
    bool paused = false;
    Master waits{};                                  // what was not taken at the last edge
    std::deque<Burst> reads{}, writes{}, answers{};
    std::deque<Data> words{};
    unsigned whole = 0;                              // bursts all of whose data wait for an address
    std::unordered_map<uint64_t, Page> pages{};
};
