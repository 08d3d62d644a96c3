//! The ends of a route whose streams are resumed.

use std::fs::Metadata;

use punctual::Transmission;
use punctual_ends::route::{KeptStream, SpoolFile};
use punctual_ends::{Existing, Opener, RecordingPlace, ResumedStream};
use punctual_uri::{Target, Uri};

use crate::args::{RouteArgs, SpoolArgs};
use crate::exit::Failure;

/// Whether the stream of the end that `uri` names goes on when its connection was lost: a stream of
/// bytes with frames over a single connection, in one direction, to one peer.
pub(super) fn is_resumed(uri: &Uri, args: &RouteArgs) -> bool {
    let Target::Srt(target) = &uri.target else { return false };
    args.reconnect
        && !args.bidir
        && target.config.transmission() == Transmission::Stream
        && target.framing
        && target.group.is_none()
}

/// The same source, which resumes its stream if the options say so. If the only file among the
/// destinations is appended to, the stream goes on where this file ends.
pub(super) fn resumed_source(source: Opener, destinations: &[Uri], args: &RouteArgs) -> Opener {
    if !is_resumed(source.uri(), args) {
        return source;
    }
    let mut files = destinations.iter().filter_map(|uri| match &uri.target {
        Target::File(file) => Some(&file.path),
        _ => None,
    });
    let is_appended = args.output_files.existing() == Existing::Append;
    let recording = match (files.next(), files.next()) {
        (Some(path), None) if is_appended => Some(RecordingPlace::of(path)),
        _ => None,
    };
    source.with_resumed(ResumedStream::new(recording))
}

/// The same destinations, each with its stream if it is resumed.
///
/// # Errors
///
/// A spool does not belong to exactly one destination, or cannot be opened.
pub(super) fn kept_streams(
    sinks: Vec<Opener>,
    source: &Uri,
    is_live: bool,
    args: &RouteArgs,
) -> Result<Vec<(Opener, Option<KeptStream>)>, Failure> {
    let is_kept = |sink: &Opener| {
        let has_viewers = args.viewers.is_some() && sink.listens_for_srt();
        is_resumed(sink.uri(), args) && !has_viewers
    };
    if args.spool.spool.is_some() && sinks.iter().filter(|sink| is_kept(sink)).count() != 1 {
        return Err(Failure::usage(
            "--spool keeps the stream to exactly one destination of SRT with transtype=stream, \
             without groups, --bidir, --viewers and framing=off",
        ));
    }
    sinks
        .into_iter()
        .map(|sink| match is_kept(&sink) {
            true => {
                let SpoolArgs { spool, spool_memory, spool_size } = args.spool.clone();
                let file = spool.map(|path| SpoolFile { path, size: spool_size });
                let stream = KeptStream::open(&source.to_string(), spool_memory, file, is_live)?;
                Ok((sink.with_resume(), Some(stream)))
            }
            false => Ok((sink, None)),
        })
        .collect()
}

/// The same source, which begins where `stream` ends if it is a file that was read before.
///
/// # Errors
///
/// The file is shorter than what was read of it.
pub(super) fn read_on(source: Opener, stream: &KeptStream) -> Result<Opener, Failure> {
    let read = stream.end();
    let Target::File(file) = &source.uri().target else { return Ok(source) };
    let Some(found) = std::fs::metadata(&file.path).ok().filter(Metadata::is_file) else {
        return Ok(source);
    };
    if read > found.len() {
        return Err(Failure::usage(format!(
            "{} has {} bytes, but the spool has {read} bytes of it: if it is another recording, \
             remove the spool",
            file.path.display(),
            found.len()
        )));
    }
    Ok(source.with_skip(read))
}
