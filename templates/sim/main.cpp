// The simulator: clocks, models, and the loop that evaluates the design when an edge occurs.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "config.h"
#include "design.h"
#include "model.h"
#include "summary.h"

namespace {
volatile sig_atomic_t stop_asked = 0;
void on_signal(int) { stop_asked = 1; }

struct ClockState {
    Pin pin;
    Time high, low, edge;
    bool level;
};

using Wall = std::chrono::steady_clock;

// Frames that may wait for a peer before simulated time stops for it.
constexpr size_t BACK_PRESSURE = 256;
// Clock cycles between the end of reset at the top level's input and the first frame. Each domain leaves reset a few edges
// later (`gw::reset_bridge`), and a receiver that leaves it inside a frame waits for the next gap, as it must.
constexpr Time SETTLE = 64;
// How often, in evaluations, the loop looks at the wall clock, the signals and the peers.
constexpr unsigned LOOK_EVERY = 256;

class Run {
public:
    explicit Run(const Config& c) : config(c), design(make_design()) {}

    void go() {
        wire_up();
        announce();
        loop();
        for (auto& m : models) m->close();
        design->close();
        closed = true;
    }
    // Traces and captures stay readable after an error, too.
    void abandon() {
        if (closed) return;
        closed = true;
        for (auto& m : models) {
            try {
                m->close();
            } catch (const Fatal&) {
            }
        }
        design->close();
    }
    Summary summary() const {
        Summary s;
        s.time = now;
        s.evals = evals;
        s.wall_seconds = wall_seconds;
        s.ended_by = ended_by;
        for (size_t i = 0; i < models.size(); i++)
            s.resources.push_back({config.resources[i].name, config.resources[i].cls, models[i]->stats(), models[i]->shown(), models[i]->heard()});
        return s;
    }

private:
    void wire_up() {
        for (auto& c : config.clocks) {
            auto i = design->pins.find(c.port);
            if (i == design->pins.end()) throw Fatal{"GW0704", "the top level has no clock input `" + c.port + "`", ""};
            clocks.push_back({i->second, c.period / 2, c.period - c.period / 2, c.phase, false});
            if (c.period > slowest) slowest = c.period;
        }
        for (auto& r : config.resources) {
            models.push_back(make_model(*design, r));
            if (r.period > slowest) slowest = r.period;
            if (models.back()->watches()) watchers.push_back(models.back().get());
        }
        if (slowest == 0) throw Fatal{"GW0705", "the design has no clock", ""};
        for (auto& r : config.resets) {
            auto i = design->pins.find(r.port);
            if (i == design->pins.end()) throw Fatal{"GW0704", "the top level has no reset input `" + r.port + "`", ""};
            i->second.set(!r.active_low);
            resets.emplace_back(i->second, r.active_low);
        }
        release = 16 * slowest;
        begin = release + SETTLE * slowest;
        if (!config.trace.empty()) design->trace_open(config.trace);
        for (auto& m : models) {
            bool wire = m->wire() && m->wire()->live();
            if (m->wire() && m->wire()->exact()) stepped.push_back(m->wire());
            live = live || wire;
            real_time = real_time || wire || m->real_time();
        }
    }
    void announce() {
        std::fprintf(stderr, "ready\n");
        std::fflush(stderr);
    }

    void loop() {
        auto wall_start = Wall::now();
        bool any_input = false;
        for (auto& r : config.resources) any_input = any_input || !r.wire.kind.empty() || !r.regs.empty() || !r.asks.empty();
        design->eval();
        if (design->traced) design->dump(0);
        unsigned until_look = LOOK_EVERY;
        std::vector<Model*> due;
        bool released = false, begun = false, finishing = false;
        for (;;) {
            Time t = !released ? release : !begun ? begin : NEVER;
            for (auto& c : clocks) t = c.edge < t ? c.edge : t;
            for (auto& m : models) t = m->next() < t ? m->next() : t;
            if (begun) t = hold(t);
            if (stop_asked && begun) {
                ended_by = "signal";
                break;
            }
            if (t > config.until) {
                now = config.until;
                ended_by = "until";
                break;
            }
            now = t;
            due.clear();
            for (auto& m : models)
                if (m->next() == t) {
                    due.push_back(m.get());
                    m->before(t);
                }
            for (auto& c : clocks)
                if (c.edge == t) {
                    c.level = !c.level;
                    c.pin.set(c.level);
                    c.edge = t + (c.level ? c.high : c.low);
                }
            design->eval();
            evals++;
            for (auto m : watchers) m->watch(t);
            for (auto m : due) m->after(t);
            if (!released && t >= release) {
                released = true;
                for (auto& r : resets) r.first.set(r.second);
            }
            if (!begun && t >= begin) {
                begun = true;
                for (auto& m : models) m->start(t);
            }
            if (design->traced) design->dump(t);
            if (--until_look == 0) {
                until_look = LOOK_EVERY;
                if (stop_asked) {
                    ended_by = "signal";
                    break;
                }
                if (real_time) pace(wall_start);
                if (!finishing && !live && any_input && begun && quiet()) {
                    finishing = true;
                    for (auto& m : models) m->finish(t);
                }
                if (finishing && finished()) {
                    ended_by = "input";
                    break;
                }
            }
        }
        wall_seconds = std::chrono::duration<double>(Wall::now() - wall_start).count();
        // Frames that a live peer has not taken yet get a second to go.
        for (int i = 0; i < 1000 && live && !stop_asked && waiting() > 0; i++) ::poll(nullptr, 0, 1);
    }
    size_t waiting() {
        size_t n = 0;
        for (auto& m : models)
            if (m->wire()) n += m->wire()->pending();
        return n;
    }
    /// All input has gone in, and nothing has moved for the drain time.
    bool quiet() const {
        Time last = begin;
        for (auto& m : models) {
            if (!m->idle()) return false;
            auto s = m->stats();
            if (s && s->last_activity > last) last = s->last_activity;
        }
        return now > last && now - last >= config.drain;
    }
    /// Lets peers in lock-step say how far simulated time may go before it goes to `t`.
    Time hold(Time t) {
        for (auto w : stepped)
            while (w->horizon() < t && !stop_asked) {
                // What the peer granted is over: it stands at the grant, or where its last frame came out.
                w->await(w->horizon() > now ? w->horizon() : now);
            }
        return t;
    }
    bool finished() const {
        for (auto& m : models)
            if (!m->finished()) return false;
        return true;
    }
    /// Holds simulated time back: behind the wall clock, and while a peer does not take its frames.
    void pace(Wall::time_point wall_start) {
        for (;;) {
            if (stop_asked) return;
            size_t held = waiting();
            auto wall = std::chrono::duration_cast<std::chrono::nanoseconds>(Wall::now() - wall_start).count();
            int64_t ahead = static_cast<int64_t>(now / 1000000u) - wall;
            if (held < BACK_PRESSURE && ahead <= 0) return;
            int ms = held >= BACK_PRESSURE ? 1 : static_cast<int>(ahead / 1000000);
            if (ms > 20) ms = 20;
            if (ms > 0) ::poll(nullptr, 0, ms);
            else if (ahead > 0) {
                timespec s{0, static_cast<long>(ahead)};
                nanosleep(&s, nullptr);
            }
        }
    }

    const Config& config;
    std::unique_ptr<Design> design;
    std::vector<std::unique_ptr<Model>> models;
    std::vector<Model*> watchers;
    std::vector<Wire*> stepped;
    std::vector<ClockState> clocks;
    std::vector<std::pair<Pin, bool>> resets;
    Time now = 0, slowest = 0, release = 0, begin = 0;
    uint64_t evals = 0;
    double wall_seconds = 0;
    std::string ended_by;
    bool live = false, real_time = false, closed = false;
};
}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s CONFIG\n", argv[0]);
        return 2;
    }
    struct sigaction a{};
    a.sa_handler = on_signal;
    sigaction(SIGINT, &a, nullptr);
    sigaction(SIGTERM, &a, nullptr);
    signal(SIGPIPE, SIG_IGN);
    // The composer that started this run reads its summary; without it there is no reason to go on.
    prctl(PR_SET_PDEATHSIG, SIGTERM);

    Config config;
    std::unique_ptr<Run> run;
    Summary summary;
    try {
        config = read_config(argv[1]);
        run = std::make_unique<Run>(config);
        run->go();
        summary = run->summary();
    } catch (const Fatal& f) {
        if (run) {
            summary = run->summary();
            run->abandon();
        }
        summary.errors.push_back(f);
    } catch (const std::exception& e) {
        summary.errors.push_back({"GW0715", std::string("the simulator failed: ") + e.what(), ""});
    }
    bool written = write_summary(summary, config.summary, config.per_frame);
    return !summary.errors.empty() || !written ? 2 : summary.violations() ? 1 : 0;
}
