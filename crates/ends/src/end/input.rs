//! Files and pipes as sources.

use std::io::{Cursor, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::end::bytes::{ByteReader, ByteStream};
use crate::end::growing::GrowingFile;
use crate::end::haste::WatchedPipe;
use crate::end::limited::LimitedStream;
use crate::end::paced::{Clock, PacedReader};
use crate::end::packets::{PacketStream, look_at};
use crate::end::reader::Input;
use crate::end::writer::Output;
use crate::end::{Connection, EndLog, FilePace, Pacing, Reader, Writer};
use crate::failure::Failure;
use punctual_uri::{FileTarget, Limits, Target, Uri};

/// Opens the file or the pipe that `uri` names, for messages of this size. `skip` is the number of
/// bytes that were read from it before.
pub(super) async fn open(
    uri: &Uri,
    message_size: usize,
    pacing: Pacing,
    coalesce: Duration,
    skip: u64,
    log: &Arc<EndLog>,
) -> Result<Connection, Failure> {
    if let Target::File(file) = &uri.target
        && pacing.repeat
        && (file.grows || file.limits != Limits::default())
    {
        return Err(Failure::usage("a file that is repeated is read whole: leave out its keys"));
    }
    let wants_packets =
        pacing.to_network || matches!(pacing.pace, Some(FilePace::Pcr | FilePace::Rate(_)));
    let (stream, file, is_ts): (ByteStream, _, _) = match &uri.target {
        Target::File(target) => {
            let (stream, is_ts) = open_file(target, skip, wants_packets).await?;
            (stream, Some(target), is_ts)
        }
        _ => {
            let stdin = packets_of(Box::new(tokio::io::stdin()), wants_packets, uri);
            let is_watched = pacing.pace.is_none() && pacing.to_live;
            let stdin =
                if is_watched { Box::new(WatchedPipe::new(stdin, pacing.option)) } else { stdin };
            (stdin, None, false)
        }
    };
    let path = file.map(|file| &file.path);
    let limits = file.map(|file| file.limits).unwrap_or_default();
    let clock = match pacing.pace {
        Some(FilePace::Pcr) => Some(Clock::pcr(message_size)),
        Some(FilePace::Rate(rate)) => Some(Clock::rate(rate, message_size)),
        None if is_ts => Some(Clock::pcr(message_size)),
        None => {
            if pacing.to_live {
                warn_of_no_clock(path, pacing.option);
            }
            None
        }
        Some(FilePace::None) => None,
    };
    let reader = match clock {
        Some(clock) => {
            let again = path.filter(|_| pacing.repeat).cloned();
            Input::Paced(Box::new(PacedReader::new(stream, clock, again, coalesce)?))
        }
        None if pacing.repeat => {
            return Err(no_pace(pacing.option));
        }
        None => Input::Bytes(ByteReader::new(stream, message_size).with_read_size(limits.io_size)),
    };
    Ok(Connection::new(Reader(reader), Writer(Output::None), log))
}

/// The packets of `stream`, if it is a transport stream and `wants_packets`.
fn packets_of(stream: ByteStream, wants_packets: bool, uri: &Uri) -> ByteStream {
    match wants_packets {
        true => Box::new(PacketStream::new(stream, uri.to_string())),
        false => stream,
    }
}

/// Opens a file to read, and says whether it is MPEG-TS. `skip` is the number of bytes that were
/// read from it before.
async fn open_file(
    target: &FileTarget,
    skip: u64,
    wants_packets: bool,
) -> Result<(ByteStream, bool), Failure> {
    let name = target.path.display().to_string();
    let mut stream = open_at(target, 0).await?;
    let (start, layout) = look_at(&mut stream, target.grows).await?;
    if wants_packets && layout.is_some() {
        // Packets were read, and only reading tells where they are in the file.
        let stream: ByteStream = Box::new(Cursor::new(start).chain(stream));
        return Ok((Box::new(PacketStream::new(stream, name).skipping(skip)), true));
    }
    let stream: ByteStream = match skip {
        0 => Box::new(Cursor::new(start).chain(stream)),
        _ => open_at(target, skip).await?,
    };
    Ok((stream, layout.is_some()))
}

/// Opens a file within its limits, to read it from this byte on.
async fn open_at(target: &FileTarget, position: u64) -> Result<ByteStream, Failure> {
    let stream: ByteStream = match target.grows {
        true => {
            let (path, marker) = (target.path.clone(), target.marker.clone());
            Box::new(GrowingFile::open(path, marker, position).await?)
        }
        false => {
            let mut file = File::open(&target.path).await?;
            if position > 0 {
                file.seek(SeekFrom::Start(position)).await?;
            }
            Box::new(file)
        }
    };
    let max_size = target.limits.max_size.map(|most| most.saturating_sub(position));
    Ok(LimitedStream::within(&Limits { max_size, ..target.limits }, stream))
}

/// The failure to repeat a file that has no pace.
fn no_pace(option: Option<&str>) -> Failure {
    let failure =
        Failure::usage("a file that is repeated needs a pace: that of MPEG-TS, or a bit rate");
    match option {
        Some(option) => failure.with_advice(&format!("{option} 5Mbps")),
        None => failure,
    }
}

/// Warns that a file is sent faster than a receiver in live mode plays it.
fn warn_of_no_clock(path: Option<&PathBuf>, option: Option<&str>) {
    let Some(path) = path else { return };
    let remedy = match option {
        Some(option) => format!("set the rate by {option}, such as {option} 5Mbps"),
        None => "set the rate".to_owned(),
    };
    tracing::warn!(
        "{} is not MPEG-TS and has no clock, so it is sent as fast as possible, and receivers of \
         live streams drop most of it; {remedy}, or convert it by `ffmpeg -re -i FILE -c copy -f \
         mpegts -`",
        path.display()
    );
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_damaged_recording_goes_on_where_its_packets_ended() {
        let clip = &include_bytes!("../../../../assets/clip.ts")[..188 * 700];
        let damaged = [&clip[..50_000], &[0; 5_000], &clip[50_000..]].concat();
        let path = std::env::temp_dir().join(format!("punctual-damaged-{}.ts", std::process::id()));
        std::fs::write(&path, damaged).unwrap();
        let target = FileTarget::from(path.clone());
        let read = async |skip| {
            let (mut stream, is_ts) = open_file(&target, skip, true).await.unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            assert!(is_ts);
            bytes
        };
        let whole = read(0).await;
        for skip in [1_316, 1_316 * 50_usize] {
            assert!(read(skip as u64).await == whole[skip..], "{skip}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
