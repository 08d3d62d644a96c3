//! A recording as a stream: its messages from a time on, at their pace.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual_mpegts::{Framer, PACKET_LEN, PacingError, PcrPacer};
use punctual_units::UtcTime;
use thiserror::Error;

use crate::archive::{Archive, RecordedSegment};
use crate::byte_clock::ByteClock;
use crate::index::{Index, index_path};
use crate::segment_file::is_open;

/// Plays a stream's recordings from a time on: from the random access point at or before it, or
/// from the first one after it if nothing was recorded then. It goes on over all later segments.
/// Gaps take no time.
///
/// A transport stream is paced by its own clock (PCR), anything else by the index. Reading waits
/// for the disk, so it belongs on a thread that may wait.
#[derive(Debug)]
pub struct Playback {
    archive: Archive,
    stream: String,
    segment: RecordedSegment,
    file: File,
    /// The place in the file.
    at: u64,
    start: UtcTime,
    pace: PlaybackPace,
    ready: VecDeque<(Duration, Bytes)>,
    has_ended: bool,
}

/// The next part of a recording.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlayedPart {
    /// A message that is due at this time since the first.
    Message {
        /// The time since the first message.
        at: Duration,
        /// Whole packets of a transport stream, seven at most, or other bytes.
        payload: Bytes,
    },
    /// The recording is still written, and all of it was played: ask again in some time.
    Wait,
    /// The end of the last recording.
    End,
}

/// A recording that cannot be played.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaybackError {
    /// There is no recording of this time or later.
    #[error("nothing of `{stream}` was recorded at {at}")]
    Nothing {
        /// The stream.
        stream: String,
        /// The time.
        at: UtcTime,
    },
    /// The stream does not tell its pace any more.
    #[error("{path}: {error}")]
    Pace {
        /// The segment.
        path: PathBuf,
        /// The fault of the stream.
        error: PacingError,
    },
    /// The files cannot be read.
    #[error(transparent)]
    Disk(#[from] io::Error),
}

#[derive(Debug)]
enum PlaybackPace {
    /// By the clock of the transport stream.
    Pcr { framer: Box<Framer>, pacer: Box<PcrPacer>, message: BytesMut, message_at: Duration },
    /// By the index of the segment: the time of its first byte, and that of the first message.
    Index { clock: ByteClock, origin: Duration, first: Duration },
}

impl Playback {
    /// The recordings of `stream` from `at` on.
    ///
    /// # Errors
    ///
    /// There is no recording of this time or later, or the files cannot be read.
    pub fn open(archive: &Archive, stream: &str, at: UtcTime) -> Result<Self, PlaybackError> {
        let nothing = || PlaybackError::Nothing { stream: stream.to_owned(), at };
        let mut segments = archive.segments(stream)?.into_iter();
        let is_in_time = |it: &RecordedSegment| it.end > at || it.is_open && it.start <= at;
        let segment = segments.find(is_in_time).ok_or_else(nothing)?;
        let index = Index::read(&File::open(index_path(&segment.path))?)?;
        let place = index.place(at);
        let mut file = File::open(&segment.path)?;
        let pace = if has_clock(&mut file, place.byte)? {
            PlaybackPace::Pcr {
                framer: Box::default(),
                pacer: Box::default(),
                message: BytesMut::new(),
                message_at: Duration::ZERO,
            }
        } else {
            let clock = ByteClock::new(&index);
            let first = clock.at(place.byte);
            PlaybackPace::Index { clock, origin: Duration::ZERO, first }
        };
        let mut playback = Self {
            archive: archive.clone(),
            stream: stream.to_owned(),
            segment,
            file,
            at: place.byte,
            start: place.time,
            pace,
            ready: VecDeque::new(),
            has_ended: false,
        };
        playback.take_tables()?;
        Ok(playback)
    }

    /// The time of the place at which it begins.
    pub fn start(&self) -> UtcTime {
        self.start
    }

    /// The next part.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the stream does not tell its pace.
    pub fn next_part(&mut self) -> Result<PlayedPart, PlaybackError> {
        loop {
            if let Some((at, payload)) = self.ready.pop_front() {
                return Ok(PlayedPart::Message { at, payload });
            }
            if self.has_ended {
                return Ok(PlayedPart::End);
            }
            if self.read()? {
                continue;
            }
            // A segment that was removed meanwhile is not written any more.
            if is_open(&self.segment.path).unwrap_or(false) {
                return Ok(PlayedPart::Wait);
            }
            // More may have come before it was closed.
            if !self.read()? {
                self.next_segment()?;
            }
        }
    }

    /// Takes the tables at the start of the segment, as it begins in the middle of it.
    fn take_tables(&mut self) -> Result<(), PlaybackError> {
        let len = usize::try_from(self.segment.tables).unwrap_or(0).min(TABLES_MOST);
        let mut tables = vec![0; len];
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_exact(&mut tables)?;
        self.file.seek(SeekFrom::Start(self.at))?;
        if matches!(self.pace, PlaybackPace::Pcr { .. }) { self.take(&tables) } else { Ok(()) }
    }

    /// Reads the next bytes of the segment, and tells whether there were any.
    fn read(&mut self) -> Result<bool, PlaybackError> {
        let mut block = vec![0; BLOCK];
        let len = self.file.read(&mut block)?;
        block.truncate(len);
        self.take(&block)?;
        self.at += len as u64;
        Ok(len > 0)
    }

    fn take(&mut self, block: &[u8]) -> Result<(), PlaybackError> {
        match &mut self.pace {
            PlaybackPace::Pcr { framer, pacer, .. } => {
                framer.push(block);
                while let Some(packet) = framer.next_packet() {
                    let path = || self.segment.path.clone();
                    pacer
                        .push(packet)
                        .map_err(|error| PlaybackError::Pace { path: path(), error })?;
                }
                self.take_paced();
            }
            PlaybackPace::Index { clock, origin, first } => {
                for (place, payload) in block.chunks(MESSAGE).enumerate() {
                    let byte = self.at + (place * MESSAGE) as u64;
                    let at = (*origin + clock.at(byte)).saturating_sub(*first);
                    self.ready.push_back((at, Bytes::copy_from_slice(payload)));
                }
            }
        }
        Ok(())
    }

    /// Makes messages of the packets whose time is known.
    fn take_paced(&mut self) {
        let PlaybackPace::Pcr { pacer, message, message_at, .. } = &mut self.pace else { return };
        while let Some((at, packet)) = pacer.pop() {
            if message.is_empty() {
                *message_at = at;
            }
            message.extend_from_slice(&packet);
            if message.len() == MESSAGE {
                self.ready.push_back((*message_at, message.split().freeze()));
            }
        }
    }

    /// Goes on with the next segment, or ends.
    fn next_segment(&mut self) -> Result<(), PlaybackError> {
        let start = self.segment.start;
        let mut segments = self.archive.segments(&self.stream)?.into_iter();
        let Some(next) = segments.find(|segment| segment.start > start) else {
            return self.finish();
        };
        self.file = File::open(&next.path)?;
        let end = self.at;
        self.at = if next.continues { next.tables } else { 0 };
        self.file.seek(SeekFrom::Start(self.at))?;
        if let PlaybackPace::Index { clock, origin, .. } = &mut self.pace {
            *origin += clock.at(end);
            *clock = ByteClock::new(&Index::read(&File::open(index_path(&next.path))?)?);
        }
        self.segment = next;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), PlaybackError> {
        self.has_ended = true;
        if let PlaybackPace::Pcr { framer, pacer, .. } = &mut self.pace {
            framer.finish();
            let path = || self.segment.path.clone();
            let failed = |error| PlaybackError::Pace { path: path(), error };
            while let Some(packet) = framer.next_packet() {
                pacer.push(packet).map_err(failed)?;
            }
            pacer.finish().map_err(failed)?;
        }
        self.take_paced();
        if let PlaybackPace::Pcr { message, message_at, .. } = &mut self.pace
            && !message.is_empty()
        {
            self.ready.push_back((*message_at, message.split().freeze()));
        }
        Ok(())
    }
}

/// Whether the stream in a file tells its pace from this place on.
fn has_clock(file: &mut File, place: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(place))?;
    let mut start = Vec::new();
    file.take(CLOCK_WITHIN).read_to_end(&mut start)?;
    let (mut framer, mut pacer) = (Framer::default(), PcrPacer::default());
    framer.push(&start);
    framer.finish();
    let mut is_paced = false;
    while let Some(packet) = framer.next_packet().filter(|_| !is_paced) {
        if pacer.push(packet).is_err() {
            return Ok(false);
        }
        is_paced = pacer.pop().is_some();
    }
    let is_transport_stream = framer.skipped_bytes() < PACKET_LEN as u64;
    Ok(is_transport_stream && (is_paced || pacer.finish().is_ok()))
}

/// Bytes that are read at once.
const BLOCK: usize = 64 << 10;
/// Bytes of a message: seven packets.
const MESSAGE: usize = 7 * PACKET_LEN;
/// The most bytes of tables at the start of a segment.
const TABLES_MOST: usize = 1 << 20;
/// The bytes in which the clock of a stream must show.
const CLOCK_WITHIN: u64 = 4 << 20;
