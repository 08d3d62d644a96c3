use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::{Fragment, Init, Output};

/// Joins fragments to segments of HLS (RFC 8216), which begin at key frames and are at least about
/// a second long, and keeps the newest ones with their playlist.
#[derive(Clone, Debug, Default)]
pub struct Segmenter {
    /// The initialization segment in force, and its number.
    init: Option<(u64, Arc<Init>)>,
    inits: u64,
    segments: VecDeque<Segment>,
    /// The number of the next segment.
    next: u64,
    /// Breaks among the segments that are gone.
    breaks: u64,
    open: Option<Open>,
    longest: Duration,
}

/// A segment that is complete.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its number, from zero.
    pub number: u64,
    /// The number of its initialization segment.
    pub init: u64,
    /// How long it plays.
    pub duration: Duration,
    /// Its bytes.
    pub bytes: Bytes,
    /// Whether codecs, size or tracks changed before it.
    is_break: bool,
    header: Arc<Init>,
}

#[derive(Clone, Debug)]
struct Open {
    start: Duration,
    end: Duration,
    bytes: BytesMut,
    is_break: bool,
}

impl Segmenter {
    /// Segments that a playlist has. Players start three before the end.
    pub const SEGMENTS: usize = 6;

    /// The most bytes of a segment: longer distances of key frames are cut.
    pub const LONGEST: usize = 32 << 20;

    /// Takes in the next piece of the output.
    pub fn push(&mut self, output: &Output) {
        match output {
            Output::Init(init) => {
                self.close(None);
                self.init = Some((self.inits, Arc::new(init.clone())));
                self.inits += 1;
            }
            Output::Fragment(fragment) => self.push_fragment(fragment),
            Output::Unplayable(_) => {
                self.close(None);
                self.init = None;
            }
        }
    }

    fn push_fragment(&mut self, fragment: &Fragment) {
        if fragment.is_key
            && let Some(open) = &self.open
        {
            let length = fragment.start.saturating_sub(open.start);
            let is_too_long = open.bytes.len() + fragment.bytes.len() > Self::LONGEST;
            if length >= SHORTEST || is_too_long {
                self.close(Some(fragment.start));
            }
        }
        if self.open.is_none() {
            if !fragment.is_key {
                return;
            }
            let last = self.segments.back().map(|segment| segment.init);
            let is_break = last.is_some() && last != self.init.as_ref().map(|(number, _)| *number);
            let start = fragment.start;
            self.open = Some(Open { start, end: start, bytes: BytesMut::new(), is_break });
        }
        if let Some(open) = &mut self.open {
            if open.bytes.len() + fragment.bytes.len() > Self::LONGEST {
                self.open = None;
                return;
            }
            open.end = open.end.max(fragment.start + fragment.duration);
            open.bytes.extend_from_slice(&fragment.bytes);
        }
    }

    /// Completes the segment that is open, which ends where the next begins.
    fn close(&mut self, end: Option<Duration>) {
        let (Some(open), Some((init, header))) = (self.open.take(), &self.init) else { return };
        let duration = end.unwrap_or(open.end).saturating_sub(open.start);
        self.longest = self.longest.max(duration);
        self.segments.push_back(Segment {
            number: self.next,
            init: *init,
            duration,
            bytes: open.bytes.freeze(),
            is_break: open.is_break,
            header: Arc::clone(header),
        });
        self.next += 1;
        if self.segments.len() > Self::SEGMENTS + KEPT
            && let Some(gone) = self.segments.pop_front()
        {
            self.breaks += u64::from(gone.is_break);
        }
    }

    /// Says that the stream has ended: the last segment is complete.
    pub fn finish(&mut self) {
        self.close(None);
    }

    /// The segment of this number, if it is still there.
    pub fn segment(&self, number: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.number == number)
    }

    /// The initialization segment of this number, if a segment still needs it.
    pub fn init(&self, number: u64) -> Option<&Arc<Init>> {
        let kept = self.segments.iter().find(|segment| segment.init == number);
        kept.map(|segment| &segment.header)
    }

    /// The media playlist, in which the names of segments are `init-0.mp4` and `0.m4s`; `None`
    /// before the first segment.
    pub fn playlist(&self) -> Option<String> {
        let listed = self.segments.len().saturating_sub(Self::SEGMENTS);
        let first = self.segments.get(listed)?;
        let breaks = self.breaks
            + self.segments.iter().take(listed).filter(|segment| segment.is_break).count() as u64
            + u64::from(first.is_break);
        // Never shorter than a segment of the list, rounded as RFC 8216 section 4.3.3.1 says.
        let target = self.longest.as_millis().saturating_add(500) / 1000;
        let mut text = format!(
            "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:{}\n\
             #EXT-X-DISCONTINUITY-SEQUENCE:{breaks}\n#EXT-X-INDEPENDENT-SEGMENTS\n",
            target.max(1),
            first.number
        );
        let mut init = None;
        for segment in self.segments.iter().skip(listed) {
            if segment.is_break && init.is_some() {
                text.push_str("#EXT-X-DISCONTINUITY\n");
            }
            if init != Some(segment.init) {
                let _ = writeln!(text, "#EXT-X-MAP:URI=\"init-{}.mp4\"", segment.init);
                init = Some(segment.init);
            }
            let seconds = segment.duration.as_secs_f64();
            let _ = writeln!(text, "#EXTINF:{seconds:.5},\n{}.m4s", segment.number);
        }
        Some(text)
    }
}

/// A segment ends at the first key frame after this time: one a second, whatever the rounding.
const SHORTEST: Duration = Duration::from_millis(950);

/// Segments that are kept behind the playlist, for players that have just read it.
const KEPT: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{init, picture};

    /// `seconds` of pictures from `from` seconds on, a key frame each half second.
    fn push(segmenter: &mut Segmenter, from: u64, seconds: u64) {
        for at in (1000 * from..1000 * (from + seconds)).step_by(100) {
            segmenter.push(&picture(at, at % 500 == 0, false));
        }
    }

    #[test]
    fn segments_begin_at_key_frames_a_second_apart() {
        let mut segmenter = Segmenter::default();
        segmenter.push(&init());
        push(&mut segmenter, 5, 3);
        let playlist = segmenter.playlist().unwrap();
        assert_eq!(
            playlist,
            "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:0\n\
             #EXT-X-DISCONTINUITY-SEQUENCE:0\n#EXT-X-INDEPENDENT-SEGMENTS\n\
             #EXT-X-MAP:URI=\"init-0.mp4\"\n#EXTINF:1.00000,\n0.m4s\n#EXTINF:1.00000,\n1.m4s\n"
        );
        assert_eq!(segmenter.segment(1).unwrap().bytes.len(), 10 * 7);
        assert!(segmenter.segment(2).is_none());
        segmenter.finish();
        assert!(segmenter.segment(2).is_some());
    }

    #[test]
    fn another_header_is_a_break_and_old_segments_go() {
        let mut segmenter = Segmenter::default();
        segmenter.push(&init());
        push(&mut segmenter, 0, 2);
        segmenter.push(&init());
        push(&mut segmenter, 2, 2);
        let playlist = segmenter.playlist().unwrap();
        assert!(playlist.contains("1.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"init-1.mp4\"\n"));

        push(&mut segmenter, 4, 20);
        let playlist = segmenter.playlist().unwrap();
        assert!(playlist.contains("#EXT-X-MEDIA-SEQUENCE:17\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n"));
        assert!(segmenter.segment(13).is_none() && segmenter.init(0).is_none());
        assert!(segmenter.segment(14).is_some(), "players may still ask for it");
    }
}
