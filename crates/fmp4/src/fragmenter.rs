use std::collections::VecDeque;
use std::time::Duration;

use punctual_mpegts::{ElementaryStream, Packet, PesPacket, StreamKind};

use crate::audio::{AudioCoding, AudioConfig};
use crate::audio_track::{AudioTrack, Sound};
use crate::boxes::{self, Sample, TrackHeader};
use crate::output::{AudioInfo, Fragment, Init, Output, Track, VideoInfo};
use crate::timeline::Timeline;
use crate::video::{VideoCoding, VideoConfig};
use crate::video_track::{TimedPicture, VideoTrack};

/// Makes fragmented MP4 of one program of a transport stream, without coding anything anew.
///
/// The program's streams go in by [`set_streams`](Self::set_streams), packets in their order by
/// [`push`](Self::push), and what became of them comes out by [`pop`](Self::pop): an [`Init`], then
/// fragments as early as the stream allows, and another [`Init`] whenever codecs, size or tracks
/// change. The first stream of video and the first of sound that browsers know are used.
///
/// Nothing comes out before a key frame. Memory is bounded for any input: a PES packet of each
/// track, and the fragments of a part of a second at the start.
#[derive(Debug, Default)]
pub struct Fragmenter {
    streams: Vec<ElementaryStream>,
    video: Option<VideoTrack>,
    audio: Option<AudioTrack>,
    line: Timeline,
    current: Option<CurrentProgram>,
    /// Pieces that wait for the first sound.
    early: Vec<Piece>,
    sequence: u32,
    output: VecDeque<Output>,
}

/// The tracks of the latest initialization segment.
#[derive(Debug)]
struct CurrentProgram {
    video: Option<VideoConfig>,
    audio: Option<AudioConfig>,
    /// Where the first key frame behind it is decoded.
    start: i64,
}

/// Samples without their boxes.
#[derive(Debug)]
enum Piece {
    Picture(TimedPicture),
    Sound(Sound),
}

impl Fragmenter {
    /// Tells the streams of the program, whenever its map comes. Nothing happens if they are the
    /// same as before.
    pub fn set_streams(&mut self, streams: &[ElementaryStream]) {
        if self.streams == streams {
            return;
        }
        streams.clone_into(&mut self.streams);
        self.early.clear();
        let video = streams.iter().find_map(|stream| Some((stream, video_coding(stream.kind)?)));
        let audio = streams.iter().find_map(|stream| Some((stream, audio_coding(stream.kind)?)));
        self.video = video
            .map(|(stream, coding)| VideoTrack::new(stream.pid, coding, stream.language.clone()));
        self.audio = audio
            .map(|(stream, coding)| AudioTrack::new(stream.pid, coding, stream.language.clone()));
        self.current = None;
        if self.video.is_none() && self.audio.is_none() && !self.left_out().is_empty() {
            self.output.push_back(Output::Unplayable(self.left_out()));
        }
    }

    /// Takes in the next packet of the stream.
    pub fn push(&mut self, packet: Packet<'_>) {
        let pid = packet.pid();
        if let Some(video) = self.video.as_mut().filter(|video| video.pid() == pid) {
            video.join(packet).iter().flatten().for_each(|pes| self.read_video(pes));
        } else if let Some(audio) = self.audio.as_mut().filter(|audio| audio.pid() == pid) {
            audio.join(packet).iter().flatten().for_each(|pes| self.read_audio(pes));
        }
    }

    /// Says that the stream has ended, so that its last picture comes out.
    pub fn finish(&mut self) {
        if let Some(pes) = self.video.as_mut().and_then(VideoTrack::finish) {
            self.read_video(&pes);
        }
        if let Some(pes) = self.audio.as_mut().and_then(AudioTrack::finish) {
            self.read_audio(&pes);
        }
        self.release_early();
    }

    /// The next piece of the output.
    pub fn pop(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    fn read_video(&mut self, pes: &PesPacket) {
        let Some(video) = &mut self.video else { return };
        let Some(picture) = video.read(pes, &mut self.line) else { return };
        if picture.sample.is_key {
            self.reconsider(picture.time);
        }
        self.put(Piece::Picture(picture));
    }

    fn read_audio(&mut self, pes: &PesPacket) {
        let leads = self.video.is_none();
        let Some(audio) = &mut self.audio else { return };
        let sounds = audio.read(pes, &mut self.line, leads);
        for sound in sounds {
            if leads && let Some(time) = self.audio_time(&sound) {
                self.reconsider(time);
            }
            self.put(Piece::Sound(sound));
        }
    }

    /// At a place to start: makes a new initialization segment if that in force does not fit.
    fn reconsider(&mut self, time: i64) {
        let Some(current) = &self.current else { return };
        let video = self.video.as_ref().and_then(VideoTrack::config);
        let audio = self.audible(time);
        if current.video.as_ref() != video || current.audio.as_ref() != audio {
            self.start(time);
        }
    }

    /// The configuration of the sound, unless it went silent long before `time`.
    fn audible(&self, time: i64) -> Option<&AudioConfig> {
        let audio = self.audio.as_ref()?;
        let end = audio.end()?;
        if time - end > SILENCE { None } else { audio.config() }
    }

    fn put(&mut self, piece: Piece) {
        if self.current.is_some() {
            return self.write(piece);
        }
        // Sound before the first key frame has nothing to be heard with.
        if self.video.is_some() && self.early.is_empty() && matches!(piece, Piece::Sound(_)) {
            return;
        }
        self.early.push(piece);
        let audio_is_known = self.audio.as_ref().is_none_or(|audio| audio.end().is_some());
        if audio_is_known || self.waited_for_audio() {
            self.release_early();
        }
    }

    /// Whether the sound let the picture wait long enough.
    fn waited_for_audio(&self) -> bool {
        let times = || {
            self.early.iter().filter_map(|piece| match piece {
                Piece::Picture(picture) => Some(picture.time),
                Piece::Sound(_) => None,
            })
        };
        let bytes: usize = self.early.iter().map(Piece::size).sum();
        let (first, last) = (times().next(), times().next_back());
        first.zip(last).is_some_and(|(first, last)| last - first >= AUDIO_WAIT)
            || bytes > EARLY_BYTES
    }

    fn release_early(&mut self) {
        let first = match self.early.first() {
            Some(Piece::Picture(picture)) => Some(picture.time),
            Some(Piece::Sound(sound)) => self.audio_time(sound),
            None => None,
        };
        let Some(first) = first else { return };
        self.start(first);
        for piece in std::mem::take(&mut self.early) {
            self.write(piece);
        }
    }

    fn audio_time(&self, sound: &Sound) -> Option<i64> {
        let rate = self.audio.as_ref()?.config()?.sample_rate;
        Some(sound.time.saturating_mul(Timeline::HZ.into()) / i64::from(rate))
    }

    /// Puts out an initialization segment for what follows from `start` on.
    fn start(&mut self, start: i64) {
        let video = self.video.as_ref().and_then(VideoTrack::config).cloned();
        let audio = self.audible(start).cloned();
        if let Some(init) = self.init(video.as_ref(), audio.as_ref()) {
            self.output.push_back(Output::Init(init));
            self.current = Some(CurrentProgram { video, audio, start });
        }
    }

    fn init(&self, video: Option<&VideoConfig>, audio: Option<&AudioConfig>) -> Option<Init> {
        let video_header = video.map(|config| TrackHeader {
            track: Track::Video,
            timescale: Timeline::HZ,
            size: (config.width, config.height),
            language: self.video.as_ref().map_or("und", VideoTrack::language),
            entry: &config.entry,
        });
        let audio_header = audio.map(|config| TrackHeader {
            track: Track::Audio,
            timescale: config.sample_rate,
            size: (0, 0),
            language: self.audio.as_ref().map_or("und", AudioTrack::language),
            entry: &config.entry,
        });
        let headers: Vec<_> = video_header.into_iter().chain(audio_header).collect();
        let video_bytes = video.and_then(|_| boxes::init_segment(&headers[..1]));
        Some(Init {
            video: video.map(|config| VideoInfo {
                name: config.coding.name(),
                codec: config.codec.clone(),
                width: config.width,
                height: config.height,
            }),
            audio: audio.map(|config| AudioInfo {
                name: config.name,
                codec: config.codec.clone(),
                sample_rate: config.sample_rate,
                channels: config.channels,
            }),
            left_out: self.left_out(),
            bytes: boxes::init_segment(&headers)?,
            video_bytes,
        })
    }

    /// The names of picture and sound that the program has only in forms that no browser decodes.
    fn left_out(&self) -> Vec<&'static str> {
        let kinds = self.streams.iter().map(|stream| stream.kind);
        let is_missing = |kind: &StreamKind| {
            (kind.is_video() && self.video.is_none()) || (kind.is_audio() && self.audio.is_none())
        };
        kinds.filter(is_missing).map(StreamKind::name).collect()
    }

    fn write(&mut self, piece: Piece) {
        match piece {
            Piece::Picture(picture) => {
                let TimedPicture { time, is_leading, sample } = picture;
                let (is_key, rate) = (sample.is_key, Timeline::HZ);
                self.write_fragment(Track::Video, time, rate, &[sample], (is_key, is_leading));
            }
            Piece::Sound(sound) => {
                let Some(current) = &self.current else { return };
                let Some(audio) = &self.audio else { return };
                // Sound of another configuration waits for the next place to start.
                let Some(config) = audio.config() else { return };
                if current.audio.as_ref() != Some(config) {
                    return;
                }
                let rate = config.sample_rate;
                let end = (sound.time + sound.length()).saturating_mul(Timeline::HZ.into());
                if end / i64::from(rate) <= current.start {
                    return;
                }
                let is_key = self.video.is_none();
                self.write_fragment(Track::Audio, sound.time, rate, &sound.frames, (is_key, false));
            }
        }
    }

    fn write_fragment(
        &mut self,
        track: Track,
        time: i64,
        rate: u32,
        samples: &[Sample],
        (is_key, is_leading): (bool, bool),
    ) {
        self.sequence = self.sequence.wrapping_add(1);
        let Ok(time) = u64::try_from(time) else { return };
        let Some(bytes) = boxes::fragment(self.sequence, track, time, samples) else { return };
        let length = samples.iter().map(|sample| u64::from(sample.duration)).sum();
        self.output.push_back(Output::Fragment(Fragment {
            track,
            is_key,
            is_leading,
            start: duration(time, rate),
            duration: duration(length, rate),
            bytes,
        }));
    }
}

impl Piece {
    fn size(&self) -> usize {
        match self {
            Self::Picture(picture) => picture.sample.data.len(),
            Self::Sound(sound) => sound.frames.iter().map(|frame| frame.data.len()).sum(),
        }
    }
}

/// How long `units` take, of which there are `rate` in a second.
fn duration(units: u64, rate: u32) -> Duration {
    let rate = u64::from(rate);
    Duration::from_secs(units / rate) + Duration::from_nanos(units % rate * 1_000_000_000 / rate)
}

fn video_coding(kind: StreamKind) -> Option<VideoCoding> {
    match kind {
        StreamKind::H264 => Some(VideoCoding::H264),
        StreamKind::Hevc => Some(VideoCoding::Hevc),
        StreamKind::Av1 => Some(VideoCoding::Av1),
        _ => None,
    }
}

fn audio_coding(kind: StreamKind) -> Option<AudioCoding> {
    match kind {
        StreamKind::AacAdts => Some(AudioCoding::AacAdts),
        StreamKind::AacLatm => Some(AudioCoding::AacLatm),
        StreamKind::Opus => Some(AudioCoding::Opus),
        StreamKind::MpegAudio => Some(AudioCoding::Mpeg),
        _ => None,
    }
}

/// Half a second, in ticks: encoders begin their sound within this time of the first key frame. If
/// it begins later, it is heard from the next key frame on.
const AUDIO_WAIT: i64 = 45_000;

/// Two seconds, in ticks: sound that is silent for so long before a key frame is left out from that
/// frame on, because players wait for it.
const SILENCE: i64 = 180_000;

/// Pictures of 100 Mb/s in the time of [`AUDIO_WAIT`].
const EARLY_BYTES: usize = 8 << 20;
