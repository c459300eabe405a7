#include "line.h"

Symbol LineIn::next(Time now) {
    if (!busy) {
        Time start;
        if (!inlet.take(now, frame, start, true)) return {};
        busy = true;
        at = 0;
    }
    Symbol s{0x55, true, false};
    size_t head = frame.preamble + 1u;
    if (at == frame.preamble) s.data = frame.sfd;
    else if (at >= head) {
        s.data = at - head < frame.bytes.size() ? frame.bytes[at - head] : 0;
        s.error = frame.error_at >= 0 && static_cast<size_t>(frame.error_at) == at - head;
    }
    at++;
    if (at >= head + frame.bytes.size()) {
        busy = false;
        bool good = fcs_good(frame.bytes) && frame.error_at < 0 && frame.sfd == 0xd5 && frame.bytes.size() >= 64;
        counts.came_in(frame, good, now);
    }
    return s;
}

void LineOut::put(Time now, Symbol s) {
    if (s.valid) {
        if (bytes.empty()) {
            start = now;
            error = false;
            if (gap < 12) counts.short_gaps++;
        }
        bytes.push_back(s.data);
        error = error || s.error;
        return;
    }
    if (!bytes.empty()) {
        finish(now);
        gap = 0;
    }
    gap++;
}

void LineOut::finish(Time now) {
    size_t sfd = 0;
    while (sfd < bytes.size() && bytes[sfd] == 0x55) sfd++;
    bool framed = sfd > 0 && sfd < bytes.size() && bytes[sfd] == 0xd5;
    size_t head = framed ? sfd + 1 : 0;
    std::vector<uint8_t> body(bytes.begin() + static_cast<long>(head), bytes.end());
    Sent s;
    s.good = framed && !error && body.size() >= 64 && fcs_good(body);
    s.start = start;
    s.first_byte = start + head * byte_time;
    s.end = now;
    if (body.size() >= 4) body.resize(body.size() - 4);
    s.bytes = std::move(body);
    bytes.clear();
    counts.went_out(s);
    if (!wire.send(s)) counts.undelivered++;
}
