use std::collections::BTreeMap;

use crate::Packet;
use crate::psi::{CAT, PAT, PMT};
use crate::section::{LONG_LEN, Section, SectionReader, crc32_from};

/// The versions of the tables that a receiver knows, beside the versions of the stream.
///
/// A receiver has one PAT, one CAT, and a map of each program. At most 256 are followed.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    tables: BTreeMap<Key, Table>,
}

/// PID, table, and program of a map.
type Key = (u16, u8, u16);

#[derive(Clone, Debug, Default)]
struct Table {
    /// The version that the receiver got last.
    version: u8,
    /// The difference from the stream's versions to the receiver's, modulo 32.
    shift: u8,
    /// The sections that it got: by number the checksum, as it is with version 0.
    sections: BTreeMap<u8, u32>,
    /// The checksum that came last, which tells that a section is the same as before.
    last: u32,
}

impl Versions {
    /// Chooses the versions that the receiver gets, by the tables with which it begins again.
    pub(super) fn enter(&mut self, tables: &[u8]) {
        let mut readers: BTreeMap<u16, SectionReader> = BTreeMap::new();
        let mut found: BTreeMap<Key, (u8, BTreeMap<u8, u32>)> = BTreeMap::new();
        for bytes in tables.as_chunks().0 {
            let Ok(packet) = Packet::new(bytes) else { continue };
            let take = |section: Section<'_>| {
                let bytes = section.bytes;
                let Some(key) = key(packet.pid(), bytes).filter(|_| bytes.len() >= LONG_LEN) else {
                    return;
                };
                let checksum = bytes.last_chunk().map_or(0, |it| u32::from_be_bytes(*it));
                let (version, sections) = found.entry(key).or_default();
                *version = version_of(bytes[VERSION_AT]);
                sections
                    .insert(bytes[VERSION_AT + 1], plain(checksum, bytes[VERSION_AT], bytes.len()));
            };
            readers.entry(packet.pid()).or_default().push(packet, 0, true, take);
        }
        for (key, (version, sections)) in found {
            let Some(table) = self.tables.get_mut(&key) else { continue };
            let is_known = table.sections == sections;
            let next = if is_known { table.version } else { table.version.wrapping_add(1) };
            table.shift = next.wrapping_sub(version) & VERSIONS;
        }
    }

    /// The byte with the version that the receiver gets for a section with these first bytes.
    pub(super) fn version(&self, pid: u16, header: &Header) -> u8 {
        let byte = header[VERSION_AT];
        let shift = key(pid, header).and_then(|key| self.tables.get(&key)).map_or(0, |it| it.shift);
        let version = version_of(byte).wrapping_add(shift) & VERSIONS;
        byte & !(VERSIONS << 1) | version << 1
    }

    /// Whether the receiver gets other versions of a table on this PID than the stream has.
    pub(super) fn change(&self, pid: u16) -> bool {
        self.tables.range((pid, 0, 0)..=(pid, u8::MAX, u16::MAX)).any(|(_, it)| it.shift != 0)
    }

    /// Notes that the receiver got a section with this checksum in the stream.
    pub(super) fn note(&mut self, pid: u16, header: &Header, checksum: u32, len: usize) {
        let Some(key) = key(pid, header).filter(|_| len >= LONG_LEN) else { return };
        if self.tables.len() >= TABLES && !self.tables.contains_key(&key) {
            return;
        }
        // A section that is not in force yet does not count.
        let byte = header[VERSION_AT];
        if byte & 1 == 0 {
            return;
        }
        let table = self.tables.entry(key).or_default();
        let version = version_of(byte).wrapping_add(table.shift) & VERSIONS;
        if table.last == checksum && table.version == version {
            return;
        }
        if table.version != version {
            table.sections.clear();
        }
        (table.version, table.last) = (version, checksum);
        table.sections.insert(header[VERSION_AT + 1], plain(checksum, byte, len));
    }
}

/// The key of a section by its first bytes, if its version is followed.
fn key(pid: u16, header: &[u8]) -> Option<Key> {
    let extension = u16::from_be_bytes([header[3], header[4]]);
    match (pid, header[0]) {
        _ if header[1] & 0x80 == 0 => None,
        (0, PAT) | (1, CAT) => Some((pid, header[0], 0)),
        (_, PMT) => Some((pid, PMT, extension)),
        _ => None,
    }
}

fn version_of(byte: u8) -> u8 {
    byte >> 1 & VERSIONS
}

/// The checksum that a section has with version 0.
fn plain(checksum: u32, version_byte: u8, len: usize) -> u32 {
    checksum ^ difference(version_byte & (VERSIONS << 1), len)
}

/// The change of the checksum of a section of `len` bytes whose version byte changes by `change`.
/// The checksum of a difference is the difference of checksums.
pub(super) fn difference(change: u8, len: usize) -> u32 {
    if change == 0 || len < LONG_LEN {
        return 0;
    }
    let first = crc32_from(0, &[change]);
    (0..len - VERSION_AT - 1 - 4).fold(first, |register, _| crc32_from(register, &[0]))
}

/// The bytes of a section up to and with its number.
pub(super) type Header = [u8; 7];

/// The place of the byte with a section's version.
pub(super) const VERSION_AT: usize = 5;

/// The largest version.
const VERSIONS: u8 = 31;

const TABLES: usize = 256;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use crate::sample::{pat, pmt, section, section_packets};
    use crate::{Cut, Inspector, PACKET_LEN, Packet, RandomAccess};

    const MAP_PID: u16 = 0x1000;
    const ACCESS: RandomAccess = RandomAccess { packet: 0, pid: 0x100, pts: None };

    /// The tables of a publisher: its map has `version`, and this number of streams.
    fn tables(version: u8, streams: u16) -> Bytes {
        let streams: Vec<(u8, u16, &[u8])> =
            (0..streams).map(|it| (0x0F, 0x101 + it, &b"\x0A\x04deu\x00"[..])).collect();
        let pat = section_packets(0, 5, &[section(0, 1, 0, 0, &pat(&[(1, MAP_PID)]))]);
        let map = section(2, 1, version, 0, &pmt(0x100, &streams));
        [pat, section_packets(MAP_PID, 9, &[map])].concat().concat().into()
    }

    /// The version of the map that a receiver reads, and its number of streams. The checksum is
    /// right, else there is none.
    fn read(sent: &[u8]) -> (u8, usize) {
        let mut inspector = Inspector::default();
        let mut version = None;
        for bytes in sent.as_chunks::<PACKET_LEN>().0 {
            let packet = Packet::new(bytes).unwrap();
            inspector.push(packet, std::time::Duration::ZERO);
            if packet.pid() == MAP_PID && packet.starts_payload_unit() {
                version = Some(packet.payload()[6] >> 1 & 31);
            }
        }
        let faults: Vec<_> = inspector.health().faults().collect();
        assert_eq!(faults, []);
        (version.expect("a map"), inspector.programs()[0].streams.len())
    }

    #[test]
    fn another_map_gets_another_version_than_the_receiver_has() {
        let mut cut = Cut::default();
        assert_eq!(read(&cut.enter(&tables(0, 1), ACCESS)), (0, 1));
        // Another publisher with the same version; its map needs two packets.
        assert_eq!(read(&cut.enter(&tables(0, 20), ACCESS)), (1, 20));
        // Its map comes again in the stream, then a new one of its own.
        assert_eq!(read(&cut.pass(&tables(0, 20))), (1, 20));
        assert_eq!(read(&cut.pass(&tables(1, 21))), (2, 21));
        // The same content needs no other version, whatever the publisher's is.
        assert_eq!(read(&cut.enter(&tables(7, 21), ACCESS)), (2, 21));
        assert_eq!(read(&cut.enter(&tables(2, 1), ACCESS)), (3, 1));
    }

    #[test]
    fn versions_go_on_after_31_at_0() {
        let mut cut = Cut::default();
        for turn in 0..70 {
            let sent = cut.enter(&tables(4, 1 + turn % 2), ACCESS);
            assert_eq!(u16::from(read(&sent).0), (4 + turn) % 32);
        }
    }

    #[test]
    fn the_tables_of_one_publisher_stay_as_they_are() {
        let mut cut = Cut::default();
        assert_eq!(cut.enter(&tables(3, 20), ACCESS), tables(3, 20));
        let later = tables(3, 20);
        let sent = cut.pass(&later);
        let is_original =
            |bytes: &&[u8; PACKET_LEN]| later.as_chunks::<PACKET_LEN>().0.contains(bytes);
        let chunks = sent.as_chunks::<PACKET_LEN>().0;
        assert_eq!(chunks.iter().filter(is_original).count(), later.len() / PACKET_LEN);
    }
}
