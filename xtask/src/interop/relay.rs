//! The wire between guests and a design: a small switch of unix datagram sockets that records every frame and may do harm.

use anyhow::{Context, Result};
use roce_peer::model::link::{Faults, Link};
use roce_peer::pcap::Writer;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One end of a cable.
#[derive(Clone, Debug)]
pub struct Port {
    /// Bound by the relay.
    pub here: PathBuf,
    /// Bound by the guest or the simulation.
    pub there: PathBuf,
}

/// What the ports share.
struct Shared {
    stop: AtomicBool,
    ports: Vec<Port>,
    /// Which port a MAC address was last seen at.
    stations: Mutex<HashMap<[u8; 6], usize>>,
    capture: Mutex<Writer<BufWriter<File>>>,
    started: Instant,
    frames: AtomicU64,
    harmed: AtomicU64,
    lost: AtomicU64,
}

/// A running relay; it ends when this is dropped.
pub struct Relay {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What went through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub frames: u64,
    /// Frames that a fault was put into.
    pub harmed: u64,
    /// Frames that nobody took.
    pub lost: u64,
}

impl Relay {
    /// Binds the ports and records to `capture`, before any harm is done. `seed` decides what is harmed.
    pub fn start(ports: &[Port], capture: &Path, faults: Faults, seed: u64) -> Result<Relay> {
        let file = File::create(capture).with_context(|| format!("writing {}", capture.display()))?;
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            ports: ports.to_vec(),
            stations: Mutex::default(),
            capture: Mutex::new(Writer::new(BufWriter::new(file))?),
            started: Instant::now(),
            frames: AtomicU64::new(0),
            harmed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let mut threads = Vec::new();
        for (at, port) in ports.iter().enumerate() {
            std::fs::remove_file(&port.here).ok();
            let socket = UnixDatagram::bind(&port.here).with_context(|| format!("binding {}", port.here.display()))?;
            let out = UnixDatagram::unbound()?;
            // A guest that has stopped reading must not stop the wire for ever.
            out.set_write_timeout(Some(Duration::from_secs(5)))?;
            let (shared, link) = (shared.clone(), Link::new(0, faults, seed ^ (at as u64) << 32));
            threads.push(std::thread::spawn(move || shared.serve(at, &socket, &out, link)));
        }
        Ok(Relay { shared, threads })
    }

    /// Ends it and closes the capture.
    pub fn stop(mut self) -> Counts {
        self.end();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts { frames: count(&self.shared.frames), harmed: count(&self.shared.harmed), lost: count(&self.shared.lost) }
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
        for port in &self.shared.ports {
            std::fs::remove_file(&port.here).ok();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn serve(&self, at: usize, socket: &UnixDatagram, out: &UnixDatagram, mut link: Link) {
        let mut buffer = vec![0; 65536];
        while !self.stop.load(Ordering::Relaxed) {
            let wait = link.next().map_or(50_000_000, |next| next.saturating_sub(self.now()).clamp(100_000, 50_000_000));
            socket.set_read_timeout(Some(Duration::from_nanos(wait))).ok();
            if let Ok(length) = socket.recv(&mut buffer) {
                let frame = &buffer[..length];
                if length >= 14 {
                    let source = [frame[6], frame[7], frame[8], frame[9], frame[10], frame[11]];
                    self.stations.lock().unwrap_or_else(PoisonError::into_inner).insert(source, at);
                }
                self.frames.fetch_add(1, Ordering::Relaxed);
                self.capture.lock().unwrap_or_else(PoisonError::into_inner).record(self.now(), frame).ok();
                link.send(self.now(), frame.to_vec());
                self.harmed.fetch_max(link.harmed, Ordering::Relaxed);
            }
            while let Some(frame) = link.receive(self.now()) {
                self.forward(at, &frame, out);
            }
        }
    }

    /// To the port of the destination's address, to all others where it is not known.
    fn forward(&self, from: usize, frame: &[u8], out: &UnixDatagram) {
        let destination = frame.get(..6).and_then(|mac| <[u8; 6]>::try_from(mac).ok());
        let known = destination.and_then(|mac| self.stations.lock().unwrap_or_else(PoisonError::into_inner).get(&mac).copied());
        for (at, port) in self.ports.iter().enumerate() {
            if at != from && known.is_none_or(|known| known == at) && out.send_to(frame, &port.there).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_find_their_port_and_are_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let ports = ["a", "b", "c"].map(|name| Port { here: path(name), there: path(&format!("{name}-peer")) });
        let peers = ports.each_ref().map(|port| UnixDatagram::bind(&port.there).unwrap());
        for peer in &peers {
            peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        }
        let relay = Relay::start(&ports, &path("wire.pcap"), Faults::default(), 1).unwrap();
        let mut buffer = [0; 100];
        let frame = |to: u8, from: u8| [[to; 6], [from; 6]].concat().into_iter().chain([8, 0]).collect::<Vec<u8>>();
        // Unknown goes to everybody, known to one.
        peers[0].send_to(&frame(2, 1), &ports[0].here).unwrap();
        for peer in &peers[1..] {
            assert_eq!(peer.recv(&mut buffer).unwrap(), 14);
        }
        peers[1].send_to(&frame(1, 2), &ports[1].here).unwrap();
        assert_eq!(peers[0].recv(&mut buffer).unwrap(), 14);
        peers[2].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(peers[2].recv(&mut buffer).is_err());
        let counts = relay.stop();
        assert_eq!((counts.frames, counts.harmed, counts.lost), (2, 0, 0));
        let records = roce_peer::pcap::read(&path("wire.pcap")).unwrap();
        assert_eq!(records.iter().map(|record| record.frame.clone()).collect::<Vec<_>>(), [frame(2, 1), frame(1, 2)]);
    }
}
