/// The format of a video stream, by its sequence header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VideoFormat {
    /// The profile, such as `High` or `Main 10`; empty if it has no name here.
    pub profile: &'static str,
    /// The number of the profile in the codec's own table.
    pub profile_number: u8,
    /// The level by the codec's own number: of H.264 ten times, of HEVC thirty times the level, of
    /// AV1 its index.
    pub level: u8,
    /// Width of the picture in samples, without what is cut off.
    pub width: u32,
    /// Height of the picture in samples, without what is cut off.
    pub height: u32,
    /// Frames in a second, as numerator and denominator, if the header tells.
    pub frame_rate: Option<(u32, u32)>,
}

/// The format of a sound stream, by its frame's header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AudioFormat {
    /// The profile or layer, such as `LC` or `layer 2`; empty if it has no name here.
    pub profile: &'static str,
    /// Samples in a second of each channel.
    pub sample_rate: u32,
    /// The number of channels; 0 where the header leaves it to a table inside the frame.
    pub channels: u8,
}

/// A frame rate in its shortest form, if it is one.
pub(super) fn rate(numerator: u64, denominator: u64) -> Option<(u32, u32)> {
    let (mut a, mut b) = (numerator, denominator);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    if numerator == 0 || denominator == 0 {
        return None;
    }
    Some((u32::try_from(numerator / a).ok()?, u32::try_from(denominator / a).ok()?))
}

/// The size of a picture within the limits of any level.
pub(super) fn size(width: u64, height: u64) -> Option<(u32, u32)> {
    let fits = |length: u64| (1..=65_536).contains(&length);
    (fits(width) && fits(height)).then_some((width as u32, height as u32))
}
