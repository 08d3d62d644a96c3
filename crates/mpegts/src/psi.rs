use std::collections::BTreeMap;

use crate::kind::{self, StreamKind, descriptors};
use crate::section::{LONG_LEN, NumberedPacket, Section};

/// A program of a stream, as its map (PMT) describes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program {
    /// The number that the association table (PAT) gives it.
    pub number: u16,
    /// The PID of its map.
    pub pmt_pid: u16,
    /// The PID that has its clock; 0x1FFF if it has none.
    pub pcr_pid: u16,
    /// Its streams, in the order of the map.
    pub streams: Vec<ElementaryStream>,
    /// The service's name in the SDT of DVB (ETSI EN 300 468 section 5.2.3), if it has one.
    pub name: Option<String>,
}

/// A stream of a program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ElementaryStream {
    /// The PID of its packets.
    pub pid: u16,
    /// Its meaning.
    pub kind: StreamKind,
    /// Its language, by three letters of ISO 639-2.
    pub language: Option<String>,
    /// The number of channels that a descriptor tells (Opus).
    pub(crate) channels: Option<u8>,
}

/// The tables of a stream that are in force.
///
/// At most 64 programs are known, with 32 streams each; more are ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pat: BTreeMap<u8, PatSection>,
    pmts: BTreeMap<u16, Pmt>,
    names: BTreeMap<u16, String>,
    /// The programs whose map is known, in the order of the PAT.
    programs: Vec<Program>,
}

#[derive(Clone, Debug)]
struct PatSection {
    body: Vec<u8>,
    version: u8,
    packets: Vec<NumberedPacket>,
}

#[derive(Clone, Debug)]
struct Pmt {
    pid: u16,
    body: Vec<u8>,
    packets: Vec<NumberedPacket>,
}

/// The change that a section made: none that matters, or to the programs and the PIDs of maps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TableChange {
    None,
    Programs,
}

impl Tables {
    pub(crate) fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The PIDs of maps that the PAT names, known or not yet.
    pub(crate) fn pmt_pids(&self) -> impl Iterator<Item = u16> {
        self.listed().map(|(_, pid)| pid)
    }

    /// Takes in a section of PID 0.
    pub(crate) fn pat(&mut self, section: Section<'_>) -> TableChange {
        let Some(long) = Long::new(section.bytes, PAT) else { return TableChange::None };
        // A new version begins without the sections of the old one.
        self.pat.retain(|number, it| it.version == long.version && *number <= long.last);
        let known = self.pat.get(&long.number).is_some_and(|it| it.body == long.body);
        if self.pat.len() < PAT_SECTIONS || self.pat.contains_key(&long.number) {
            let (body, packets) = (long.body.to_vec(), section.packets.to_vec());
            self.pat.insert(long.number, PatSection { body, version: long.version, packets });
        }
        if known {
            return TableChange::None;
        }
        let listed: BTreeMap<u16, u16> = self.listed().collect();
        self.pmts.retain(|number, pmt| listed.get(number) == Some(&pmt.pid));
        self.change();
        TableChange::Programs
    }

    /// Takes in a section of `pid`, on which the PAT promises a map.
    pub(crate) fn pmt(&mut self, pid: u16, section: Section<'_>) -> TableChange {
        let Some(long) = Long::new(section.bytes, PMT) else { return TableChange::None };
        if !self.listed().any(|it| it == (long.extension, pid)) {
            return TableChange::None;
        }
        let packets = section.packets.to_vec();
        if let Some(known) = self.pmts.get_mut(&long.extension).filter(|it| it.body == long.body) {
            known.packets = packets;
            return TableChange::None;
        }
        self.pmts.insert(long.extension, Pmt { pid, body: long.body.to_vec(), packets });
        self.change()
    }

    /// Takes in a section of PID 0x11.
    pub(crate) fn sdt(&mut self, section: Section<'_>) -> TableChange {
        let Some(long) = Long::new(section.bytes, SDT) else { return TableChange::None };
        let mut services = long.body.get(3..).unwrap_or_default();
        let mut changed = false;
        while let Some((&[high, low, _, flags, len], rest)) = services.split_first_chunk() {
            let len = usize::from(u16::from_be_bytes([flags & 0x0F, len])).min(rest.len());
            let (own, following) = rest.split_at(len);
            services = following;
            let number = u16::from_be_bytes([high, low]);
            let name = descriptors(own).find_map(|(tag, body)| service_name(tag, body));
            let Some(name) = name.filter(|_| self.pmts.contains_key(&number)) else { continue };
            changed |= self.names.get(&number) != Some(&name);
            self.names.insert(number, name);
        }
        if changed { self.change() } else { TableChange::None }
    }

    /// The latest packets of the PAT and of the maps, as they came, PID by PID.
    pub(crate) fn packets(&self) -> Vec<NumberedPacket> {
        let pat = self.pat.values().flat_map(|it| &it.packets);
        let mut all: Vec<NumberedPacket> =
            pat.chain(self.pmts.values().flat_map(|it| &it.packets)).copied().collect();
        let pid = |packet: &NumberedPacket| u16::from_be_bytes([packet.1[1] & 0x1F, packet.1[2]]);
        all.sort_by_key(|packet| (pid(packet), packet.0));
        all.dedup_by_key(|packet| packet.0);
        all
    }

    /// The numbers of the programs and the PIDs of their maps. Number 0 is that of the network.
    fn listed(&self) -> impl Iterator<Item = (u16, u16)> {
        let entries = self.pat.values().flat_map(|it| it.body.as_chunks::<4>().0);
        let entry = |it: &[u8; 4]| {
            (u16::from_be_bytes([it[0], it[1]]), u16::from_be_bytes([it[2] & 0x1F, it[3]]))
        };
        entries.map(entry).filter(|(number, _)| *number != 0).take(PROGRAMS)
    }

    fn change(&mut self) -> TableChange {
        self.names.retain(|number, _| self.pmts.contains_key(number));
        let program = |(number, _)| {
            let pmt = self.pmts.get(&number)?;
            let mut program = parse_pmt(number, pmt)?;
            program.name = self.names.get(&number).cloned();
            Some(program)
        };
        let programs: Vec<Program> = self.listed().filter_map(program).collect();
        if programs == self.programs {
            return TableChange::None;
        }
        self.programs = programs;
        TableChange::Programs
    }
}

fn parse_pmt(number: u16, pmt: &Pmt) -> Option<Program> {
    let (&[high, low, flags, len], rest) = pmt.body.split_first_chunk()?;
    let len = usize::from(u16::from_be_bytes([flags & 0x0F, len])).min(rest.len());
    let (of_program, mut rest) = rest.split_at(len);
    let mut streams = Vec::new();
    while let Some((&[stream_type, pid_high, pid_low, flags, len], following)) =
        rest.split_first_chunk()
        && streams.len() < STREAMS
    {
        let len = usize::from(u16::from_be_bytes([flags & 0x0F, len])).min(following.len());
        let (own, following) = following.split_at(len);
        rest = following;
        streams.push(ElementaryStream {
            pid: u16::from_be_bytes([pid_high & 0x1F, pid_low]),
            kind: StreamKind::new(stream_type, own, of_program),
            language: kind::language(own),
            channels: kind::opus_channels(own),
        });
    }
    let pcr_pid = u16::from_be_bytes([high & 0x1F, low]);
    Some(Program { number, pmt_pid: pmt.pid, pcr_pid, streams, name: None })
}

/// The fields of a section of the long syntax that is in force (ISO/IEC 13818-1 section 2.4.4.11).
struct Long<'a> {
    extension: u16,
    version: u8,
    number: u8,
    last: u8,
    body: &'a [u8],
}

impl<'a> Long<'a> {
    /// The fields, if it is a section of this table, and in force now.
    fn new(bytes: &'a [u8], table: u8) -> Option<Self> {
        let is_current = bytes.len() >= LONG_LEN
            && bytes[0] == table
            && bytes[1] & 0x80 != 0
            && bytes[5] & 1 != 0;
        is_current.then(|| Self {
            extension: u16::from_be_bytes([bytes[3], bytes[4]]),
            version: bytes[5] >> 1 & 0x1F,
            number: bytes[6],
            last: bytes[7],
            body: &bytes[8..bytes.len() - 4],
        })
    }
}

/// The name in a service descriptor, as far as it is text: Latin letters of tables other than
/// UTF-8 are taken for ISO 8859-1, and control codes are left out.
fn service_name(tag: u8, body: &[u8]) -> Option<String> {
    if tag != 0x48 {
        return None;
    }
    let provider = usize::from(*body.get(1)?);
    let rest = body.get(2 + provider..)?;
    let text = rest.get(1..1 + usize::from(*rest.first()?))?;
    let text = match text {
        [0x15, utf8 @ ..] => String::from_utf8_lossy(utf8).into_owned(),
        [0x10, _, _, rest @ ..] | [0x01..0x20, rest @ ..] => latin(rest),
        _ => String::from_utf8(text.to_vec()).unwrap_or_else(|_| latin(text)),
    };
    let text: String = text.chars().filter(|it| !it.is_control()).collect();
    (!text.is_empty()).then_some(text)
}

fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The table of a PAT's sections.
pub(crate) const PAT: u8 = 0x00;
/// The table of a conditional access table's sections.
pub(crate) const CAT: u8 = 0x01;
/// The table of a PMT's sections.
pub(crate) const PMT: u8 = 0x02;
/// The table of the sections that describe services of this stream.
const SDT: u8 = 0x42;

const PROGRAMS: usize = 64;
const STREAMS: usize = 32;
const PAT_SECTIONS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{pat, pmt, section};

    fn take(tables: &mut Tables, pid: u16, bytes: &[u8], number: u64) -> TableChange {
        let packet = crate::sample::packet(pid, number as u8).bytes;
        let section = Section { bytes, packets: &[(number, packet)] };
        match pid {
            0 => tables.pat(section),
            0x11 => tables.sdt(section),
            _ => tables.pmt(pid, section),
        }
    }

    #[test]
    fn programs_come_from_pat_pmt_and_sdt() {
        let mut tables = Tables::default();
        let own = section(0, 1, 0, 0, &pat(&[(0, 0x10), (7, 0x1000), (8, 0x1001)]));
        assert_eq!(take(&mut tables, 0, &own, 0), TableChange::Programs);
        assert_eq!(take(&mut tables, 0, &own, 0), TableChange::None);
        let streams: [(u8, u16, &[u8]); 2] =
            [(0x1B, 0x100, &[]), (0x0F, 0x101, b"\x0A\x04deu\x00")];
        let map = section(2, 8, 0, 0, &pmt(0x100, &streams));
        assert_eq!(take(&mut tables, 0x1000, &map, 1), TableChange::None, "on the other's PID");
        assert_eq!(take(&mut tables, 0x1001, &map, 2), TableChange::Programs);
        let services =
            [&[0, 1, 0xFF, 0, 8, 0xFC, 0x80, 9][..], b"\x48\x07\x01\x01P\x03One"].concat();
        let names = section(0x42, 1, 0, 0, &services);
        assert_eq!(take(&mut tables, 0x11, &names, 3), TableChange::Programs);
        let [program] = tables.programs() else { panic!("one program") };
        assert_eq!((program.number, program.pmt_pid, program.pcr_pid), (8, 0x1001, 0x100));
        assert_eq!(program.name.as_deref(), Some("One"));
        assert_eq!(program.streams[1].kind, StreamKind::AacAdts);
        assert_eq!(program.streams[1].language.as_deref(), Some("deu"));
        let numbers: Vec<_> = tables.packets().iter().map(|it| it.0).collect();
        assert_eq!(numbers, [0, 2]);
    }

    #[test]
    fn a_later_pat_removes_programs_and_a_future_one_does_nothing() {
        let mut tables = Tables::default();
        take(&mut tables, 0, &section(0, 1, 0, 0, &pat(&[(7, 0x1000)])), 0);
        let map = section(2, 7, 0, 0, &pmt(0x100, &[(0x1B, 0x100, &[])]));
        assert_eq!(take(&mut tables, 0x1000, &map, 1), TableChange::Programs);
        let mut future = section(0, 1, 1, 0, &pat(&[(9, 0x1001)]));
        future[5] &= !1;
        assert_eq!(take(&mut tables, 0, &future, 2), TableChange::None);
        let next = section(0, 1, 1, 0, &pat(&[(9, 0x1001)]));
        assert_eq!(take(&mut tables, 0, &next, 3), TableChange::Programs);
        assert!(tables.programs().is_empty());
        assert_eq!(tables.pmt_pids().collect::<Vec<_>>(), [0x1001]);
    }

    #[test]
    fn tables_that_grow_without_end_are_bounded() {
        let mut tables = Tables::default();
        for number in 0..=255 {
            let programs: Vec<_> =
                (0..250).map(|it| (u16::from(number) * 250 + it + 1, 0x1000)).collect();
            let mut part = section(0, 1, 0, number, &pat(&programs));
            part[7] = 255;
            take(&mut tables, 0, &part, number.into());
        }
        assert_eq!(tables.pmt_pids().count(), PROGRAMS);
        let many: Vec<(u8, u16, &[u8])> = (0..200).map(|pid| (0x1B, pid, &[][..])).collect();
        take(&mut tables, 0x1000, &section(2, 1, 0, 0, &pmt(0, &many)), 300);
        assert_eq!(tables.programs()[0].streams.len(), STREAMS);
    }
}
