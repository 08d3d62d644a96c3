//! URIs to copy, for Punctual and other programs.

use std::fmt::Write;
use std::time::Duration;

use punctual_probe::Uris;

/// Writes the URIs, a line each. `latency` is that of other programs.
pub(crate) fn write(text: &mut String, uris: &Uris, latency: Duration) {
    let _ = writeln!(text, "\nURIs to copy");
    // A shell would interpret the `&`.
    let quoted = |uri: &str| format!("'{uri}'");
    row(text, "Punctual both ends", &quoted(&uris.punctual));
    row(text, "  listening", &quoted(&uris.punctual_listener));
    let Some(others) = &uris.others else { return };
    row(text, "srt-live-transmit", &quoted(&others.srt_live_transmit));
    row(text, "  listening", &quoted(&others.srt_live_transmit_listener));
    row(text, "FFmpeg", &quoted(&others.ffmpeg));
    row(text, "OBS, server", &others.obs);
    let micros = latency.as_micros();
    row(text, "", &format!("FFmpeg and OBS count the latency in microseconds: {micros}"));
}

/// A line with a name and its value.
pub(crate) fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<21} {value}");
}
