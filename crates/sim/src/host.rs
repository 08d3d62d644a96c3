use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use punctual_proto::{Config, ConnectionId, SocketId, Transmission, WakeUp};
use punctual_units::Instant;

use crate::clock::Clock;
use crate::error::WorldError;
use crate::machine::{HostCarriage, HostMachine};
use crate::packet::IpPacket;
use crate::seeds::{Purpose, SplitMix64, derive};

/// A host: one UDP port with the machine of its [`HostCarriage`] behind it, driven as a real host
/// would. The default has SRT over UDP and the world's time, and wakes up without delay.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    carriage: HostCarriage,
    offset: Duration,
    drift_ppm: i32,
    lateness: Lateness,
    checksums: bool,
}

/// How late a host wakes up: a fixed part, and one of chance that is exponentially distributed.
/// Each wake-up draws anew, be it for a timer, for datagrams that have arrived, or because the
/// application is to send its next message. Whatever else falls due meanwhile is done in the same
/// wake-up. The default is never late.
///
/// A real host with a free core serves its timers some tens of microseconds late.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lateness {
    /// The fixed part: each wake-up is at least this late.
    pub least: Duration,
    /// The mean of the random part.
    pub mean: Duration,
    /// The maximum of the random part.
    pub most: Duration,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            carriage: HostCarriage::default(),
            offset: Duration::ZERO,
            drift_ppm: 0,
            lateness: Lateness::default(),
            checksums: true,
        }
    }
}

impl HostConfig {
    /// Lets the host's packets travel like this.
    #[must_use]
    pub fn with_carriage(self, carriage: HostCarriage) -> Self {
        Self { carriage, ..self }
    }

    /// Puts the host's clock ahead of the world's by this time at the start.
    #[must_use]
    pub fn with_offset(self, offset: Duration) -> Self {
        Self { offset, ..self }
    }

    /// Lets the host's clock run fast by `ppm` millionths, or slow if that is negative.
    ///
    /// # Errors
    ///
    /// The drift must lie within -100,000 to 100,000 ppm.
    pub fn with_drift_ppm(self, ppm: i32) -> Result<Self, WorldError> {
        if !(-100_000..=100_000).contains(&ppm) {
            return Err(WorldError::Drift(ppm));
        }
        Ok(Self { drift_ppm: ppm, ..self })
    }

    /// Lets the host wake up late.
    #[must_use]
    pub fn with_lateness(self, lateness: Lateness) -> Self {
        Self { lateness, ..self }
    }

    /// Whether the host checks UDP checksums (default), as everybody's does: datagrams that a link
    /// has corrupted never arrive then. Without, the damage reaches the protocol.
    #[must_use]
    pub fn with_checksums(self, checksums: bool) -> Self {
        Self { checksums, ..self }
    }
}

impl Lateness {
    /// Whether every wake-up is in time.
    pub(crate) fn is_none(self) -> bool {
        self.least.is_zero() && self.mean.is_zero()
    }

    /// Draws how late one wake-up is.
    pub(crate) fn draw(self, chance: &mut SplitMix64) -> Duration {
        self.least.saturating_add(chance.exponential(self.mean).min(self.most))
    }
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    /// The number of its stream.
    pub(crate) stream: usize,
    /// The number of the link, of a stream over several; otherwise 0.
    pub(crate) link: usize,
}

/// A host at work.
#[derive(Debug)]
pub(crate) struct RunningHost {
    pub(crate) machine: HostMachine,
    pub(crate) clock: Clock,
    pub(crate) address: SocketAddr,
    pub(crate) lateness: Lateness,
    pub(crate) checksums: bool,
    /// Datagrams that the checksum found damaged.
    pub(crate) damaged: u64,
    /// Packets that wait for the host to wake up.
    pub(crate) inbox: Vec<IpPacket>,
    /// The purposes of its connections.
    pub(crate) streams: BTreeMap<ConnectionId, Use>,
    /// The purposes of the callers that it waits for, by address and socket ID.
    pub(crate) expected: BTreeMap<(SocketAddr, SocketId), Use>,
    /// How data travel over the connections that it accepts; `None` before there are any.
    pub(crate) transmission: Option<Transmission>,
    chance: SplitMix64,
    /// When the machine asked to be woken up, and when it will be.
    timer: Option<(WakeUp, Instant)>,
    /// When it wakes up to read the inbox.
    arrival: Option<Instant>,
}

impl RunningHost {
    /// Host number `index` of the world with this seed.
    pub(crate) fn new(config: &HostConfig, seed: u64, index: usize) -> Self {
        let clock = Clock::new(config.offset, config.drift_ppm);
        let mut chance = SplitMix64::new(derive(seed, Purpose::Endpoint, index));
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&chance.next().to_le_bytes());
        }
        let now = clock.local(Instant::ORIGIN);
        let mut machine = HostMachine::new(config.carriage, bytes, now);
        machine.listen(listening(Transmission::Live));
        Self {
            machine,
            clock,
            address: address(index).into(),
            lateness: config.lateness,
            checksums: config.checksums,
            damaged: 0,
            inbox: Vec::new(),
            streams: BTreeMap::new(),
            expected: BTreeMap::new(),
            transmission: None,
            chance: SplitMix64::new(derive(seed, Purpose::Lateness, index)),
            timer: None,
            arrival: None,
        }
    }

    /// Lets callers in whose data travel like this. A real port has one kind of them, too.
    pub(crate) fn admit(&mut self, transmission: Transmission) {
        self.transmission = Some(transmission);
        self.machine.listen(listening(transmission));
    }

    /// A packet has arrived that is to be taken in at the next wake-up.
    pub(crate) fn put_aside(&mut self, now: Instant, packet: IpPacket) {
        self.inbox.push(packet);
        if self.arrival.is_none() {
            self.arrival = Some(now + self.lateness.draw(&mut self.chance));
        }
    }

    /// The host is awake: takes out what has arrived.
    pub(crate) fn wake(&mut self, now: Instant) -> Vec<IpPacket> {
        if self.arrival.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.arrival = None;
        std::mem::take(&mut self.inbox)
    }

    /// When the host wakes up next, after its machine has been touched.
    pub(crate) fn next_wake(&mut self, now: Instant) -> Option<Instant> {
        let asked = match self.machine.poll_timeout() {
            WakeUp::At(local) => WakeUp::At(self.clock.world(local)),
            other => other,
        };
        let due = asked.instant(now).map(|at| at.max(now));
        if self.lateness.is_none() {
            return due;
        }
        self.timer = match (due, self.timer) {
            // A timer that is set for this already is not put off.
            (Some(_), Some((before, served))) if asked == before && served > now => {
                Some((asked, served))
            }
            (Some(at), _) => Some((asked, at + self.lateness.draw(&mut self.chance))),
            (None, _) => None,
        };
        match (self.timer, self.arrival) {
            (Some((_, a)), Some(b)) => Some(a.min(b)),
            (Some((_, a)), None) => Some(a),
            (None, b) => b,
        }
    }
}

/// With what callers are looked at before the application is asked.
fn listening(transmission: Transmission) -> Config {
    Config::default().with_transmission(transmission).with_group_connect(true)
}

/// The address that host number `index` has at first: a private one whose last bytes are the
/// number.
pub(crate) fn address(index: usize) -> SocketAddrV4 {
    let number = u32::try_from(index + 1).unwrap_or(u32::MAX) & 0x00FF_FFFF;
    let address = Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() | number);
    SocketAddrV4::new(address, PORT)
}

/// The number of the host at an address that this world gave.
pub(crate) fn host_at(address: SocketAddr) -> Option<usize> {
    let SocketAddr::V4(address) = address else { return None };
    (address.ip().to_bits() & 0x00FF_FFFF).checked_sub(1).map(|index| index as usize)
}

/// The port of every host's endpoint.
pub(crate) const PORT: u16 = 9_000;
