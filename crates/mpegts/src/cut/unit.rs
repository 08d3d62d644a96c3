use crate::cut::versions::{Header, VERSION_AT, Versions, difference};
use crate::section::{HEADER_LEN, STUFFING, section_len};
use crate::{PACKET_LEN, Packet};

/// The unit of a PID that has begun, and what of it is still to come.
#[derive(Clone, Debug, Default)]
pub(super) enum Unit {
    /// None, or all of it has come.
    #[default]
    None,
    /// A PES packet, and the bytes of it that are still to come.
    Bounded(usize),
    /// A PES packet that ends where the next one begins.
    Unbounded,
    /// A section.
    Section(OpenSection),
}

/// The section at hand.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenSection {
    /// Its first bytes, as they came.
    header: Header,
    /// Bytes of it that came.
    at: usize,
    /// The checksum that came, as far as it came.
    checksum: u32,
    /// The difference of the new version's checksum.
    difference: u32,
}

impl Unit {
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Takes in the next packet with a payload. Gives the packet with other versions of its
    /// tables, if they change.
    pub(super) fn take(
        &mut self,
        packet: Packet<'_>,
        versions: &mut Versions,
    ) -> Option<[u8; PACKET_LEN]> {
        let payload = packet.payload();
        let is_start = packet.starts_payload_unit();
        if packet.is_scrambled() {
            *self = if is_start || self.has_begun() { Self::Unbounded } else { Self::None };
            return None;
        }
        let is_pes = matches!(payload, [0, 0, 1, ..]);
        match self {
            _ if is_start && is_pes => {
                let length =
                    payload.get(4..6).map(|it| usize::from(it[0]) << 8 | usize::from(it[1]));
                *self = match length {
                    None | Some(0) => Self::Unbounded,
                    Some(length) => Self::of_rest((6 + length).saturating_sub(payload.len())),
                };
                None
            }
            _ if is_start => self.take_sections(packet, versions),
            Self::Section(_) => self.take_sections(packet, versions),
            Self::Bounded(rest) => {
                *self = Self::of_rest(rest.saturating_sub(payload.len()));
                None
            }
            Self::None | Self::Unbounded => None,
        }
    }

    fn of_rest(rest: usize) -> Self {
        if rest == 0 { Self::None } else { Self::Bounded(rest) }
    }

    fn take_sections(
        &mut self,
        packet: Packet<'_>,
        versions: &mut Versions,
    ) -> Option<[u8; PACKET_LEN]> {
        let mut bytes = *packet.bytes();
        let start = PACKET_LEN - packet.payload().len();
        let payload = &mut bytes[start..];
        let mut open = match std::mem::take(self) {
            Self::Section(open) => Some(open),
            _ => None,
        };
        let mut rest: &mut [u8] = payload;
        if packet.starts_payload_unit() {
            let (&mut pointer, following) = rest.split_first_mut()?;
            let tail = following.len().min(pointer.into());
            let (tail, following) = following.split_at_mut(tail);
            if let Some(mut open) = open.take() {
                open.take(packet.pid(), tail, versions);
            }
            rest = following;
            open = Some(OpenSection::default());
        }
        while let Some(mut section) = open {
            if rest.is_empty() || (section.at == 0 && rest[0] == STUFFING) {
                open = (section.at > 0).then_some(section);
                break;
            }
            let taken = section.take(packet.pid(), rest, versions);
            rest = &mut rest[taken..];
            open = Some(if section.is_whole() { OpenSection::default() } else { section });
        }
        if let Some(section) = open {
            *self = Self::Section(section);
        }
        (bytes != *packet.bytes()).then_some(bytes)
    }
}

impl OpenSection {
    /// Takes in bytes up to the end of the section, and changes those of its version. Gives the
    /// number of bytes that belong to it.
    fn take(&mut self, pid: u16, bytes: &mut [u8], versions: &mut Versions) -> usize {
        for (taken, byte) in bytes.iter_mut().enumerate() {
            if let Some(place) = self.header.get_mut(self.at) {
                *place = *byte;
            }
            self.at += 1;
            if self.at == VERSION_AT + 1 {
                let changed = versions.version(pid, &self.header);
                self.difference = difference(*byte ^ changed, self.len());
                *byte = changed;
            }
            if self.at > VERSION_AT + 1 && self.at + 4 > self.len() {
                let end = self.len() - self.at;
                self.checksum = self.checksum << 8 | u32::from(*byte);
                *byte ^= self.difference.to_le_bytes()[end.min(3)];
            }
            if self.is_whole() {
                versions.note(pid, &self.header, self.checksum, self.len());
                return taken + 1;
            }
        }
        bytes.len()
    }

    fn len(&self) -> usize {
        section_len(&self.header)
    }

    fn is_whole(&self) -> bool {
        self.at >= HEADER_LEN && self.at >= self.len()
    }
}
