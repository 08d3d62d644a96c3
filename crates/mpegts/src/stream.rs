use std::time::Duration;

use crate::access::AccessFinder;
use crate::format::{self, AudioFormat, VideoFormat};
use crate::health::TableInterval;
use crate::rate::Rate;
use crate::{Packet, PesHeader, StreamKind};

/// A place at which a decoder can begin: a picture that needs no earlier one, or a frame of sound
/// in a program without video.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RandomAccess {
    /// The number of the packet in which it begins; the first packet of the stream is number 0.
    pub packet: u64,
    /// The PID of its stream.
    pub pid: u16,
    /// When it is to be shown, in ticks of 90 kHz, if the packet tells.
    pub pts: Option<u64>,
}

/// A stream of video or sound: where a decoder can begin, its format, and how often it comes.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pid: u16,
    kind: StreamKind,
    channels: Option<u8>,
    finder: Option<AccessFinder>,
    audio: Option<AudioFormat>,
    units: Rate,
    /// The PES packet at hand.
    unit: Option<RandomAccess>,
    /// Whether the PES packet at hand was told to be a random access point already.
    was_told: bool,
    /// Pictures that had the random access indicator, and are no such point by their NAL units.
    refuted: u8,
    presence: TableInterval,
    times: TableInterval,
}

/// The findings in a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) access: Option<RandomAccess>,
    /// Presentation times that came too late.
    pub(crate) late_times: u64,
}

impl Stream {
    pub(crate) fn new(pid: u16, kind: StreamKind, channels: Option<u8>, now: Duration) -> Self {
        Self {
            pid,
            kind,
            channels,
            finder: kind.is_video().then(|| AccessFinder::new(kind)),
            audio: None,
            units: Rate::default(),
            unit: None,
            was_told: false,
            refuted: 0,
            presence: TableInterval::new(now, PRESENCE),
            times: TableInterval::new(now, TIMES),
        }
    }

    pub(crate) fn kind(&self) -> StreamKind {
        self.kind
    }

    pub(crate) fn video(&self) -> Option<VideoFormat> {
        self.finder.as_ref()?.format()
    }

    pub(crate) fn audio(&self) -> Option<AudioFormat> {
        self.audio
    }

    /// The PES packets by seconds.
    pub(crate) fn units(&self) -> &Rate {
        &self.units
    }

    /// Takes in the next packet, whose number in the stream is `number`; `follows` says that no
    /// packet is missing before it.
    pub(crate) fn push(
        &mut self,
        packet: Packet<'_>,
        number: u64,
        follows: bool,
        now: Duration,
    ) -> Found {
        // A packet that comes again after five seconds was counted meanwhile.
        let _ = self.presence.met(now);
        let mut found = Found { access: None, late_times: 0 };
        let payload = packet.payload();
        if packet.starts_payload_unit() {
            self.units.count(now);
            let header = if packet.is_scrambled() { None } else { PesHeader::parse(payload) };
            let pts = header.and_then(|it| it.pts);
            if pts.is_some() || packet.is_scrambled() {
                found.late_times = self.times.met(now).into();
            }
            let access = RandomAccess { packet: number, pid: self.pid, pts };
            (self.unit, self.was_told) = (Some(access), false);
            let is_indicated = packet.is_random_access();
            let is_entry = match (&mut self.finder, header) {
                (Some(finder), Some(header)) => {
                    let is_found = finder.begin(header, payload);
                    let is_trusted = is_indicated && self.refuted < REFUTED;
                    let is_refuted = is_indicated && finder.is_done() && !is_found;
                    self.refuted = self.refuted.saturating_add(is_refuted.into());
                    is_found || is_trusted
                }
                (Some(_), None) => is_indicated,
                (None, _) => true,
            };
            self.read_audio(header, payload);
            if is_entry {
                self.was_told = true;
                found.access = self.unit;
            }
        } else if let Some(finder) = &mut self.finder
            && !finder.is_done()
        {
            if !follows || packet.is_scrambled() {
                self.unit = None;
                finder.give_up();
            } else if finder.go_on(payload) {
                found.access = self.unit.filter(|_| !self.was_told);
                self.was_told = true;
            } else if finder.is_done() && self.was_told {
                self.refuted = self.refuted.saturating_add(1);
            }
        }
        found
    }

    /// The streams that should have come since: packets, and presentation times.
    pub(crate) fn check(&mut self, now: Duration) -> (u64, u64) {
        (self.presence.is_overdue(now).into(), self.times.is_overdue(now).into())
    }

    fn read_audio(&mut self, header: Option<PesHeader>, payload: &[u8]) {
        let Some(header) = header.filter(|_| self.kind.is_audio()) else { return };
        let frame = payload.get(header.payload_at..).unwrap_or_default();
        self.audio = format::audio(self.kind, frame, self.channels).or(self.audio);
    }
}

const PRESENCE: Duration = Duration::from_secs(5);
const TIMES: Duration = Duration::from_millis(700);
/// Pictures after which the indicator says nothing.
const REFUTED: u8 = 2;
