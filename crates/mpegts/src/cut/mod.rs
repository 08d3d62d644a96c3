//! The cut of a stream for one receiver that misses a part of it.

mod inserted;
mod pictures;
mod unit;
mod versions;

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use self::inserted::{carrier, marker, pcr_field};
use self::pictures::LeadingPictures;
use self::unit::Unit;
use self::versions::Versions;
use crate::{Inspector, NULL_PID, PACKET_LEN, Packet, RandomAccess};

/// Passes a stream on to one receiver, which may miss a part of it: it joins late, is too slow, or
/// its publisher is replaced. Its decoder gets whole units only and never sees an error.
///
/// A cut has two sides. After [`leave`](Self::leave) the PES packets and sections that have begun
/// are finished, and nothing else passes. [`enter`](Self::enter) begins with the tables and then
/// with the first whole unit of each PID. A PID that no table names may have no units: all of its
/// packets pass. Where a counter or the clock does not follow from the receiver's point of view, a
/// packet with an adaptation field alone announces it (ISO/IEC 13818-1 sections 2.4.3.4 and 2.7.4).
/// At an entry each PID is announced, since the receiver may have lost packets before. In between
/// packets pass as they are. Faults of the publisher pass, too: they are not hidden.
///
/// Packets are changed in one case: a table that differs from the one that the receiver has, and
/// carries the same version, would be ignored. Then the version is counted on from the receiver's,
/// with a new checksum, until the next entry. A table with the same content keeps the version that
/// the receiver knows, so that it need not begin anew.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    state: State,
    /// In the order of their numbers.
    pids: Vec<CutPid>,
    /// The PIDs that the tables name and those of the tables, in order.
    named: Vec<u16>,
    /// The number of PIDs whose unit is not finished.
    finishing: usize,
    leading: Option<LeadingPictures>,
    versions: Versions,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    #[default]
    Out,
    In,
    Leaving,
}

/// The PID of a stream as the receiver knows it.
#[derive(Clone, Debug)]
struct CutPid {
    pid: u16,
    gate: PidGate,
    /// The counter that it saw last.
    counter: Option<u8>,
    /// Whether packets were left out since then.
    may_break: bool,
    /// Whether its next packet is announced whatever its counter is: the first one after an entry.
    /// The receiver may have lost packets that passed before.
    is_entry: bool,
    has_clock: bool,
    /// Whether the clock is to be announced at its next reference.
    clock_breaks: bool,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PidGate {
    Open,
    /// Opens with the next unit.
    Waiting,
    /// Closes with the end of the unit.
    Finishing,
    Closed,
}

/// The packets that take the place of one.
struct Passed {
    before: Option<[u8; PACKET_LEN]>,
    packet: CutChange,
}

enum CutChange {
    Same,
    Gone,
    Other([u8; PACKET_LEN]),
}

impl Cut {
    /// From now on only packets pass that finish a PES packet or a section that has begun.
    pub fn leave(&mut self) {
        if self.state != State::In {
            return;
        }
        self.state = State::Leaving;
        self.leading = None;
        for it in &mut self.pids {
            let is_open = it.gate == PidGate::Open && it.unit.has_begun();
            it.gate = if is_open { PidGate::Finishing } else { PidGate::Closed };
        }
        self.finishing = self.pids.iter().filter(|it| it.gate == PidGate::Finishing).count();
    }

    /// Whether nothing passes any more: before the first entry, and after the last unit has been
    /// finished. A publisher that stopped within a unit does not finish it.
    pub fn is_out(&self) -> bool {
        self.state == State::Out || (self.state == State::Leaving && self.finishing == 0)
    }

    /// Begins again with the packet of a random access point, which is the next to
    /// [`pass`](Self::pass), and gives the packets to send before it: `tables`, the packets of
    /// [`Inspector::tables`](crate::Inspector::tables) at that place.
    pub fn enter(&mut self, tables: &[u8], access: RandomAccess) -> Bytes {
        self.state = State::In;
        self.leading = access.pts.map(|pts| LeadingPictures::new(access.pid, pts));
        self.named = named(tables);
        for it in &mut self.pids {
            it.gate = first_gate(&self.named, it.pid);
            it.may_break = true;
            it.is_entry = it.counter.is_some();
            it.clock_breaks = it.has_clock;
            it.unit = Unit::default();
        }
        self.versions.enter(tables);
        let mut sent = Vec::with_capacity(tables.len() + 2 * PACKET_LEN);
        for bytes in tables.as_chunks().0 {
            if let Ok(packet) = Packet::new(bytes) {
                self.take(packet).append(bytes, &mut sent);
            }
        }
        // The stream may go on within a section of these PIDs.
        for it in &mut self.pids {
            it.gate = first_gate(&self.named, it.pid);
            it.may_break = true;
        }
        sent.into()
    }

    /// Passes on the next packets of the stream, whole ones: the message as it is as a rule. The
    /// result may be empty, and it may be longer than the message.
    pub fn pass(&mut self, message: &Bytes) -> Bytes {
        if self.is_out() {
            return Bytes::new();
        }
        let mut sent: Option<Vec<u8>> = None;
        let packets = message.as_chunks::<PACKET_LEN>().0;
        for (at, bytes) in packets.iter().enumerate() {
            let passed = match Packet::new(bytes) {
                Ok(packet) => self.take(packet),
                Err(_) => Passed { before: None, packet: CutChange::Gone },
            };
            if sent.is_none() && !passed.is_same() {
                sent = Some(message[..at * PACKET_LEN].to_vec());
            }
            if let Some(sent) = &mut sent {
                passed.append(bytes, sent);
            }
        }
        sent.map_or_else(|| message.slice(..packets.len() * PACKET_LEN), Bytes::from)
    }

    fn take(&mut self, packet: Packet<'_>) -> Passed {
        let pid = packet.pid();
        if pid == NULL_PID || packet.has_transport_error() {
            return Passed::unless(self.state != State::In);
        }
        let place = match self.pids.binary_search_by_key(&pid, |it| it.pid) {
            Ok(place) => place,
            Err(_) if self.state != State::In => return Passed::unless(true),
            Err(place) => {
                self.pids.insert(place, CutPid::new(pid, first_gate(&self.named, pid)));
                place
            }
        };
        let it = &mut self.pids[place];
        let is_start = packet.starts_payload_unit() && packet.has_payload();
        let is_leading =
            is_start && self.leading.as_mut().is_some_and(|leading| leading.has(packet));
        match it.gate {
            PidGate::Closed => return Passed::unless(true),
            PidGate::Finishing if is_start => {
                it.gate = PidGate::Closed;
                self.finishing -= 1;
                return Passed::unless(true);
            }
            PidGate::Open | PidGate::Waiting if is_leading => {
                it.gate = PidGate::Waiting;
                it.may_break = true;
                return it.pass_clock(packet);
            }
            PidGate::Waiting if packet.has_payload() && !is_start => return it.pass_clock(packet),
            PidGate::Waiting if is_start => it.gate = PidGate::Open,
            PidGate::Waiting | PidGate::Open | PidGate::Finishing => {}
        }
        let before = it.announce(packet);
        let packet = it.follow(packet, &mut self.versions);
        if it.gate == PidGate::Finishing && !it.unit.has_begun() {
            it.gate = PidGate::Closed;
            self.finishing -= 1;
        }
        Passed { before, packet }
    }
}

/// The PIDs that these packets of tables name and their own, in order.
fn named(tables: &[u8]) -> Vec<u16> {
    let mut inspector = Inspector::default();
    let mut pids = BTreeSet::new();
    for packet in tables.as_chunks().0.iter().filter_map(|bytes| Packet::new(bytes).ok()) {
        inspector.push(packet, Duration::ZERO);
        pids.insert(packet.pid());
    }
    let streams = inspector.programs().iter().flat_map(|program| &program.streams);
    pids.extend(streams.map(|stream| stream.pid));
    pids.into_iter().collect()
}

/// Whether a PID waits for its first unit. The lowest PIDs have the tables of the standards.
fn first_gate(named: &[u16], pid: u16) -> PidGate {
    let has_units = pid < 0x20 || named.binary_search(&pid).is_ok();
    if has_units { PidGate::Waiting } else { PidGate::Open }
}

impl CutPid {
    fn new(pid: u16, gate: PidGate) -> Self {
        Self {
            pid,
            gate,
            counter: None,
            may_break: true,
            is_entry: false,
            has_clock: false,
            clock_breaks: false,
            unit: Unit::default(),
        }
    }

    /// The packet that announces a break of the counter or of the clock before this one, if it is
    /// necessary.
    fn announce(&mut self, packet: Packet<'_>) -> Option<[u8; PACKET_LEN]> {
        let clock = packet.pcr().map(|_| pcr_field(packet));
        let counter = packet.continuity_counter();
        let before = if packet.has_payload() { counter.wrapping_sub(1) & 0x0F } else { counter };
        let clock_breaks = self.clock_breaks && clock.is_some();
        let is_needed = self.counter_breaks(before) || clock_breaks;
        self.may_break = self.gate == PidGate::Waiting;
        self.is_entry = false;
        self.has_clock |= clock.is_some();
        self.clock_breaks &= clock.is_none();
        if !is_needed || packet.is_discontinuity() {
            return None;
        }
        self.counter = Some(before);
        Some(marker(self.pid, before, clock.filter(|_| clock_breaks)))
    }

    /// Follows the receiver's view over a packet that passes, and changes the versions of tables.
    fn follow(&mut self, packet: Packet<'_>, versions: &mut Versions) -> CutChange {
        let counter = packet.continuity_counter();
        let is_copy = self.counter.replace(counter) == Some(counter);
        if !packet.has_payload() {
            return CutChange::Same;
        }
        if is_copy {
            // A copy would need the same change; a receiver does not need it.
            return if versions.change(self.pid) { CutChange::Gone } else { CutChange::Same };
        }
        self.unit.take(packet, versions).map_or(CutChange::Same, CutChange::Other)
    }

    /// Passes on the clock of a packet whose payload does not pass.
    fn pass_clock(&mut self, packet: Packet<'_>) -> Passed {
        if packet.pcr().is_none() {
            return Passed::unless(true);
        }
        let counter = packet.continuity_counter();
        let breaks = self.counter_breaks(counter) || self.clock_breaks || packet.is_discontinuity();
        self.counter = Some(counter);
        self.is_entry = false;
        (self.has_clock, self.clock_breaks) = (true, false);
        let carrier = carrier(self.pid, counter, pcr_field(packet), breaks);
        Passed { before: None, packet: CutChange::Other(carrier) }
    }

    /// Whether a receiver would miss packets before one that expects the counter `before`.
    fn counter_breaks(&self, before: u8) -> bool {
        self.is_entry || self.may_break && self.counter.is_some_and(|counter| counter != before)
    }
}

impl Passed {
    fn unless(is_gone: bool) -> Self {
        Self { before: None, packet: if is_gone { CutChange::Gone } else { CutChange::Same } }
    }

    fn is_same(&self) -> bool {
        self.before.is_none() && matches!(self.packet, CutChange::Same)
    }

    fn append(&self, original: &[u8; PACKET_LEN], sent: &mut Vec<u8>) {
        if let Some(before) = &self.before {
            sent.extend_from_slice(before);
        }
        match &self.packet {
            CutChange::Same => sent.extend_from_slice(original),
            CutChange::Gone => {}
            CutChange::Other(other) => sent.extend_from_slice(other),
        }
    }
}
