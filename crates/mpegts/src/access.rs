use crate::format::{self, VideoFormat, has_recovery_point, without_emulation_prevention};
use crate::{PesHeader, StreamKind};

/// Looks into the start of each PES packet of a video stream for a random access point, and for the
/// format of the video.
///
/// Packets are looked at where they lie: only the start of the unit at hand is kept, since a unit
/// may begin in one packet and go on in the next. The search ends with the first slice of a
/// picture, so that most packets are not looked at.
#[derive(Clone, Debug)]
pub(crate) struct AccessFinder {
    kind: StreamKind,
    state: State,
    /// Bytes of the PES header that follow in the next packets.
    header_rest: usize,
    /// The start of the unit at hand.
    unit: Vec<u8>,
    /// Zeros directly before the place at hand, up to two.
    zeros: u8,
    has_parameters: bool,
    has_recovery_point: bool,
    format: Option<VideoFormat>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// The picture's kind is known, or there is none: wait for the next PES packet.
    Done,
    /// Its first bytes tell how the units are delimited.
    Begin,
    /// No start code has come, or the rest of the unit does not matter.
    Between,
    /// Within a unit after a start code.
    Within,
    /// Within an OBU that has its own length; the bytes of it that are still to come.
    Obu { rest: u64 },
}

/// The answer of a unit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Answer {
    /// More units follow before the first slice.
    Next,
    /// More bytes of this unit are needed.
    More,
    /// The first slice: whether decoding can begin with this picture.
    Picture(bool),
}

impl AccessFinder {
    pub(crate) fn new(kind: StreamKind) -> Self {
        Self {
            kind,
            state: State::Done,
            header_rest: 0,
            unit: Vec::with_capacity(UNIT),
            zeros: 0,
            has_parameters: false,
            has_recovery_point: false,
            format: None,
        }
    }

    /// The format by the latest sequence header.
    pub(crate) fn format(&self) -> Option<VideoFormat> {
        self.format
    }

    /// Whether the picture that began last is known to be one or the other, or unknowable.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Says that the rest of the PES packet does not come whole.
    pub(crate) fn give_up(&mut self) {
        self.state = State::Done;
    }

    /// Begins with a PES packet, whose first bytes are `payload`. Says whether it is known to begin
    /// at a random access point.
    pub(crate) fn begin(&mut self, header: PesHeader, payload: &[u8]) -> bool {
        self.state = State::Begin;
        self.unit.clear();
        self.zeros = 0;
        (self.has_parameters, self.has_recovery_point) = (false, false);
        self.header_rest = header.payload_at;
        self.go_on(payload)
    }

    /// Goes on with the next bytes of the PES packet.
    pub(crate) fn go_on(&mut self, payload: &[u8]) -> bool {
        if self.state == State::Done {
            return false;
        }
        let skipped = self.header_rest.min(payload.len());
        self.header_rest -= skipped;
        let mut rest = &payload[skipped..];
        let mut answer = Answer::Next;
        while !rest.is_empty() && !matches!(answer, Answer::Picture(_)) {
            (answer, rest) = match self.state {
                State::Done => return false,
                State::Begin => self.find_layout(rest),
                State::Between => self.find_start(rest),
                State::Within => self.take_unit(rest),
                State::Obu { rest: length } => self.take_obu(length, rest),
            };
        }
        match answer {
            Answer::Picture(is_random_access) => {
                self.state = State::Done;
                is_random_access
            }
            Answer::Next | Answer::More => false,
        }
    }

    /// AV1 comes with start codes, or as the low-overhead format, which begins with the OBU of a
    /// temporal delimiter or of a sequence header.
    fn find_layout<'a>(&mut self, bytes: &'a [u8]) -> (Answer, &'a [u8]) {
        let has_lengths = self.kind == StreamKind::Av1 && matches!(bytes[0], 0x12 | 0x0A);
        self.state = if has_lengths { State::Obu { rest: 0 } } else { State::Between };
        (Answer::Next, bytes)
    }

    /// Skips bytes up to the next start code and with it.
    fn find_start<'a>(&mut self, bytes: &'a [u8]) -> (Answer, &'a [u8]) {
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == 1 && self.zeros == 2 {
                self.zeros = 0;
                self.unit.clear();
                self.state = State::Within;
                return (Answer::Next, &bytes[at + 1..]);
            }
            self.zeros = if byte == 0 { (self.zeros + 1).min(2) } else { 0 };
        }
        (Answer::Next, &[])
    }

    /// Keeps the start of a unit until it gives an answer.
    fn take_unit<'a>(&mut self, bytes: &'a [u8]) -> (Answer, &'a [u8]) {
        for (at, &byte) in bytes.iter().enumerate() {
            let has_ended = byte == 1 && self.zeros == 2;
            self.zeros = if byte == 0 { (self.zeros + 1).min(2) } else { 0 };
            if !has_ended {
                self.unit.push(byte);
            }
            // Few units need more than their first byte; these are looked at again when they
            // end.
            let is_time = has_ended || matches!(self.unit.len(), 1 | SLICE_START | UNIT);
            if !is_time {
                continue;
            }
            let answer = self.judge(has_ended || self.unit.len() == UNIT);
            if answer != Answer::More {
                self.unit.clear();
                self.state = if has_ended { State::Within } else { State::Between };
                self.zeros = if has_ended { 0 } else { self.zeros };
                return (answer, &bytes[at + 1..]);
            }
        }
        (Answer::More, &[])
    }

    /// Reads an OBU with a length, of which `length` bytes are still to come; 0 before its header.
    fn take_obu<'a>(&mut self, length: u64, bytes: &'a [u8]) -> (Answer, &'a [u8]) {
        if length == 0 {
            let (&first, rest) = bytes.split_first().expect("there are bytes");
            self.unit.push(first);
            if let Some(length) = obu_length(&self.unit) {
                let Some(length) = length else { return (Answer::Picture(false), &[]) };
                self.state = State::Obu { rest: length };
                if length == 0 {
                    self.unit.clear();
                }
            }
            return (Answer::Next, rest);
        }
        let part = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
        let kept = part.min(UNIT - self.unit.len());
        self.unit.extend_from_slice(&bytes[..kept]);
        let length = length - part as u64;
        self.state = State::Obu { rest: length };
        let has_ended = length == 0;
        let is_enough = has_ended || self.unit.len() >= SLICE_START;
        let mut answer = if is_enough { self.judge(has_ended) } else { Answer::More };
        if has_ended {
            self.unit.clear();
            answer = if answer == Answer::More { Answer::Next } else { answer };
        }
        (answer, &bytes[part..])
    }

    fn judge(&mut self, has_ended: bool) -> Answer {
        let Some(&first) = self.unit.first() else { return Answer::Next };
        let answer = match self.kind {
            StreamKind::H264 => self.judge_h264(first & 0x1F, has_ended),
            StreamKind::Hevc => self.judge_hevc(first >> 1 & 0x3F, has_ended),
            StreamKind::Av1 => self.judge_av1(first, has_ended),
            _ => self.judge_mpeg2(first, has_ended),
        };
        if has_ended && answer == Answer::More { Answer::Next } else { answer }
    }

    /// The first byte alone decides on most units.
    fn judge_h264(&mut self, kind: u8, has_ended: bool) -> Answer {
        match kind {
            5 => Answer::Picture(true),
            1 | 2 if self.unit.len() < SLICE_START && !has_ended => Answer::More,
            1 | 2 => {
                let is_intra = self.has_parameters && is_intra_slice(&self.unit);
                Answer::Picture(self.has_recovery_point || is_intra)
            }
            SEI_H264 if has_ended => {
                self.has_recovery_point |= has_recovery_point(&self.unit[1..]);
                Answer::Next
            }
            7 if has_ended => {
                self.has_parameters = true;
                self.format = format::h264_format(&self.unit).or(self.format);
                Answer::Next
            }
            SEI_H264 | 7 => Answer::More,
            _ => Answer::Next,
        }
    }

    fn judge_hevc(&mut self, kind: u8, has_ended: bool) -> Answer {
        match kind {
            16..=21 => Answer::Picture(true),
            0..=31 => Answer::Picture(false),
            33 if has_ended => {
                self.format = format::hevc_format(&self.unit).or(self.format);
                Answer::Next
            }
            33 => Answer::More,
            _ => Answer::Next,
        }
    }

    /// A key frame after a sequence header (AV1 sections 5.3.2 and 5.9.2).
    fn judge_av1(&mut self, header: u8, has_ended: bool) -> Answer {
        const SEQUENCE_HEADER: u8 = 1;
        const FRAME_HEADER: u8 = 3;
        const FRAME: u8 = 6;
        let kind = header >> 3 & 0x0F;
        if !matches!(kind, SEQUENCE_HEADER | FRAME_HEADER | FRAME) {
            return Answer::Next;
        }
        let Some(at) = obu_payload_at(&self.unit) else { return Answer::More };
        let Some(&first) = self.unit.get(at) else { return Answer::More };
        if kind == SEQUENCE_HEADER {
            if !has_ended && self.unit.len() < UNIT {
                return Answer::More;
            }
            self.has_parameters = true;
            let has_lengths = matches!(self.state, State::Obu { .. });
            let payload = &self.unit[at..];
            let format = if has_lengths {
                format::av1_format(payload)
            } else {
                format::av1_format(&without_emulation_prevention(payload))
            };
            self.format = format.or(self.format);
            return Answer::Next;
        }
        // show_existing_frame, and two bits of the frame's type, of which 0 is that of a key frame.
        Answer::Picture(self.has_parameters && first & 0xE0 == 0)
    }

    /// A picture of kind I after a sequence header (ISO/IEC 13818-2 section 6.2).
    fn judge_mpeg2(&mut self, code: u8, has_ended: bool) -> Answer {
        const PICTURE: u8 = 0x00;
        const SEQUENCE: u8 = 0xB3;
        let is_enough = has_ended || self.unit.len() >= SLICE_START;
        match code {
            PICTURE | SEQUENCE if !is_enough => Answer::More,
            PICTURE => {
                let is_intra = self.unit.get(2).is_some_and(|byte| byte >> 3 & 7 == 1);
                Answer::Picture(self.has_parameters && is_intra)
            }
            SEQUENCE => {
                self.has_parameters = true;
                self.format = format::mpeg2(&self.unit).or(self.format);
                Answer::Next
            }
            0x01..=0xAF => Answer::Picture(false),
            _ => Answer::Next,
        }
    }
}

/// Whether the slice of a NAL unit has only intra prediction (ISO/IEC 14496-10 section 7.3.3).
fn is_intra_slice(nal: &[u8]) -> bool {
    matches!(format::slice_type(nal), Some(2 | 4 | 7 | 9))
}

/// The length of an OBU by the start of its bytes: `None` if more are needed, `Some(None)` if it
/// has none or an impossible one (AV1 section 5.3).
fn obu_length(unit: &[u8]) -> Option<Option<u64>> {
    let header = *unit.first()?;
    if header & 0x82 != 2 {
        return Some(None);
    }
    let field = unit.get(if header & 4 != 0 { 2.. } else { 1.. })?;
    let mut length = 0;
    for (at, byte) in field.iter().enumerate() {
        length |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(Some(length));
        }
        if at == 7 {
            return Some(None);
        }
    }
    None
}

/// The place of an OBU's payload, if it is known.
fn obu_payload_at(unit: &[u8]) -> Option<usize> {
    let header = *unit.first()?;
    let at = if header & 4 != 0 { 2 } else { 1 };
    if header & 2 == 0 {
        return Some(at);
    }
    let length = unit.get(at..)?.iter().position(|byte| byte & 0x80 == 0)?;
    Some(at + length + 1)
}

/// Bytes of a unit that are kept. Sequence headers are shorter by far; supplemental information may
/// be longer, but what matters stands at its start.
const UNIT: usize = 512;

/// Bytes of a slice, an OBU or a picture header that are enough for its kind.
const SLICE_START: usize = 16;

const SEI_H264: u8 = 6;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: [u8; 14] = [0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1];
    const SET: [u8; 24] = [
        0x67, 0x64, 0x00, 0x0D, 0xAC, 0xD9, 0x41, 0x41, 0x9F, 0x9F, 0x01, 0x10, 0x00, 0x00, 0x03,
        0x00, 0x10, 0x00, 0x00, 0x03, 0x03, 0x20, 0xF1, 0x42,
    ];
    const SEQUENCE: [u8; 13] =
        [0x0A, 0x0B, 0x00, 0x00, 0x00, 0x04, 0x3C, 0xFE, 0xCC, 0xFB, 0xF9, 0x00, 0x40];

    /// A PES packet with these units after start codes.
    fn units(units: &[&[u8]]) -> Vec<u8> {
        let start = |unit: &&[u8]| [&[0, 0, 1][..], unit].concat();
        HEADER.into_iter().chain(units.iter().flat_map(start)).collect()
    }

    fn obus(obus: &[&[u8]]) -> Vec<u8> {
        [&HEADER[..], &obus.concat()].concat()
    }

    /// The answer for a PES packet in pieces of these lengths, if there is one.
    fn answer(kind: StreamKind, bytes: &[u8], pieces: &[usize]) -> Option<bool> {
        let mut finder = AccessFinder::new(kind);
        let (mut is_found, mut rest) = (false, bytes);
        for (at, piece) in pieces.iter().cycle().enumerate() {
            let least = if at == 0 { HEADER.len() } else { 1 };
            let (head, tail) = rest.split_at(piece.max(&least).min(&rest.len()).to_owned());
            is_found |= match at {
                0 => finder.begin(PesHeader::parse(head).unwrap(), head),
                _ => finder.go_on(head),
            };
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        finder.is_done().then_some(is_found)
    }

    /// PES packets of each kind, and whether a decoder can begin with them.
    fn samples() -> Vec<(StreamKind, Vec<u8>, bool)> {
        use StreamKind::{Av1, H264, Hevc, Mpeg2Video};
        let slice = |first: u8, second: u8| [&[first, second][..], &[0x55; 40]].concat();
        let (idr, intra, other) = (slice(0x65, 0x88), slice(0x41, 0x88), slice(0x41, 0x9A));
        let recovery = [6, 1, 2, 9, 9, 6, 1, 0x84, 0x80];
        let text = [&[6, 5, 100][..], &[7; 101]].concat();
        let cra = slice(21 << 1, 1);
        let sequence: [&[u8]; 2] = [&[0x12, 0], &SEQUENCE];
        let frame = |kind: u8| [&[0x32, 40, kind][..], &[0x55; 39]].concat();
        let picture = [0xB3, 20, 0, 0xB4, 0x13, 0xFF, 0xFF, 0xE0, 0];
        vec![
            (H264, units(&[&[9, 0xF0], &idr]), true),
            (H264, units(&[&[9, 0xF0], &SET, &[0x68, 1], &text, &idr]), true),
            (H264, units(&[&[9, 0xF0], &other]), false),
            (H264, units(&[&SET, &intra]), true),
            (H264, units(&[&intra]), false),
            (H264, units(&[&SET, &text, &other]), false),
            (H264, units(&[&recovery, &other]), true),
            (Hevc, units(&[&[0x46, 1, 0x50], &cra]), true),
            (Hevc, units(&[&slice(19 << 1, 1)]), true),
            (Hevc, units(&[&[0x46, 1, 0x50], &slice(1 << 1, 1)]), false),
            (Av1, obus(&[sequence[0], sequence[1], &frame(0x10)]), true),
            (Av1, obus(&[sequence[0], &frame(0x10)]), false),
            (Av1, obus(&[sequence[0], sequence[1], &frame(0x30)]), false),
            (Av1, units(&[sequence[0], sequence[1], &frame(0x10)]), true),
            (Mpeg2Video, units(&[&picture, &[0, 0x00, 0x0F, 0xFF, 0xF8], &[1, 0x13]]), true),
            (Mpeg2Video, units(&[&picture, &[0, 0x00, 0x17, 0xFF, 0xF8], &[1, 0x13]]), false),
        ]
    }

    proptest! {
        #[test]
        fn pictures_are_known_wherever_packets_end(
            pieces in proptest::collection::vec(1_usize..60, 1..20),
        ) {
            for (at, (kind, bytes, is_entry)) in samples().into_iter().enumerate() {
                prop_assert_eq!(answer(kind, &bytes, &pieces), Some(is_entry), "sample {}", at);
            }
        }

        #[test]
        fn any_units_are_read(
            kind in prop_oneof![
                Just(StreamKind::H264),
                Just(StreamKind::Hevc),
                Just(StreamKind::Av1),
                Just(StreamKind::Mpeg2Video),
            ],
            bytes in proptest::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 1..900),
            pieces in proptest::collection::vec(1_usize..200, 1..20),
        ) {
            let bytes = [&HEADER[..], &bytes].concat();
            let whole = answer(kind, &bytes, &[bytes.len()]);
            prop_assert_eq!(answer(kind, &bytes, &pieces), whole);
        }
    }

    #[test]
    fn a_sequence_header_of_av1_is_read_with_start_codes_and_without() {
        // A start code must not stand within a unit, so a 3 stands between the zeros.
        let coded =
            [0x0A, 0x0B, 0x00, 0x00, 0x03, 0x00, 0x04, 0x3C, 0xFE, 0xCC, 0xFB, 0xF9, 0x00, 0x40];
        let delimiter = [0x12, 0];
        for bytes in [units(&[&delimiter, &coded, &[0x32]]), obus(&[&delimiter, &SEQUENCE])] {
            let mut finder = AccessFinder::new(StreamKind::Av1);
            finder.begin(PesHeader::parse(&bytes).unwrap(), &bytes);
            let size = finder.format().map(|format| (format.width, format.height));
            assert_eq!(size, Some((320, 180)));
        }
    }

    #[test]
    fn the_format_comes_with_the_parameters() {
        let mut finder = AccessFinder::new(StreamKind::H264);
        let bytes = units(&[&SET, &[0x65, 0x88]]);
        assert!(finder.begin(PesHeader::parse(&bytes).unwrap(), &bytes));
        let format = finder.format().unwrap();
        assert_eq!((format.width, format.height, format.profile), (320, 180, "High"));
    }
}
