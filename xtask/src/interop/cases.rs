//! The table of cases: what programs of Linux do to the board, each with the script that the guest runs.
//!
//! A script ends with status 0 if everything was right. `$BOARD` is the board's address; `expect TEXT COMMAND` runs a command and
//! wants TEXT in what it says, whatever its status; `pinged COUNT OPTIONS` runs rping
//! and wants so many rounds; `moving FILE` waits until the rdma-test whose progress goes to FILE has moved data.

/// What surrounds the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It shares a boot of the guest with others.
    Script,
    /// The relay drops, doubles, reorders, delays and corrupts so many frames in a million, each.
    Loss(u32),
    /// So many guests, one after the other, each a machine of its own, run the script until it says `@busy` and are switched off without goodbye; then
    /// `after` must work.
    PowerOff { times: u32, after: &'static str },
    /// Two guests run it at once.
    Two,
    /// When the script says `@busy`, registers start the board's client of rping: so many rounds of so many bytes.
    Calls { rounds: u32, size: u32 },
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// IP MTU of the guest: 1500 gives PMTU 1024, 4200 gives 4096.
    pub mtu: u32,
    pub kind: Kind,
    /// Seconds that it may take.
    pub limit: u32,
    pub script: &'static str,
}

const fn script(name: &'static str, mtu: u32, limit: u32, script: &'static str) -> Case {
    Case { name, mtu, kind: Kind::Script, limit, script }
}

/// rping refuses sizes below 23 and, off by one, 65536: `rdma-test` covers those.
const RPING_SIZES: &str = "for size in 23 24 31 32 63 64 100 255 256 257 1000 1023 1024 1025 2048 4096 4097 16384 32768 65535; do
    pinged 3 -S $size || exit 1
done";

const TEST_SIZES: &str = "for size in 4 8 60 64 252 256 260 1020 1024 1028 4096 4100 16384 65536; do
    rdma-test -a $BOARD -c -C 4 -S $size -V || exit 1
done";

const BANDWIDTH: &str = "rdma-test -a $BOARD -b -w -C 64 -S 65536 && rdma-test -a $BOARD -b -r -C 64 -S 65536 &&
rdma-test -a $BOARD -b -rw -C 64 -S 65536 && rdma-test -a $BOARD -B -C 64 -S 65536";

/// The board as requester in our memory; port of the plugin rdma-bench. tshark takes what is shorter than 4 bytes, with its pad, for an Ethernet type.
const BY_BOARD: &str =
    "rdma-test -a $BOARD -p 18516 --by-board -b -rw -C 64 -S 65536 && rdma-test -a $BOARD -p 18516 --by-board -B -C 32 -S 65536 &&
for size in 5 255 1024 1025 4097; do rdma-test -a $BOARD -p 18516 --by-board -b -rw -C 20 -S $size --offset 3 --depth 3 || exit 1; done";

const LOSSY: &str = "rdma-test -a $BOARD -c -C 20 -S 65536 -V --ack-timeout 14 --retries 6 &&
rdma-test -a $BOARD -c -C 50 -S 1000 -V --ack-timeout 14 --retries 6 &&
rdma-test -a $BOARD -b -rw -C 32 -S 16384 --ack-timeout 14 --retries 6";

/// The server of rping that the board calls; it takes no more than its own size, and tells each round.
const CALLED: &str = "rping -s -a $OWN -S 65535 -v > /run/called 2> /run/called.err & sleep 2; echo @busy > /dev/ttyS1; wait $!
rounds=$(grep -c '^server ping data: ' /run/called); echo \"$rounds rounds\"; tail -n 3 /run/called.err; [ $rounds -eq 20 ]";

#[rustfmt::skip]
pub const CASES: &[Case] = &[
    script("rping-once", 1500, 120, "pinged 1"),
    script("rping-sizes", 1500, 600, RPING_SIZES),
    script("rping-sizes-4096", 4200, 600, RPING_SIZES),
    script("rping-1000", 1500, 900, "pinged 1000 -S 64"),
    script("rping-1000-4096", 4200, 900, "pinged 1000 -S 4096"),
    script("rdma-client", 1500, 120, "for n in 1 2 3; do expect 'rdma_client: end 0' rdma_client -s $BOARD -p 7471 || exit 1; done"),
    script("ucmatose", 1500, 120, "expect 'return status 0' ucmatose -s $BOARD -p 7472"),
    script("no-listener", 1500, 120, "expect 'RDMA_CM_EVENT_REJECTED, error 8' rping -c -a $BOARD -p 9999 -C 1"),
    script("rdma-test-sizes", 1500, 600, TEST_SIZES),
    script("rdma-test-sizes-4096", 4200, 600, TEST_SIZES),
    script("rdma-test-bandwidth", 1500, 600, BANDWIDTH),
    script("rdma-test-bandwidth-4096", 4200, 600, BANDWIDTH),
    script("board-requester", 1500, 600, BY_BOARD),
    script("board-requester-4096", 4200, 600, BY_BOARD),
    script("connect-2000", 1500, 3600, "rdma-test -a $BOARD --connects 2000"),
    script("connect-4-at-once", 1500, 120, "for n in 1 2 3 4 5; do
    expect '^destroy' cmtime -s $BOARD -p $TEST_PORT -c 4 && ! grep -i -e fail -e error /run/expect.log || exit 1
done"),
    script("killed-client", 1500, 300, "for n in 1 2 3; do
    rdma-test -a $BOARD -b -w -C 100000 -S 65536 > /run/killed 2>&1 &
    moving /run/killed; kill -9 $!; wait $!
    pinged 3 -S 1000 || exit 1
done"),
    Case { name: "two-guests", mtu: 1500, kind: Kind::Two, limit: 600, script: "pinged 100 -S 4096 && rdma-test -a $BOARD -c -C 20 -S 65536 -V --offset $((SELF * 65536))" },
    Case { name: "board-calls", mtu: 1500, kind: Kind::Calls { rounds: 20, size: 1000 }, limit: 300, script: CALLED },
    Case { name: "board-calls-4096", mtu: 4200, kind: Kind::Calls { rounds: 20, size: 65532 }, limit: 600, script: CALLED },
    Case { name: "power-off", mtu: 1500, kind: Kind::PowerOff { times: 5, after: "pinged 10 -S 1000" }, limit: 300,
        script: "rdma-test -a $BOARD -b -w -C 1000000 -S 65536 2> /run/busy & moving /run/busy; echo @busy > /dev/ttyS1; wait" },
    Case { name: "loss-0.1", mtu: 1500, kind: Kind::Loss(1_000), limit: 900, script: LOSSY },
    Case { name: "loss-1", mtu: 1500, kind: Kind::Loss(10_000), limit: 900, script: LOSSY },
    Case { name: "loss-1-4096", mtu: 4200, kind: Kind::Loss(10_000), limit: 900, script: LOSSY },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_can_be_files() {
        for (at, case) in CASES.iter().enumerate() {
            assert!(CASES[..at].iter().all(|other| other.name != case.name), "{}", case.name);
            assert!(case.name.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c)));
        }
    }
}
