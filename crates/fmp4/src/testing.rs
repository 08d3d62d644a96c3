//! Outputs for tests.

use std::time::Duration;

use bytes::Bytes;

use crate::{Fragment, Init, Output, Track};

/// An initialization segment of nothing.
pub(crate) fn init() -> Output {
    Output::Init(Init {
        video: None,
        audio: None,
        left_out: Vec::new(),
        bytes: Bytes::from_static(b"init"),
        video_bytes: None,
    })
}

/// A picture at this time in milliseconds.
pub(crate) fn picture(at: u64, is_key: bool, is_leading: bool) -> Output {
    Output::Fragment(Fragment {
        track: Track::Video,
        is_key,
        is_leading,
        start: Duration::from_millis(at),
        duration: Duration::from_millis(40),
        bytes: Bytes::from_static(b"picture"),
    })
}
