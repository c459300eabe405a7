// Capture files as wires. Only the classic format: its records are all that a wire needs.
#include <cerrno>
#include <cstdio>

#include "wire.h"

namespace {
constexpr uint32_t MICRO = 0xa1b2c3d4u, NANO = 0xa1b23c4du, PCAPNG = 0x0a0d0d0au;
constexpr uint32_t ETHERNET = 1;

uint32_t swap(uint32_t v) { return __builtin_bswap32(v); }

class Reader {
public:
    explicit Reader(const std::string& p) : path(p) {
        file = std::fopen(path.c_str(), "rb");
        if (!file) throw Fatal{"GW0713", "cannot read `" + path + "`: " + std::strerror(errno), ""};
        uint32_t h[6];
        read(h, sizeof h, "the file header");
        if (h[0] == PCAPNG)
            throw Fatal{"GW0713", "`" + path + "` is a pcapng file", "convert it: tshark -F nsecpcap -r IN -w OUT, or editcap -F nsecpcap IN OUT"};
        if (h[0] == swap(MICRO) || h[0] == swap(NANO)) swapped = true;
        uint32_t magic = word(h[0]);
        if (magic != MICRO && magic != NANO) {
            char s[16];
            std::snprintf(s, sizeof s, "0x%08x", h[0]);
            throw Fatal{"GW0713", "`" + path + "` is no pcap file: it starts with " + s, "a1b2c3d4 or a1b23c4d, in either byte order"};
        }
        unit = magic == NANO ? 1000000ull : 1000000000ull;
        uint32_t link = word(h[5]);
        if ((link & 0xffff) != ETHERNET)
            throw Fatal{"GW0713", "`" + path + "` has link type " + std::to_string(link & 0xffff), "only Ethernet (1) goes on a wire"};
        // Bit 26: the length of the FCS, in 16-bit words, is in bits 31:28.
        fcs_bytes = link & 1u << 26 ? (link >> 28) * 2 : 0;
        if (fcs_bytes != 0 && fcs_bytes != 4)
            throw Fatal{"GW0713", "`" + path + "` declares an FCS of " + std::to_string(fcs_bytes) + " bytes", "Ethernet's has 4"};
    }
    ~Reader() {
        if (file) std::fclose(file);
    }
    bool next(Frame& into) {
        if (!file) return false;
        long at = offset;
        uint32_t h[4];
        size_t n = std::fread(h, 1, sizeof h, file);
        if (n == 0 && std::feof(file)) {
            std::fclose(file);
            file = nullptr;
            return false;
        }
        offset += static_cast<long>(n);
        if (n < sizeof h) cut("a record header");
        uint32_t length = word(h[2]);
        if (length > 262144)
            throw Fatal{"GW0713", "`" + path + "`: the record at offset " + std::to_string(at) + " claims " + std::to_string(length) + " bytes", "at most 262144 are possible"};
        if (length < word(h[3]))
            throw Fatal{"GW0713", "`" + path + "`: the record at offset " + std::to_string(at) + " has " + std::to_string(length) + " of the frame's " + std::to_string(word(h[3])) + " bytes", "capture with a snapshot length of 0"};
        into = Frame{};
        into.bytes.resize(length);
        if (length) read(into.bytes.data(), length, "a frame");
        Time stamp = 0;
        // Only differences count: time stamps are decades, simulated time lasts five hours.
        uint64_t seconds = word(h[0]), part = word(h[1]);
        if (first) {
            base_seconds = seconds;
            base_part = part;
            first = false;
        }
        int64_t s = static_cast<int64_t>(seconds) - static_cast<int64_t>(base_seconds);
        int64_t p = static_cast<int64_t>(part) - static_cast<int64_t>(base_part);
        if (s > 18000)
            throw Fatal{"GW0713", "`" + path + "`: the record at offset " + std::to_string(at) + " is " + std::to_string(s) + " s after the first", "a simulation lasts five hours at most"};
        if (s >= 0) {
            int64_t d = p * static_cast<int64_t>(unit);
            stamp = static_cast<Time>(s) * 1000000000000000ull;
            stamp = d < 0 && static_cast<Time>(-d) > stamp ? 0 : stamp + static_cast<Time>(d);
        }
        into.not_before = stamp;
        if (fcs_bytes == 0) pad_and_seal(into.bytes);
        return true;
    }

private:
    uint32_t word(uint32_t v) const { return swapped ? swap(v) : v; }
    void read(void* to, size_t n, const char* what) {
        size_t got = std::fread(to, 1, n, file);
        offset += static_cast<long>(got);
        if (got != n) cut(what);
    }
    [[noreturn]] void cut(const char* what) {
        throw Fatal{"GW0713", "`" + path + "` ends at offset " + std::to_string(offset) + " in the middle of " + what, "the file was cut short; capture it again"};
    }
    std::string path;
    FILE* file = nullptr;
    long offset = 0;
    bool swapped = false, first = true;
    Time unit = 1;
    unsigned fcs_bytes = 0;
    uint64_t base_seconds = 0, base_part = 0;
};

/// Nanosecond pcap without FCS; the time stamp is the first preamble bit's.
class Writer {
public:
    explicit Writer(const std::string& p) : path(p) {
        file = std::fopen(path.c_str(), "wb");
        if (!file) throw Fatal{"GW0713", "cannot write `" + path + "`: " + std::strerror(errno), ""};
        uint32_t magic = NANO, zero = 0, snap = 262144, link = ETHERNET;
        uint16_t version[2] = {2, 4};
        put(&magic, 4), put(version, 4), put(&zero, 4), put(&zero, 4), put(&snap, 4), put(&link, 4);
    }
    ~Writer() {
        if (file) std::fclose(file);
    }
    void frame(const std::vector<uint8_t>& b, Time start) {
        uint64_t ns = start / 1000000u;
        uint32_t h[4] = {static_cast<uint32_t>(ns / 1000000000u), static_cast<uint32_t>(ns % 1000000000u), static_cast<uint32_t>(b.size()),
                         static_cast<uint32_t>(b.size())};
        put(h, sizeof h);
        put(b.data(), b.size());
    }
    void close() {
        bool bad = file && std::fclose(file) != 0;
        file = nullptr;
        if (bad) throw Fatal{"GW0713", "cannot write `" + path + "`: " + std::strerror(errno), ""};
    }

private:
    void put(const void* from, size_t n) {
        if (n && std::fwrite(from, 1, n, file) != n) throw Fatal{"GW0713", "cannot write `" + path + "`: " + std::strerror(errno), ""};
    }
    std::string path;
    FILE* file;
};

class Pcap final : public Wire {
public:
    Pcap(const std::string& in, const std::string& out) {
        if (!in.empty()) reader = std::make_unique<Reader>(in);
        if (!out.empty()) writer = std::make_unique<Writer>(out);
    }
    bool receive(Frame& into) override {
        if (over || !reader) return false;
        if (!reader->next(into)) {
            over = true;
            return false;
        }
        return true;
    }
    bool send(const Sent& s) override {
        if (!s.good) return false;
        if (writer) writer->frame(s.bytes, s.start);
        return true;
    }
    bool ended() const override { return over || !reader; }
    void close() override {
        if (writer) writer->close();
    }

private:
    std::unique_ptr<Reader> reader;
    std::unique_ptr<Writer> writer;
    bool over = false;
};

/// The composer's expansion of a pattern file. Records, little endian: u32 length of the frame, u32 repetitions,
/// u64 earliest time (fs), u32 preamble bytes, u32 gap bytes, i64 byte with rx_er, u8 SFD, 3 bytes 0, then the bytes.
class Pattern final : public Wire {
public:
    Pattern(const std::string& events, const std::string& out) {
        file = std::fopen(events.c_str(), "rb");
        if (!file) throw Fatal{"GW0713", "cannot read `" + events + "`: " + std::strerror(errno), ""};
        if (!out.empty()) writer = std::make_unique<Writer>(out);
    }
    ~Pattern() override {
        if (file) std::fclose(file);
    }
    bool receive(Frame& into) override {
        if (left == 0 && !load()) return false;
        left--;
        into = current;
        return true;
    }
    bool send(const Sent& s) override {
        if (s.good && writer) writer->frame(s.bytes, s.start);
        return s.good;
    }
    bool ended() const override { return over; }
    void close() override {
        if (writer) writer->close();
    }

private:
    bool load() {
        uint8_t h[36];
        if (over || std::fread(h, 1, sizeof h, file) != sizeof h) {
            over = true;
            return false;
        }
        uint32_t length, preamble, gap;
        std::memcpy(&length, h, 4), std::memcpy(&left, h + 4, 4);
        current = Frame{};
        std::memcpy(&current.not_before, h + 8, 8);
        std::memcpy(&preamble, h + 16, 4), std::memcpy(&gap, h + 20, 4), std::memcpy(&current.error_at, h + 24, 8);
        current.preamble = preamble, current.gap = gap, current.sfd = h[32];
        current.bytes.resize(length);
        if (length && std::fread(current.bytes.data(), 1, length, file) != length) {
            over = true;
            return false;
        }
        return left > 0 || load();
    }
    FILE* file;
    std::unique_ptr<Writer> writer;
    Frame current;
    uint32_t left = 0;
    bool over = false;
};
}  // namespace

std::unique_ptr<Wire> open_pcap(const std::string& in, const std::string& out) { return std::make_unique<Pcap>(in, out); }
std::unique_ptr<Wire> open_pattern(const std::string& e, const std::string& out) { return std::make_unique<Pattern>(e, out); }
