use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::free_port;

/// The relay between two ends that meet in rendezvous: each calls a port of this relay, from a port
/// that the relay knows, and receives the other end's datagrams from there. It may lose packets,
/// and notes which end made the offer.
#[derive(Debug)]
pub struct Middle {
    /// Where the one end is to be bound, and whom it is to call.
    pub here: Place,
    /// The place of the other end.
    pub there: Place,
    offers: Arc<Mutex<Vec<Side>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// An end's place in a rendezvous on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The port that it is to bind.
    pub local: u16,
    /// The port that it is to call.
    pub remote: u16,
}

/// One of the two ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The place of [`Middle::here`].
    Here,
    /// The place of [`Middle::there`].
    There,
}

impl Middle {
    /// Starts a relay. One that is lossy loses every second handshake of each end, from the first
    /// or the second on as the bits of `seed` say, and every fiftieth data packet.
    ///
    /// # Panics
    ///
    /// If the sockets cannot be made.
    pub fn start(lossy: bool, seed: u32) -> Self {
        let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let sockets = [bind(), bind()];
        let port = |socket: &UdpSocket| socket.local_addr().expect("a bound socket has one").port();
        let [here, there] =
            [&sockets[0], &sockets[1]].map(|it| Place { local: free_port(), remote: port(it) });
        let (offers, stop) = (Arc::<Mutex<Vec<Side>>>::default(), Arc::<AtomicBool>::default());
        let mut threads = Vec::new();
        for (from, to, target, side) in
            [(0, 1, there.local, Side::Here), (1, 0, here.local, Side::There)]
        {
            let clone = |at: usize| sockets[at].try_clone().expect("sockets can be shared");
            let (from, to) = (clone(from), clone(to));
            from.set_read_timeout(Some(LOOK_UP)).expect("a time limit can be set");
            let (offers, stop) = (Arc::clone(&offers), Arc::clone(&stop));
            let mut data_packets = 0;
            let mut handshakes = (seed >> u32::from(side == Side::Here)) & 1;
            threads.push(thread::spawn(move || {
                let mut buffer = [0; 2_048];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((length, _)) = from.recv_from(&mut buffer) else { continue };
                    let datagram = &buffer[..length];
                    if is_offer(datagram) {
                        offers.lock().expect("no thread panics with it").push(side);
                    }
                    let is_data = datagram.first().is_some_and(|byte| byte & 0x80 == 0);
                    data_packets += u32::from(is_data);
                    let is_handshake = datagram.starts_with(HANDSHAKE);
                    handshakes += u32::from(is_handshake);
                    let lost = (is_data && data_packets.is_multiple_of(50))
                        || (is_handshake && handshakes.is_multiple_of(2));
                    if !(lossy && lost) {
                        // Nobody may be bound there yet.
                        let _ = to.send_to(datagram, SocketAddr::from(([127, 0, 0, 1], target)));
                    }
                }
            }));
        }
        Self { here, there, offers, stop, threads }
    }

    /// Which end made the offer, and so won the contest.
    ///
    /// # Panics
    ///
    /// If none did, or both.
    pub fn initiator(&self) -> Side {
        let offers = self.offers.lock().expect("no thread panics with it");
        let first = *offers.first().expect("somebody made an offer");
        assert!(offers.iter().all(|side| *side == first), "both ends made offers: {offers:?}");
        first
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does not panic, and a test that is failing must not panic twice.
            let _ = thread.join();
        }
    }
}

/// Whether a datagram is a conclusion whose first extension is HSREQ.
fn is_offer(datagram: &[u8]) -> bool {
    datagram.starts_with(HANDSHAKE)
        && datagram.get(36..40) == Some(&[0xFF; 4][..])
        && datagram.get(64..66) == Some(&[0, 1][..])
}

/// How a handshake packet begins.
const HANDSHAKE: &[u8] = &[0x80, 0, 0, 0];

/// The period at which a quiet thread checks whether it has to end.
const LOOK_UP: Duration = Duration::from_millis(20);
