use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::{Clock, ClockReport};
use crate::continuity::Verdict;
use crate::format::{AudioFormat, VideoFormat};
use crate::health::{Fault, Health, TableInterval};
use crate::pid_check::{Checked, ClockStep, PidCheck};
use crate::psi::{CAT, PAT, Program, TableChange, Tables};
use crate::rate::Rate;
use crate::section::SectionReader;
use crate::stream::{RandomAccess, Stream};
use crate::{NULL_PID, PACKET_LEN, Packet, StreamReport};

/// Reads a stream as it passes: its programs and their formats, the places at which a decoder can
/// begin, its rates and its faults.
///
/// Each packet goes in once, by [`push`](Self::push), in order and with the time of its arrival
/// since any origin. Nothing of a packet is kept but the tables and the starts of a few headers.
#[derive(Clone, Debug)]
pub struct Inspector {
    /// The place of each PID in `pids`, plus one.
    places: Box<[u16]>,
    pids: Vec<Pid>,
    tables: Tables,
    health: Health,
    packets: u64,
    null_packets: u64,
    transport_errors: u64,
    pat: Option<TableInterval>,
    /// Begins with the first scrambled packet.
    cat: Option<TableInterval>,
    /// The PID of the stream whose random access points count.
    lead: Option<u16>,
    last_access: Option<(Duration, RandomAccess)>,
    access_interval: Option<Duration>,
    next_check: Duration,
    total: Rate,
}

#[derive(Clone, Debug)]
struct Pid {
    pid: u16,
    check: PidCheck,
    rate: Rate,
    role: Role,
    clock: Option<Box<Clock>>,
}

#[derive(Clone, Debug)]
enum Role {
    None,
    /// PAT, CAT or SDT.
    Fixed(Box<SectionReader>),
    Map(Box<SectionReader>, TableInterval),
    Stream(Box<Stream>),
}

impl Default for Inspector {
    fn default() -> Self {
        Self {
            places: vec![0; 1 << 13].into(),
            pids: Vec::new(),
            tables: Tables::default(),
            health: Health::default(),
            packets: 0,
            null_packets: 0,
            transport_errors: 0,
            pat: None,
            cat: None,
            lead: None,
            last_access: None,
            access_interval: None,
            next_check: Duration::ZERO,
            total: Rate::default(),
        }
    }
}

impl Inspector {
    /// Takes in the next packet, which arrived at `now`.
    ///
    /// Tells a random access point as soon as it is known. It begins in this packet or in an
    /// earlier one. The first stream of video of the first program counts, or its first
    /// stream of sound if it has no video.
    pub fn push(&mut self, packet: Packet<'_>, now: Duration) -> Option<RandomAccess> {
        let number = self.packets;
        self.packets += 1;
        self.total.count(now);
        if now >= self.next_check {
            self.check(now);
        }
        if packet.has_transport_error() {
            self.transport_errors += 1;
            self.health.count(Fault::Transport, 1, now);
            return None;
        }
        let pid = packet.pid();
        if pid == NULL_PID {
            self.null_packets += 1;
            return None;
        }
        let place = self.place(pid);
        let it = &mut self.pids[place];
        it.rate.count(now);
        let checked = it.check.count(packet)?;
        if packet.is_scrambled() {
            self.cat.get_or_insert(TableInterval::new(now, CAT_INTERVAL));
        }
        if let Some(step) = checked.clock {
            self.check_clock(place, step, number, now);
        }
        let follows = match checked.continuity {
            Verdict::Continuous => true,
            Verdict::Duplicate => return None,
            Verdict::Broken { .. } => {
                self.health.count(Fault::Continuity, 1, now);
                false
            }
        };
        match self.pids[place].role {
            Role::None => None,
            Role::Stream(ref mut stream) => {
                let found = stream.push(packet, number, follows, now);
                self.health.count(Fault::Pts, found.late_times, now);
                found.access.and_then(|access| self.note_access(access, now))
            }
            Role::Fixed(_) | Role::Map(..) => {
                self.read_table(place, packet, checked, now);
                None
            }
        }
    }

    /// Looks for what is missing, as [`push`](Self::push) does from time to time: for a stream of
    /// which nothing comes any more.
    pub fn check(&mut self, now: Duration) {
        self.next_check = now.saturating_add(CHECK_PERIOD);
        let pat = self.pat.get_or_insert(TableInterval::new(now, TABLE_INTERVAL));
        self.health.count(Fault::Pat, pat.is_overdue(now).into(), now);
        if let Some(cat) = &mut self.cat {
            self.health.count(Fault::Cat, cat.is_overdue(now).into(), now);
        }
        for it in &mut self.pids {
            match &mut it.role {
                Role::Map(_, interval) => {
                    self.health.count(Fault::Pmt, interval.is_overdue(now).into(), now);
                }
                Role::Stream(stream) => {
                    let (missing, late_times) = stream.check(now);
                    self.health.count(Fault::Pid, missing, now);
                    self.health.count(Fault::Pts, late_times, now);
                }
                Role::None | Role::Fixed(_) => {}
            }
        }
    }

    /// Counts faults that were found before there was a packet: `losses` of sync, and `bytes`
    /// packets whose sync byte alone is wrong.
    pub fn count_sync_faults(&mut self, losses: u64, bytes: u64, now: Duration) {
        self.health.count(Fault::SyncLoss, losses, now);
        self.health.count(Fault::SyncByte, bytes, now);
    }

    /// The programs whose map is known, in the order of the PAT.
    pub fn programs(&self) -> &[Program] {
        self.tables.programs()
    }

    /// The latest packets of the PAT and of the maps as they came, for a receiver that begins at
    /// the packet at hand.
    pub fn tables(&self) -> Bytes {
        let packets = self.tables.packets();
        packets.iter().flat_map(|it| it.1).collect::<Vec<_>>().into()
    }

    /// The number of packets so far, which is that of the next one.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The faults of the stream.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The totals of the stream and of each PID. There are no bytes outside packets.
    pub fn report(&self) -> StreamReport {
        // A PID that the tables name may not have come.
        let seen = self.pids.iter().map(|it| (it.pid, it.check.report()));
        let seen = seen.filter(|(_, report)| report.packets > 0);
        StreamReport {
            bytes: self.packets * PACKET_LEN as u64,
            packets: self.packets,
            null_packets: self.null_packets,
            transport_errors: self.transport_errors,
            pids: seen.collect(),
            ..StreamReport::default()
        }
    }

    /// The latest random access point.
    pub fn random_access(&self) -> Option<RandomAccess> {
        self.last_access.map(|it| it.1)
    }

    /// The time from the last random access point but one to the last, by their presentation
    /// times, or by arrival if these are unknown: the length of a group of pictures.
    pub fn random_access_interval(&self) -> Option<Duration> {
        self.access_interval
    }

    /// The format of a stream of video, by the latest sequence header.
    pub fn video(&self, pid: u16) -> Option<VideoFormat> {
        self.stream(pid)?.video()
    }

    /// The format of a stream of sound, by the latest frame whose header was read.
    pub fn audio(&self, pid: u16) -> Option<AudioFormat> {
        self.stream(pid)?.audio()
    }

    /// PES packets that began in the latest full second: of most video, its frames.
    pub fn units_per_second(&self, pid: u16, now: Duration) -> Option<u32> {
        self.stream(pid).map(|stream| stream.units().at(now))
    }

    /// Bits of the packets of a PID in the latest full second.
    pub fn bit_rate(&self, pid: u16, now: Duration) -> u64 {
        self.find(pid).map_or(0, |it| bits(&it.rate, now))
    }

    /// Bits of all packets, null packets too, in the latest full second.
    pub fn total_bit_rate(&self, now: Duration) -> u64 {
        bits(&self.total, now)
    }

    /// The clock on a PID beside the time of arrival; `None` within its first second.
    pub fn clock(&self, pid: u16) -> Option<ClockReport> {
        self.find(pid)?.clock.as_ref()?.report()
    }

    fn find(&self, pid: u16) -> Option<&Pid> {
        let place = usize::from(*self.places.get(usize::from(pid))?);
        self.pids.get(place.checked_sub(1)?)
    }

    fn stream(&self, pid: u16) -> Option<&Stream> {
        match &self.find(pid)?.role {
            Role::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// The place of a PID's state, which is made for the first packet.
    fn place(&mut self, pid: u16) -> usize {
        let place = &mut self.places[usize::from(pid)];
        if *place == 0 {
            let role = match pid {
                0 | CAT_PID | SDT_PID => Role::Fixed(Box::default()),
                _ => Role::None,
            };
            let (check, rate) = (PidCheck::default(), Rate::default());
            self.pids.push(Pid { pid, check, rate, role, clock: None });
            *place = u16::try_from(self.pids.len()).expect("there are 8,192 PIDs");
        }
        usize::from(*place) - 1
    }

    fn check_clock(&mut self, place: usize, step: ClockStep, number: u64, now: Duration) {
        let clock = &mut self.pids[place].clock;
        let clock = clock.get_or_insert_with(|| Box::new(Clock::new(number, now)));
        for fault in clock.push(step, number, now) {
            self.health.count(fault, 1, now);
        }
    }

    fn read_table(&mut self, place: usize, packet: Packet<'_>, checked: Checked, now: Duration) {
        let number = self.packets - 1;
        let it = &mut self.pids[place];
        let pid = it.pid;
        let follows = checked.continuity == Verdict::Continuous;
        let (tables, mut change, mut is_there) = (&mut self.tables, TableChange::None, false);
        let mut foreign = 0;
        let take = |section: crate::section::Section<'_>| {
            let table = section.bytes[0];
            let changed = match pid {
                0 => tables.pat(section),
                CAT_PID => TableChange::None,
                SDT_PID => tables.sdt(section),
                _ => tables.pmt(pid, section),
            };
            let is_foreign = (pid == 0 && table != PAT) || (pid == CAT_PID && table != CAT);
            is_there |= !is_foreign;
            foreign += u64::from(is_foreign);
            if changed == TableChange::Programs {
                change = TableChange::Programs;
            }
        };
        let (Role::Fixed(reader) | Role::Map(reader, _)) = &mut it.role else { return };
        let damaged = reader.push(packet, number, follows, take);
        let is_scrambled = u64::from(packet.is_scrambled());
        match &mut it.role {
            Role::Map(_, interval) => {
                let is_late = is_there && interval.met(now);
                self.health.count(Fault::Pmt, u64::from(is_late) + is_scrambled, now);
            }
            _ if pid == 0 => {
                let pat = self.pat.get_or_insert(TableInterval::new(now, TABLE_INTERVAL));
                let is_late = is_there && pat.met(now);
                self.health.count(Fault::Pat, u64::from(is_late) + is_scrambled + foreign, now);
            }
            _ => {
                if let Some(cat) = self.cat.as_mut().filter(|_| is_there && pid == CAT_PID) {
                    cat.met(now);
                }
                self.health.count(Fault::Cat, foreign, now);
            }
        }
        self.health.count(Fault::Crc, damaged, now);
        if change == TableChange::Programs {
            self.assign(now);
        }
    }

    /// Gives each PID the role that the tables say.
    fn assign(&mut self, now: Duration) {
        let maps: Vec<u16> = self.tables.pmt_pids().filter(|pid| is_free(*pid)).collect();
        let streams = self.tables.programs().iter().flat_map(|it| &it.streams);
        let streams: BTreeMap<u16, _> = streams
            .filter(|it| (it.kind.is_video() || it.kind.is_audio()) && is_free(it.pid))
            .map(|it| (it.pid, (it.kind, it.channels)))
            .collect();
        for it in &mut self.pids {
            let is_kept = match &it.role {
                Role::None | Role::Fixed(_) => true,
                Role::Map(..) => maps.contains(&it.pid),
                Role::Stream(stream) => {
                    streams.get(&it.pid).is_some_and(|own| own.0 == stream.kind())
                }
            };
            if !is_kept {
                it.role = Role::None;
            }
        }
        for pid in maps {
            let place = self.place(pid);
            if matches!(self.pids[place].role, Role::None) {
                let interval = TableInterval::new(now, TABLE_INTERVAL);
                self.pids[place].role = Role::Map(Box::default(), interval);
            }
        }
        for (pid, (kind, channels)) in streams {
            let place = self.place(pid);
            if matches!(self.pids[place].role, Role::None) {
                let stream = Stream::new(pid, kind, channels, now);
                self.pids[place].role = Role::Stream(Box::new(stream));
            }
        }
        self.lead = self.tables.programs().first().and_then(lead);
    }

    fn note_access(&mut self, access: RandomAccess, now: Duration) -> Option<RandomAccess> {
        if self.lead != Some(access.pid) {
            return None;
        }
        if let Some((before, earlier)) = self.last_access.replace((now, access)) {
            let by_arrival = now.saturating_sub(before);
            let by_clock =
                earlier.pts.zip(access.pts).and_then(|(from, to)| pts_interval(from, to));
            self.access_interval = Some(by_clock.unwrap_or(by_arrival));
        }
        Some(access)
    }
}

/// The PID of the stream whose random access points count for a program.
fn lead(program: &Program) -> Option<u16> {
    let video = program.streams.iter().find(|it| it.kind.is_video());
    let lead = video.or_else(|| program.streams.iter().find(|it| it.kind.is_audio()));
    lead.map(|it| it.pid)
}

/// The time from one presentation time to another, unless it is back or over an hour.
fn pts_interval(from: u64, to: u64) -> Option<Duration> {
    const HOUR: u64 = 3_600 * crate::PesHeader::HZ;
    let ticks = to.wrapping_sub(from) & ((1 << 33) - 1);
    (ticks < HOUR).then(|| Duration::from_nanos(ticks * 1_000_000_000 / crate::PesHeader::HZ))
}

/// Whether the tables may give a PID a role.
fn is_free(pid: u16) -> bool {
    !matches!(pid, 0 | CAT_PID | SDT_PID | NULL_PID)
}

fn bits(packets: &Rate, now: Duration) -> u64 {
    u64::from(packets.at(now)) * PACKET_LEN as u64 * 8
}

const CAT_PID: u16 = 1;
const SDT_PID: u16 = 0x11;
const CHECK_PERIOD: Duration = Duration::from_millis(100);
const TABLE_INTERVAL: Duration = Duration::from_millis(500);
const CAT_INTERVAL: Duration = Duration::from_secs(10);
