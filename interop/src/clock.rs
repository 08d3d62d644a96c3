use std::process::Command;

/// FFmpeg as an encoder that sends to the address `to`: a clock in the picture, and a tone, as
/// MPEG-TS, coded as the arguments `codecs` say. [`READ_CLOCK`] reads the clock from a screen.
#[must_use]
pub fn clock_encoder(codecs: &str, to: &str) -> Command {
    // The clock is drawn behind the pace of `-re`, which reads some pictures ahead.
    let clock = "settb=AVTB,setpts=RTCTIME,\
                 geq=lum='255*mod(floor(mod(T,1048.576)*1000/pow(2,floor(X/16))),2)':cb=128:cr=128,\
                 setpts=N/25/TB";
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-v", "warning"]);
    command.args(["-re", "-f", "lavfi", "-i", "color=black:s=320x64:r=25"]);
    command.args(["-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]);
    command.args(["-vf", clock]).args(codecs.split_whitespace());
    command.args(["-flush_packets", "1", "-f", "mpegts"]).arg(to);
    command
}

/// A script for a page with a `<video>`: reads the clock in each picture that is shown. It adds
/// the time since `window.opened` (or since the page began) and the picture's delay, both in
/// milliseconds, with the numbers of `window.player`, if any, to `window.shown`.
pub const READ_CLOCK: &str = include_str!("read_clock.js");
