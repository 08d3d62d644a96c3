//! The boxes of fragmented MP4 (ISO/IEC 14496-12).

use bytes::Bytes;
use mp4_atom::{
    BufMut, Codec, Dinf, Dref, Encode, FixedPoint, Ftyp, Hdlr, Mdhd, Mdia, Mfhd, Minf, Moof, Moov,
    Mvex, Mvhd, Smhd, Stbl, Stco, Stsd, Tfdt, Tfhd, Tkhd, Traf, Trak, Trex, Trun, TrunEntry, Url,
    Vmhd,
};

use crate::Track;

/// A track as its header describes it.
pub(crate) struct TrackHeader<'a> {
    pub(crate) track: Track,
    /// Units of the track's times in a second.
    pub(crate) timescale: u32,
    /// Width and height of the picture.
    pub(crate) size: (u16, u16),
    pub(crate) language: &'a str,
    pub(crate) entry: &'a Codec,
}

/// A sample of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) duration: u32,
    /// From decoding to presentation.
    pub(crate) offset: i64,
    pub(crate) is_key: bool,
    pub(crate) data: Vec<u8>,
}

/// The segment that goes before all fragments of these tracks. No duration in it says that the
/// stream is live.
pub(crate) fn init_segment(tracks: &[TrackHeader<'_>]) -> Option<Bytes> {
    let ftyp = Ftyp {
        major_brand: b"iso6".into(),
        minor_version: 0,
        compatible_brands: vec![b"iso6".into(), b"cmfc".into(), b"mp41".into()],
    };
    let moov = Moov {
        mvhd: Mvhd {
            timescale: 1000,
            rate: 1.into(),
            volume: 1.into(),
            next_track_id: 3,
            ..Mvhd::default()
        },
        mvex: Some(Mvex { mehd: None, trex: tracks.iter().map(defaults).collect() }),
        trak: tracks.iter().map(trak).collect(),
        ..Moov::default()
    };
    let mut bytes = Vec::new();
    ftyp.encode(&mut bytes).ok()?;
    moov.encode(&mut bytes).ok()?;
    Some(bytes.into())
}

fn defaults(header: &TrackHeader<'_>) -> Trex {
    Trex {
        track_id: header.track.id(),
        default_sample_description_index: 1,
        default_sample_duration: 0,
        default_sample_size: 0,
        default_sample_flags: 0,
    }
}

fn trak(header: &TrackHeader<'_>) -> Trak {
    let is_video = header.track == Track::Video;
    let (width, height) = header.size;
    Trak {
        tkhd: Tkhd {
            track_id: header.track.id(),
            enabled: true,
            in_movie: true,
            alternate_group: 0,
            volume: FixedPoint::new(u8::from(!is_video), 0),
            width: width.into(),
            height: height.into(),
            ..Tkhd::default()
        },
        mdia: Mdia {
            mdhd: Mdhd {
                timescale: header.timescale,
                language: header.language.to_owned(),
                ..Mdhd::default()
            },
            hdlr: Hdlr {
                handler: if is_video { b"vide".into() } else { b"soun".into() },
                name: String::new(),
            },
            minf: Minf {
                vmhd: is_video.then(Vmhd::default),
                smhd: (!is_video).then(Smhd::default),
                dinf: Dinf { dref: Dref { entries: vec![Url::default().into()] } },
                stbl: Stbl {
                    stsd: Stsd { codecs: vec![header.entry.clone()] },
                    stco: Some(Stco::default()),
                    ..Stbl::default()
                },
                ..Minf::default()
            },
        },
        ..Trak::default()
    }
}

/// A fragment with samples of one track, of which the first is decoded at `time`.
pub(crate) fn fragment(
    sequence: u32,
    track: Track,
    time: u64,
    samples: &[Sample],
) -> Option<Bytes> {
    let length: usize = samples.iter().map(|sample| sample.data.len()).sum();
    let entry = |sample: &Sample| {
        Some(TrunEntry {
            duration: Some(sample.duration),
            size: Some(u32::try_from(sample.data.len()).ok()?),
            flags: Some(if sample.is_key { STARTS_DECODING } else { NEEDS_OTHERS }),
            cts: (track == Track::Video).then_some(sample.offset),
        })
    };
    let entries = samples.iter().map(entry).collect::<Option<Vec<_>>>()?;
    let run =
        |data_offset| Trun { data_offset: Some(data_offset), samples: entries.clone().into() };
    let mut moof = Moof {
        mfhd: Mfhd { sequence_number: sequence },
        traf: vec![Traf {
            tfhd: Tfhd { track_id: track.id(), default_base_is_moof: true, ..Tfhd::default() },
            tfdt: Some(Tfdt { base_media_decode_time: time }),
            trun: vec![run(0)],
            ..Traf::default()
        }],
    };
    let mut bytes = Vec::with_capacity(length + 120 + 16 * samples.len());
    moof.encode(&mut bytes).ok()?;
    // The data stand behind the header of `mdat`.
    moof.traf[0].trun = vec![run(i32::try_from(bytes.len() + 8).ok()?)];
    bytes.clear();
    moof.encode(&mut bytes).ok()?;
    bytes.extend(u32::try_from(length + 8).ok()?.to_be_bytes());
    bytes.append_slice(b"mdat");
    for sample in samples {
        bytes.extend_from_slice(&sample.data);
    }
    Some(bytes.into())
}

/// Depends on no other sample.
const STARTS_DECODING: u32 = 0x0200_0000;

/// Depends on others, and is no sync sample.
const NEEDS_OTHERS: u32 = 0x0101_0000;
