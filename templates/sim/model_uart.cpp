// Class `uart`: the far side of a serial line (8 data bits, no parity, one stop bit), its bytes on a stream socket.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "model.h"

namespace {
class Uart final : public Model {
public:
    Uart(Design& d, const ResourceConfig& r)
        : rx(pin_of(d, r, "rx")), tx(pin_of(d, r, "tx")), bit(1000000000000000ull / static_cast<Time>(r.fact("baud", 115200))), path(r.regs), asks(r.asks.begin(), r.asks.end()) {
        rx.set(1);
        if (!path.empty()) listen_at();
    }
    ~Uart() override { close(); }

    Time next() const override { return std::min({send_at, sample_at, poll_at, give_up_at}); }
    void before(Time now) override {
        if (now == sample_at) sample(now);
        if (now == poll_at) {
            exchange();
            poll_at = now + 2 * bit;
            if (send_at == NEVER && !inward.empty()) send_at = now + bit;
        }
        if (now == send_at) step(now);
        if (now == give_up_at) {
            asks.clear();
            give_up_at = NEVER;
        }
    }
    bool watches() const override { return true; }
    void watch(Time now) override {
        bool level = tx.get() & 1;
        if (!level && was && sample_at == NEVER && running) {
            sample_at = now + bit / 2;
            bits = 0;
        }
        was = level;
    }
    void start(Time now) override {
        running = true;
        was = tx.get() & 1;
        if (!path.empty()) poll_at = now + bit;
    }
    bool real_time() const override { return !path.empty(); }
    /// A client that has gone, or a bus that was not asked for, does not hold the run.
    bool idle() const override { return path.empty() || (served && client < 0); }
    void finish(Time now) override {
        if (!asks.empty()) ask(now);
    }
    bool finished() const override { return asks.empty(); }
    std::vector<uint8_t> heard() const override { return answers; }
    void close() override {
        if (client >= 0) ::close(client);
        if (server >= 0) {
            ::close(server);
            unlink(path.c_str());
        }
        client = server = -1;
    }

private:
    void listen_at() {
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        if (path.size() >= sizeof a.sun_path) throw Fatal{"GW0711", "socket path `" + path + "` is too long", "107 bytes are possible"};
        std::memcpy(a.sun_path, path.c_str(), path.size());
        struct stat st;
        if (lstat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode)) {
            int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            bool dead = connect(probe, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 && errno == ECONNREFUSED;
            ::close(probe);
            if (dead) unlink(path.c_str());
        }
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || listen(fd, 1) != 0) {
            std::string why = std::strerror(errno);
            if (fd >= 0) ::close(fd);
            throw Fatal{"GW0711", "cannot serve registers at `" + path + "`: " + why, "its folder must exist, and nobody may use the socket"};
        }
        server = fd;
    }
    /// Bytes from the client, as many as the line's buffer takes, and those for it.
    void exchange() {
        if (client < 0) {
            client = accept4(server, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (client < 0) return;
            served = true;
        }
        while (!outward.empty()) {
            uint8_t b = outward.front();
            ssize_t n = send(client, &b, 1, MSG_NOSIGNAL);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
            if (n < 0) return drop();
            outward.pop_front();
        }
        if (inward.size() >= 64) return;
        uint8_t buffer[64];
        ssize_t n = recv(client, buffer, sizeof buffer, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return drop();
        if (n > 0) inward.insert(inward.end(), buffer, buffer + n);
    }
    void drop() {
        ::close(client);
        client = -1;
        outward.clear();
    }
    /// The next of the asks goes on the line.
    void ask(Time now) {
        inward.insert(inward.end(), asks.front().bytes.begin(), asks.front().bytes.end());
        missing = asks.front().answer;
        send_at = now + bit;
        give_up_at = now + (10 * inward.size() + PATIENCE) * bit;
    }
    void answered(Time now) {
        answers.push_back(byte);
        give_up_at = now + PATIENCE * bit;
        if (--missing > 0) return;
        asks.pop_front();
        give_up_at = NEVER;
        if (!asks.empty()) ask(now);
    }
    /// Next bit towards the design: start, eight data bits from bit 0, stop.
    void step(Time now) {
        if (phase == 0) {
            if (inward.empty()) {
                send_at = NEVER;
                return;
            }
            rx.set(0);
        } else {
            rx.set(phase <= 8 ? inward.front() >> (phase - 1) & 1 : 1);
        }
        if (++phase == 10) {
            phase = 0;
            inward.pop_front();
        }
        send_at = now + bit;
    }
    /// In the middle of a bit from the design.
    void sample(Time now) {
        bool level = tx.get() & 1;
        if (bits == 0 && level) {
            sample_at = NEVER;  // a spike, no start bit
            return;
        }
        if (bits >= 1 && bits <= 8) byte = static_cast<uint8_t>(byte >> 1 | (level ? 0x80 : 0));
        if (++bits == 10) {
            sample_at = NEVER;
            if (level && client >= 0) outward.push_back(byte);
            if (level && missing > 0) answered(now);
            return;
        }
        sample_at = now + bit;
    }

    Pin rx, tx;
    Time bit;
    std::string path;
    int server = -1, client = -1;
    bool was = true, running = false, served = false;
    Time send_at = NEVER, sample_at = NEVER, poll_at = NEVER;
    unsigned phase = 0, bits = 0;
    uint8_t byte = 0;
    std::deque<uint8_t> inward, outward;
    /// Bit times of silence after which an answer does not come any more.
    static constexpr Time PATIENCE = 1000;
    std::deque<Ask> asks;
    std::vector<uint8_t> answers;
    size_t missing = 0;
    Time give_up_at = NEVER;
};

/// Lamps: nothing is soldered to them that would act; their state is shown at the end.
class Leds final : public Model {
public:
    Leds(Design& d, const ResourceConfig& r) : led(pin_of(d, r, "led")), low(r.fact("active-low", 0) != 0) {
        width = r.width != 0 ? r.width : led.bits;
    }
    std::string shown() const override {
        std::string s;
        for (unsigned i = 0; i < width && i < led.bits; i++) s += ((led.at[i / 8] >> i % 8 & 1) != 0) != low ? '*' : '.';
        return s;
    }

private:
    Pin led;
    bool low;
    unsigned width;
};
}  // namespace

std::unique_ptr<Model> make_uart(Design& d, const ResourceConfig& r) { return std::make_unique<Uart>(d, r); }
std::unique_ptr<Model> make_leds(Design& d, const ResourceConfig& r) { return std::make_unique<Leds>(d, r); }
