//! The thread that carries packets from one device to the other, in time.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::time::Duration;

use punctual_io::now;
use punctual_units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use tun_rs::SyncDevice;

use crate::direction::Direction;
use crate::report::DirectionReport;
use crate::tun::{Side, TunConfig};

/// An order for the thread.
#[derive(Debug)]
pub(super) enum ForwarderOrder {
    /// Report the totals of the links: left to right, right to left.
    Report(SyncSender<[DirectionReport; 2]>),
    /// Restart the links: their timelines and their totals.
    Restart,
}

/// Two devices and the links between them.
pub(super) struct Forwarder {
    config: TunConfig,
    devices: [SyncDevice; 2],
    /// Whether a device is still there: whoever is root on its side can delete it.
    present: [bool; 2],
    /// The link that leads from the device of the same place to the other.
    links: [Direction<Vec<u8>>; 2],
    /// Packets that the other side's kernel refused, by the link they came from.
    refused: [u64; 2],
    /// Packets that are not in use, for their memory.
    spare: Vec<Vec<u8>>,
    room: Vec<u8>,
    orders: Receiver<ForwarderOrder>,
    /// Readable when there are orders.
    bell: Arc<OwnedFd>,
}

impl Forwarder {
    /// Carries from each device to the other, the left one first.
    pub(super) fn new(
        config: TunConfig,
        devices: [SyncDevice; 2],
        orders: Receiver<ForwarderOrder>,
        bell: Arc<OwnedFd>,
    ) -> Self {
        Self {
            links: links(&config),
            config,
            devices,
            present: [true; 2],
            refused: [0; 2],
            spare: Vec::new(),
            room: vec![0; LARGEST_PACKET],
            orders,
            bell,
        }
    }

    /// Works until nobody is left who could give an order.
    pub(super) fn run(mut self) {
        let mut ready = [true; 3];
        loop {
            for side in [Side::Left, Side::Right] {
                if ready[side.place()] && self.present[side.place()] {
                    self.take_in(side);
                }
            }
            if ready[2] && !self.obey() {
                return;
            }
            let next = self.send_due();
            match self.wait(next) {
                Ok(woken) => ready = woken,
                Err(Errno::INTR) => ready = [false; 3],
                Err(error) => {
                    tracing::error!("the emulator ends, as it cannot wait for packets: {error}");
                    return;
                }
            }
        }
    }

    /// Puts a side's packets into its link, up to a bound: due packets must not wait for it.
    fn take_in(&mut self, side: Side) {
        let place = side.place();
        for _ in 0..BATCH {
            let size = match read(&self.devices[place], &mut self.room[..]) {
                Ok(size) => size,
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    tracing::error!("the device of the {side} side is gone: {error}");
                    self.present[place] = false;
                    return;
                }
            };
            let mut packet = self.spare.pop().unwrap_or_default();
            packet.extend_from_slice(&self.room[..size]);
            self.links[place].link.send(now(), packet);
        }
    }

    /// Sends due packets, and returns the time of the next one.
    fn send_due(&mut self) -> Option<Instant> {
        let mut latest = now();
        for place in 0..2 {
            while let Some(arrival) = self.links[place].link.recv(latest) {
                let mut packet = arrival.packet;
                match rustix::io::write(&self.devices[1 - place], &packet) {
                    Ok(_) => {
                        latest = now();
                        self.links[place].record(arrival.at, latest);
                    }
                    // A corrupted packet may be no packet any more.
                    Err(_) => self.refused[place] += 1,
                }
                if self.spare.len() < SPARE {
                    packet.clear();
                    self.spare.push(packet);
                }
            }
        }
        self.links.iter().filter_map(|direction| direction.link.poll_timeout()).min()
    }

    /// Waits until a device (left, right) or the bell is readable, or until `next`.
    fn wait(&self, next: Option<Instant>) -> Result<[bool; 3], Errno> {
        let timeout = next.map(|next| timespec(next - now()));
        let bell = || PollFd::new(&*self.bell, PollFlags::IN);
        // A device that is gone would be ready for ever.
        let device = |place: usize| match self.present[place] {
            true => PollFd::new(&self.devices[place], PollFlags::IN),
            false => bell(),
        };
        let mut sources = [device(0), device(1), bell()];
        poll(&mut sources, timeout.as_ref())?;
        Ok(sources.map(|source| !source.revents().is_empty()))
    }

    /// Carries out an order. Returns whether to go on.
    fn obey(&mut self) -> bool {
        let _ = read(&*self.bell, &mut [0_u8; 8][..]);
        loop {
            match self.orders.try_recv() {
                // The asker may be gone.
                Ok(ForwarderOrder::Report(answer)) => drop(answer.send(self.report())),
                Ok(ForwarderOrder::Restart) => {
                    self.links = links(&self.config);
                    self.refused = [0; 2];
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn report(&self) -> [DirectionReport; 2] {
        std::array::from_fn(|place| {
            let mut report = DirectionReport::default();
            self.links[place].add_to(&mut report);
            report.refused = self.refused[place];
            report
        })
    }
}

fn links(config: &TunConfig) -> [Direction<Vec<u8>>; 2] {
    let start = now();
    let up = Direction::new(&config.up, config.seed, start);
    [up, Direction::new(&config.down, config.seed.wrapping_add(1), start)]
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// A bell that [`ring`] makes readable.
pub(super) fn bell() -> io::Result<Arc<OwnedFd>> {
    use rustix::event::{EventfdFlags, eventfd};
    Ok(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
}

/// Makes a bell readable.
pub(super) fn ring(bell: &OwnedFd) {
    // It refuses only if it has not been heard for 2^64 times.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

/// The greatest number of packets read from one device before due packets are sent.
const BATCH: usize = 32;

/// No IP packet is larger.
const LARGEST_PACKET: usize = 65_536;

/// Packets kept for their memory: some 12 MB of common size.
const SPARE: usize = 8_192;
