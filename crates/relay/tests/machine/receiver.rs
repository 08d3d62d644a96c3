//! The demo clip, and a receiver that checks what it gets of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::{Checker, Inspector, PACKET_LEN, Packet};
use punctual_relay::Message;

/// The PIDs of picture and sound.
pub(crate) const PICTURE: u16 = 0x100;
const SOUND: u16 = 0x101;

/// The clip, with the PES packets of each PID.
pub(crate) struct Clip {
    pub(crate) bytes: Bytes,
    units: BTreeMap<u16, BTreeSet<Vec<u8>>>,
    /// The pictures at which a decoder can begin.
    entries: BTreeSet<Vec<u8>>,
}

pub(crate) static CLIP: LazyLock<Clip> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts");
    let bytes = Bytes::from(std::fs::read(path).expect("the clip is part of the repository"));
    let mut units: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    let (mut inspector, mut entries) = (Inspector::default(), BTreeSet::new());
    for packet in packets(&bytes) {
        let access = inspector.push(packet, Duration::ZERO);
        if matches!(packet.pid(), PICTURE | SOUND) && packet.has_payload() {
            let all = units.entry(packet.pid()).or_default();
            if packet.starts_payload_unit() {
                all.push(Vec::new());
            }
            let last = all.last_mut().expect("each PID begins with a unit");
            last.extend_from_slice(packet.payload());
        }
        if access.is_some() {
            entries.insert(units[&PICTURE].len() - 1);
        }
    }
    let entries = entries.into_iter().map(|place| units[&PICTURE][place].clone()).collect();
    let units = units.into_iter().map(|(pid, all)| (pid, all.into_iter().collect()));
    Clip { units: units.collect(), bytes, entries }
});

pub(crate) fn packets(bytes: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    assert!(bytes.len().is_multiple_of(PACKET_LEN), "a viewer gets whole packets");
    let view = |bytes| Packet::new(bytes).expect("a viewer gets packets");
    bytes.as_chunks::<PACKET_LEN>().0.iter().map(view)
}

/// Checks what one viewer gets, as it comes.
#[derive(Default)]
pub(crate) struct Receiver {
    checker: Checker,
    /// The unit at hand of each PID.
    open: BTreeMap<u16, Vec<u8>>,
    /// Whether the next picture has to be one at which a decoder can begin.
    is_break: bool,
    pub(crate) messages: u64,
    pub(crate) breaks: u64,
    pub(crate) units: u64,
    /// Units that are the start of one of the clip's, without its end.
    pub(crate) cut_units: u64,
    /// Units with a part missing.
    pub(crate) damaged_units: u64,
}

impl Receiver {
    pub(crate) fn push(&mut self, message: &Message) {
        assert!(message.payload.len() <= 1_456, "one packet of SRT carries it");
        if message.is_break || self.messages == 0 {
            self.is_break = true;
            self.breaks += u64::from(message.is_break);
        }
        self.push_payload(&message.payload);
    }

    /// Takes in a message as it came over a link, which does not tell of breaks.
    pub(crate) fn push_payload(&mut self, payload: &Bytes) {
        self.messages += 1;
        self.checker.push(payload);
        for packet in packets(payload) {
            if matches!(packet.pid(), PICTURE | SOUND) && packet.has_payload() {
                self.join(packet);
            }
        }
    }

    fn join(&mut self, packet: Packet<'_>) {
        let pid = packet.pid();
        if !packet.starts_payload_unit() {
            let unit = self.open.get_mut(&pid).expect("each PID begins with a unit");
            return unit.extend_from_slice(packet.payload());
        }
        if let Some(unit) = self.open.insert(pid, packet.payload().to_vec()) {
            self.judge(pid, &unit);
        }
        if pid == PICTURE && std::mem::take(&mut self.is_break) {
            let start = packet.payload();
            let begins = CLIP.entries.iter().any(|entry| entry.starts_with(start));
            assert!(begins, "the first picture needs no other");
        }
    }

    fn judge(&mut self, pid: u16, unit: &[u8]) {
        self.units += 1;
        let all = &CLIP.units[&pid];
        if !all.contains(unit) {
            let is_cut = all.iter().any(|it| it.starts_with(unit));
            self.cut_units += u64::from(is_cut);
            self.damaged_units += u64::from(!is_cut);
        }
    }

    /// Asserts that its decoder saw no error: no counter and no clock jumped without notice, and
    /// all units are whole but `most_cut`.
    pub(crate) fn assert_clean(&self, most_cut: u64) {
        let report = self.checker.report();
        let total = report.total();
        assert_eq!((report.sync_losses, report.skipped_bytes), (0, 0));
        assert_eq!((total.continuity_errors, total.duplicates), (0, 0));
        assert_eq!(total.pcr_discontinuities, 0);
        assert_eq!(self.damaged_units, 0);
        assert!(self.cut_units <= most_cut, "{} units are cut", self.cut_units);
    }
}
