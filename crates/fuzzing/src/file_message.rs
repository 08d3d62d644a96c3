//! Messages of a transfer of files, and the paths in them.

use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use punctual_file::RelativePath;
use punctual_file::message::{Fingerprint, FromReceiver, FromSender};

/// Every message that parses reads the same after it was written, and every path that is accepted
/// lies below the folder.
pub(crate) fn run(input: &[u8]) {
    let message = Bytes::copy_from_slice(input);
    if let Ok(sent) = FromSender::parse(message.clone()) {
        assert_eq!(FromSender::parse(sent.to_bytes()), Ok(sent.clone()));
        match sent {
            FromSender::Offer { path, .. } => stays_below(&path),
            FromSender::Segment(segment) => stays_below(&segment.path.unwrap_or_default()),
            _ => {}
        }
    }
    if let Ok(answered) = FromReceiver::parse(message) {
        assert_eq!(FromReceiver::parse(answered.to_bytes()), Ok(answered));
    }
}

fn stays_below(path: &[u8]) {
    let path = match RelativePath::parse(path) {
        Ok(path) => path,
        Err(error) => return drop(error.to_string()),
    };
    let fingerprint = Some(Fingerprint([0xAB; 8]));
    for name in [path.name(), &path.part_name(None), &path.part_name(fingerprint)] {
        let whole: PathBuf = path.folders().chain([name]).collect();
        assert!(whole.components().all(|part| matches!(part, Component::Normal(_))), "{whole:?}");
        assert_eq!(whole.file_name(), Path::new(name).file_name());
    }
}
