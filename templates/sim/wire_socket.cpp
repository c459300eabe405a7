// Unix datagram sockets and TAP interfaces: one datagram is one Ethernet frame without FCS.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <deque>

#include "wire.h"

namespace {

// Jumbo frames have 9018 bytes; larger datagrams are oversize on every wire and go in as they are.
constexpr size_t LARGEST = 65535;
class Datagrams : public Wire {
public:
    bool receive(Frame& into) override {
        ssize_t n = get(buffer, sizeof buffer);
        if (n < 0) return false;
        into = Frame{};
        into.bytes.assign(buffer, buffer + n);
        pad_and_seal(into.bytes);
        return true;
    }
    bool send(const Sent& frame) override {
        if (!frame.good) return false;
        waiting.push_back(frame.bytes);
        lost = false;
        flush();
        return !lost;
    }
    size_t pending() override {
        flush();
        return waiting.size();
    }
    bool live() const override { return true; }
    int descriptor() const override { return fd; }

protected:
    virtual ssize_t get(uint8_t* to, size_t size) = 0;
    virtual ssize_t put(const std::vector<uint8_t>& bytes) = 0;
    int fd = -1;

private:
    void flush() {
        while (!waiting.empty()) {
            if (put(waiting.front()) < 0) {
                // Full queues are back-pressure: the frame stays. Anything else means that nobody is there.
                if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == EINTR) return;
                lost = true;
            }
            waiting.pop_front();
        }
    }
    std::deque<std::vector<uint8_t>> waiting;
    bool lost = false;
    uint8_t buffer[LARGEST];
};

sockaddr_un address(const std::string& path) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof a.sun_path)
        throw Fatal{"GW0711", "socket path `" + path + "` has " + std::to_string(path.size()) + " bytes", "1 to 107 bytes are possible; use a shorter folder"};
    std::memcpy(a.sun_path, path.c_str(), path.size());
    return a;
}

class Unix final : public Datagrams {
public:
    Unix(const std::string& local, const std::string& remote) : path(local), here(address(local)), there(address(remote)) {
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) throw Fatal{"GW0711", std::string("cannot make a socket: ") + std::strerror(errno), ""};
        struct stat st;
        if (lstat(path.c_str(), &st) == 0) {
            // A socket that nobody has open is left over from a run that was killed.
            bool dead = S_ISSOCK(st.st_mode) && connect(fd, reinterpret_cast<sockaddr*>(&here), sizeof here) != 0 && errno == ECONNREFUSED;
            if (!dead) {
                close_fd();
                throw Fatal{"GW0711", "`" + path + "` exists and is in use", "end the program that uses it, or name another socket"};
            }
            unlink(path.c_str());
        }
        if (bind(fd, reinterpret_cast<sockaddr*>(&here), sizeof here) != 0) {
            std::string why = std::strerror(errno);
            close_fd();
            throw Fatal{"GW0711", "cannot bind `" + path + "`: " + why, "its folder must exist and be writable"};
        }
        bound = true;
        int size = 4 << 20;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
    ~Unix() override { close(); }
    void close() override {
        if (bound) unlink(path.c_str());
        bound = false;
        close_fd();
    }

private:
    void close_fd() {
        if (fd >= 0) ::close(fd);
        fd = -1;
    }
    ssize_t get(uint8_t* to, size_t size) override { return recv(fd, to, size, 0); }
    // Addressed anew each time, so that a peer that comes late or comes again is found.
    ssize_t put(const std::vector<uint8_t>& b) override {
        return sendto(fd, b.data(), b.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&there), sizeof there);
    }
    std::string path;
    sockaddr_un here, there;
    bool bound = false;
};

class Tap final : public Datagrams {
public:
    explicit Tap(const std::string& name) {
        if (name.empty() || name.size() >= IFNAMSIZ)
            throw Fatal{"GW0712", "`" + name + "` cannot name an interface", "1 to 15 characters"};
        fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
        ifreq r{};
        r.ifr_flags = IFF_TAP | IFF_NO_PI;
        std::memcpy(r.ifr_name, name.c_str(), name.size());
        if (fd < 0 || ioctl(fd, TUNSETIFF, &r) != 0) {
            std::string why = std::strerror(errno);
            if (fd >= 0) ::close(fd);
            fd = -1;
            throw Fatal{"GW0712", "cannot open TAP interface `" + name + "`: " + why,
                        "a user needs an interface made for him: ip tuntap add dev " + name + " mode tap user $USER; ip link set " + name + " up"};
        }
    }
    ~Tap() override { close(); }
    void close() override {
        if (fd >= 0) ::close(fd);
        fd = -1;
    }

private:
    ssize_t get(uint8_t* to, size_t size) override { return read(fd, to, size); }
    ssize_t put(const std::vector<uint8_t>& b) override { return write(fd, b.data(), b.size()); }
};

class Nothing final : public Wire {
    bool receive(Frame&) override { return false; }
    bool send(const Sent&) override { return false; }
    bool ended() const override { return true; }
};
}  // namespace

std::unique_ptr<Wire> open_unix(const std::string& local, const std::string& remote) { return std::make_unique<Unix>(local, remote); }
std::unique_ptr<Wire> open_tap(const std::string& interface) { return std::make_unique<Tap>(interface); }
std::unique_ptr<Wire> open_nothing() { return std::make_unique<Nothing>(); }
