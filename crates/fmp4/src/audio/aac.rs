use mp4_atom::Mp4a;
use mp4_atom::esds::{DecoderConfig, DecoderSpecific, EsDescriptor, Esds, SLConfig};

use super::{AudioConfig, audio};

/// The configuration of AAC by its AudioSpecificConfig (ISO/IEC 14496-3 section 1.6).
pub(super) fn config(
    specific: Vec<u8>,
    object_type: u8,
    sample_rate: u32,
    channels: u8,
) -> AudioConfig {
    let specific = DecoderSpecific { raw: specific, ..DecoderSpecific::default() };
    AudioConfig {
        name: "AAC",
        codec: format!("mp4a.40.{object_type}"),
        sample_rate,
        channels,
        entry: entry(0x40, Some(specific), sample_rate, channels).into(),
    }
}

/// A sample entry `mp4a` for this kind of object (ISO/IEC 14496-1 table 5).
pub(super) fn entry(
    object_type_indication: u8,
    dec_specific: Option<DecoderSpecific>,
    sample_rate: u32,
    channels: u8,
) -> Mp4a {
    let dec_config = DecoderConfig {
        object_type_indication,
        stream_type: AUDIO_STREAM,
        dec_specific,
        ..DecoderConfig::default()
    };
    let es_desc =
        EsDescriptor { es_id: 0, dec_config, sl_config: SLConfig {}, ..EsDescriptor::default() };
    Mp4a { audio: audio(sample_rate, channels), esds: Esds { es_desc }, btrt: None, taic: None }
}

/// Sampling rates by their index.
pub(super) const SAMPLE_RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// The number of channels of a channel configuration; 0 where the stream itself tells.
pub(super) fn channels(configuration: u8) -> u8 {
    match configuration {
        7 | 12 => 8,
        11 => 7,
        other => other,
    }
}

const AUDIO_STREAM: u8 = 5;
