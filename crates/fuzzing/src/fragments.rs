//! Transport streams on their way to browsers: PES packets, access units, fragments of MP4.

use std::time::Duration;

use punctual_fmp4::{Fragmenter, Output, Recent, Segmenter};
use punctual_mpegts::{Inspector, PACKET_LEN, Packet};

use crate::input::FuzzInput;

/// The first two bytes choose the codecs; the others are packets, each with a byte that tells its
/// stream, its faults and its times.
pub(crate) fn run(input: &[u8]) {
    let mut input = FuzzInput(input);
    let (mut fragmenter, mut inspector) = (Fragmenter::default(), Inspector::default());
    let program = program(input.byte(), input.byte());
    for bytes in &program {
        inspector.push(Packet::new(bytes).expect("it is a packet"), Duration::ZERO);
    }
    let streams = &inspector.programs().first().expect("the map is whole").streams;
    fragmenter.set_streams(streams);
    let mut reader = Reader::default();
    let mut counters = [0_u8; 2];
    while let Some(control) = input.next() {
        let bytes = packet(control, &mut counters, &mut input);
        fragmenter.push(Packet::new(&bytes).expect("it is a packet"));
        while let Some(output) = fragmenter.pop() {
            reader.read(&output);
        }
    }
    fragmenter.finish();
    while let Some(output) = fragmenter.pop() {
        reader.read(&output);
    }
    reader.segmenter.finish();
    reader.check_playlist();
}

/// Holds the output against its promises.
#[derive(Default)]
struct Reader {
    has_init: bool,
    ends: [Duration; 2],
    recent: Recent,
    segmenter: Segmenter,
}

impl Reader {
    fn read(&mut self, output: &Output) {
        match output {
            Output::Init(init) => {
                self.has_init = true;
                assert!(init.video.is_some() || init.audio.is_some());
                assert_eq!(boxes(&init.bytes), [*b"ftyp", *b"moov"]);
            }
            Output::Fragment(fragment) => {
                assert!(self.has_init, "a fragment without its header");
                assert_eq!(boxes(&fragment.bytes), [*b"moof", *b"mdat"]);
                let last = &mut self.ends[fragment.track as usize];
                assert!(fragment.start >= *last, "{:?} begins before {last:?}", fragment.start);
                *last = fragment.start;
            }
            Output::Unplayable(names) => assert!(!names.is_empty()),
        }
        self.recent.push(output);
        self.segmenter.push(output);
        assert!(self.recent.fragments().first().is_none_or(|first| first.is_key));
    }

    fn check_playlist(&self) {
        let Some(playlist) = self.segmenter.playlist() else { return };
        let names = playlist.lines().filter(|line| !line.starts_with('#'));
        for name in names {
            let number = name.strip_suffix(".m4s").and_then(|number| number.parse().ok());
            let segment = number.and_then(|number| self.segmenter.segment(number));
            let segment = segment.expect("a segment of the playlist is there");
            assert!(self.segmenter.init(segment.init).is_some());
        }
    }
}

/// The kinds of the boxes that fill `bytes`.
fn boxes(mut bytes: &[u8]) -> Vec<[u8; 4]> {
    let mut kinds = Vec::new();
    while let Some((&[a, b, c, d, kind @ ..], _)) = bytes.split_first_chunk::<8>() {
        kinds.push(kind);
        bytes = &bytes[u32::from_be_bytes([a, b, c, d]) as usize..];
    }
    assert!(bytes.is_empty());
    kinds
}

/// A packet of either stream.
fn packet(control: u8, counters: &mut [u8; 2], input: &mut FuzzInput<'_>) -> [u8; PACKET_LEN] {
    let which = usize::from(control & 1);
    let starts = control & 2 != 0;
    let counter = &mut counters[which];
    *counter = (*counter + 1 + u8::from(control & 0xE0 == 0xE0)) & 15;
    let mut payload = Vec::new();
    if starts {
        let id = if which == 0 { 0xE0 } else { 0xC0 };
        // Seconds, mostly: the lowest bits of the time seldom matter.
        let time = u64::from(input.u16()) << (control >> 2 & 7);
        let field = |shift: u32| (time >> shift & 0xFF) as u8;
        let stamp =
            [0x21 | field(29) & 0x0E, field(22), field(14) | 1, field(7), field(0) << 1 | 1];
        payload.extend([0, 0, 1, id, 0, 0, 0x80, 0x80, 5]);
        payload.extend(stamp);
    }
    payload.extend(input.bytes());
    payload.truncate(PACKET_LEN - 6);
    let stuffing = PACKET_LEN - 4 - payload.len();
    let mut bytes = [0xFF; PACKET_LEN];
    let start = if starts { 0x41 } else { 0x01 };
    bytes[..6].copy_from_slice(&[0x47, start, which as u8, 0x30 | *counter, stuffing as u8 - 1, 0]);
    bytes[PACKET_LEN - payload.len()..].copy_from_slice(&payload);
    bytes
}

/// The tables of a program with these codecs.
fn program(video: u8, audio: u8) -> [[u8; PACKET_LEN]; 2] {
    let opus: &[u8] = &[6, 0xE1, 1, 0xF0, 6, 5, 4, b'O', b'p', b'u', b's'];
    let av1: &[u8] = &[6, 0xE1, 0, 0xF0, 6, 5, 4, b'A', b'V', b'0', b'1'];
    let video: &[u8] = match video % 5 {
        0 => &[0x1B, 0xE1, 0, 0xF0, 0],
        1 => &[0x24, 0xE1, 0, 0xF0, 0],
        2 => av1,
        3 => &[0x02, 0xE1, 0, 0xF0, 0],
        _ => &[],
    };
    let audio: &[u8] = match audio % 6 {
        0 => &[0x0F, 0xE1, 1, 0xF0, 0],
        1 => &[0x11, 0xE1, 1, 0xF0, 0],
        2 => opus,
        3 => &[0x03, 0xE1, 1, 0xF0, 0],
        4 => &[0x81, 0xE1, 1, 0xF0, 0],
        _ => &[],
    };
    let map = [&[0xE1, 0, 0xF0, 0][..], video, audio].concat();
    [section(0, 0, &[0, 1, 0xF0, 0]), section(0x1000, 2, &map)]
}

/// A packet with a section of the long syntax.
fn section(pid: u16, table: u8, body: &[u8]) -> [u8; PACKET_LEN] {
    let mut section = vec![table, 0xB0, body.len() as u8 + 9, 0, 1, 0xC1, 0, 0];
    section.extend(body);
    let crc = section.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 24, |crc, _| {
            crc << 1 ^ if crc >> 31 == 1 { 0x04C1_1DB7 } else { 0 }
        })
    });
    section.extend(crc.to_be_bytes());
    let mut bytes = [0xFF; PACKET_LEN];
    let [high, low] = pid.to_be_bytes();
    bytes[..5].copy_from_slice(&[0x47, 0x40 | high, low, 0x10, 0]);
    bytes[5..5 + section.len()].copy_from_slice(&section);
    bytes
}
