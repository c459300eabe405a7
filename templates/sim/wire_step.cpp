// A wire in lock-step with a program: a stream socket on which the peer grants simulated time. No wall clock is read.
//
// Numbers are little endian. The peer sends
//   1, u64 time, u32 length, bytes   a frame (without FCS) whose first preamble bit may come at `time` or later
//   2, u64 time                      a grant: simulate up to `time`, or to the end of a frame of the design's, and report
// and closes the socket to end the run. The simulator sends
//   1, u64 start, u64 end, u32 length, bytes   a frame (without FCS) of the design's: its first preamble bit, its last FCS bit
//   2, u64 now                                 a report: simulated time stands still until the next grant
//   3, u64 start, u64 end                      a frame of the peer's has been put on the wire
// Times are nanoseconds of simulated time, rounded down. The first report comes when frames can be received.
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>

#include "wire.h"

namespace {
constexpr Time NS = 1000000;
constexpr uint32_t LARGEST = 65535;

class Step final : public Wire {
public:
    explicit Step(const std::string& p) : path(p) {
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        if (path.empty() || path.size() >= sizeof a.sun_path)
            throw Fatal{"GW0711", "socket path `" + path + "` has " + std::to_string(path.size()) + " bytes", "1 to 107 bytes are possible; use a shorter folder"};
        std::memcpy(a.sun_path, path.c_str(), path.size());
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct stat st;
        // A socket that nobody has open is left over from a run that was killed.
        bool dead = lstat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode) && connect(listener, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 && errno == ECONNREFUSED;
        if (dead) unlink(path.c_str());
        if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || listen(listener, 1) != 0) {
            std::string why = std::strerror(errno);
            close();
            throw Fatal{"GW0711", "cannot bind `" + path + "`: " + why, "its folder must exist and be writable; nothing else may use it"};
        }
        bound = true;
    }
    ~Step() override { close(); }

    bool receive(Frame& into) override {
        if (coming.empty()) return false;
        into = std::move(coming.front());
        coming.pop_front();
        return true;
    }
    bool send(const Sent& s) override {
        if (!s.good || peer < 0) return false;
        std::vector<uint8_t> m{1};
        number(m, s.start / NS, 8), number(m, s.end / NS, 8), number(m, s.bytes.size(), 4);
        m.insert(m.end(), s.bytes.begin(), s.bytes.end());
        put(m);
        granted = 0;
        return peer >= 0;
    }
    void entered(Time start, Time end) override {
        std::vector<uint8_t> m{3};
        number(m, start / NS, 8), number(m, end / NS, 8);
        put(m);
    }
    bool ended() const override { return over && coming.empty(); }
    bool exact() const override { return true; }
    Time horizon() const override { return granted; }
    void await(Time now) override {
        if (peer < 0 && !over && listener >= 0) {
            peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
            if (peer < 0) return;
        }
        if (!reported) {
            std::vector<uint8_t> m{2};
            number(m, now / NS, 8);
            put(m);
            reported = true;
        }
        while (!over) {
            uint8_t h[13];
            if (!get(h, 1)) return;
            if (h[0] == 2) {
                if (!get(h, 8)) return;
                Time t = little(h, 8);
                // Whatever it says, time goes on: a grant of the past is one of the present.
                granted = t > NEVER / NS ? NEVER : t * NS > now ? t * NS : now;
                reported = false;
                return;
            }
            if (h[0] != 1 || !get(h, 12)) return hang_up();
            Frame f;
            f.not_before = little(h, 8) * NS;
            uint64_t length = little(h + 8, 4);
            if (length > LARGEST) return hang_up();
            f.bytes.resize(length);
            if (length && !get(f.bytes.data(), length)) return;
            pad_and_seal(f.bytes);
            coming.push_back(std::move(f));
        }
    }
    void close() override {
        if (peer >= 0) ::close(peer);
        if (listener >= 0) ::close(listener);
        peer = listener = -1;
        if (bound) unlink(path.c_str());
        bound = false;
    }

private:
    static void number(std::vector<uint8_t>& m, uint64_t v, unsigned n) {
        for (unsigned i = 0; i < n; i++) m.push_back(static_cast<uint8_t>(v >> 8 * i));
    }
    static uint64_t little(const uint8_t* p, unsigned n) {
        uint64_t v = 0;
        for (unsigned i = n; i-- > 0;) v = v << 8 | p[i];
        return v;
    }
    /// The peer has gone: the run goes on to its end as after the end of a file.
    void hang_up() {
        if (peer >= 0) ::close(peer);
        peer = -1;
        over = true;
        granted = NEVER;
    }
    void put(const std::vector<uint8_t>& m) {
        for (size_t at = 0; at < m.size() && peer >= 0;) {
            ssize_t n = ::send(peer, m.data() + at, m.size() - at, MSG_NOSIGNAL);
            if (n > 0) at += static_cast<size_t>(n);
            else if (errno != EINTR) hang_up();
        }
    }
    /// A signal between two messages gives up, so that the run can end; `await` is called again if it does not.
    bool get(uint8_t* to, size_t n) {
        for (size_t at = 0; at < n;) {
            ssize_t r = recv(peer, to + at, n - at, 0);
            if (r > 0) at += static_cast<size_t>(r);
            else if (r < 0 && errno == EINTR && at == 0 && n == 1) return false;
            else if (r == 0 || errno != EINTR) {
                hang_up();
                return false;
            }
        }
        return true;
    }

    std::string path;
    int listener = -1, peer = -1;
    bool bound = false, over = false, reported = false;
    Time granted = 0;
    std::deque<Frame> coming;
};
}  // namespace

std::unique_ptr<Wire> open_step(const std::string& path) { return std::make_unique<Step>(path); }
