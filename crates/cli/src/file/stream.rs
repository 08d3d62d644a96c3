//! One file as a stream of bytes, as srt-file-transmit has it: its name is the caller's stream ID,
//! and the end of the connection is its end.

use std::path::Path;

use bytes::Bytes;
use punctual::{CloseReason, Socket, StreamId};
use tokio::task::block_in_place;

use super::path::RelativePath;
use super::progress::Progress;
use super::session::refuse_rest;
use super::source::{Entry, Reading};
use super::store::{Prefix, Store};
use crate::exit::Failure;

/// Sends the file.
pub(crate) async fn send(
    socket: &Socket,
    entry: &Entry,
    progress: &Progress,
) -> Result<(), Failure> {
    let failure = |error: &std::io::Error| Failure::file(&entry.path, error);
    let mut reading =
        block_in_place(|| Reading::open(&entry.path)).map_err(|error| failure(&error))?;
    progress.begin(entry.name.as_str());
    let mut buffer = vec![0; AT_ONCE];
    while !reading.is_over() {
        let count =
            block_in_place(|| reading.next(&mut buffer)).map_err(|error| failure(&error))?;
        socket.write_all(Bytes::copy_from_slice(&buffer[..count])).await?;
        progress.carried(count);
    }
    progress.whole();
    Ok(())
}

/// Receives a file under `name`, or under the one that the caller's stream ID gives.
pub(crate) async fn receive(
    socket: &Socket,
    store: &Store,
    name: Option<&str>,
    progress: &Progress,
) -> Result<(), Failure> {
    let path = file_name(name, socket.stream_id())?;
    progress.begin(path.as_str());
    let mut incoming = match block_in_place(|| store.begin(&path, Prefix::default())) {
        Ok(incoming) => incoming,
        Err(why) => {
            refuse_rest(socket).await;
            return Err(Failure::runtime(format!("{path}: not taken: {why}")));
        }
    };
    loop {
        match socket.recv().await {
            Ok(message) => {
                progress.carried(message.payload.len());
                if let Err(error) = block_in_place(|| incoming.write(&message.payload)) {
                    refuse_rest(socket).await;
                    return Err(Failure::file(Path::new(path.as_str()), &error).unwritable());
                }
            }
            Err(punctual::Error::Closed(CloseReason::Peer)) if !gave_up(socket) => break,
            Err(error) => {
                let why = if gave_up(socket) { GAVE_UP.to_owned() } else { error.to_string() };
                let kept = path.part_name();
                return Err(Failure::runtime(format!(
                    "{why}; what came of {path} is in {kept}, and must be sent again from its start"
                )));
            }
        }
    }
    block_in_place(|| incoming.finish())
        .map_err(|why| Failure::runtime(format!("{path}: {why}")))?;
    progress.whole();
    Ok(())
}

/// Whether the sender has said that the end of the stream is not the end of the file.
fn gave_up(socket: &Socket) -> bool {
    socket.info().peer_error.is_some()
}

const GAVE_UP: &str = "the sender gave up in the middle";

/// Where the file is to lie: `given`, or what the stream ID says.
fn file_name(given: Option<&str>, stream_id: &str) -> Result<RelativePath, Failure> {
    let (name, whose) = match given {
        Some(name) => (name.to_owned(), "--name"),
        None if stream_id.is_empty() => {
            return Err(Failure::runtime(
                "the caller's stream ID does not say how the file is called; give it a name by \
                 --name",
            ));
        }
        None => (resource(stream_id), "the caller's stream ID"),
    };
    RelativePath::parse(name.as_bytes()).map_err(|error| {
        Failure::runtime(format!("`{}`, from {whose}, names no file: {error}", name.escape_debug()))
    })
}

/// The resource that a stream ID names; all of it if it has no fields.
fn resource(stream_id: &str) -> String {
    match StreamId::parse(stream_id) {
        Ok(id) if stream_id.starts_with("#!::") => id.resource().unwrap_or_default().to_owned(),
        _ => stream_id.to_owned(),
    }
}

/// Bytes that are read from the file at once.
const AT_ONCE: usize = 256 * 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_given_or_the_callers_stream_id() {
        let name = |given, id| file_name(given, id).map(|path| path.as_str().to_owned());
        assert_eq!(name(None, "clip.ts").unwrap(), "clip.ts");
        assert_eq!(name(None, "#!::u=ann,r=in/clip.ts").unwrap(), "in/clip.ts");
        assert_eq!(name(Some("own.ts"), "clip.ts").unwrap(), "own.ts");
        assert!(name(None, "").unwrap_err().to_string().contains("--name"));
        for id in ["../../etc/passwd", "#!::r=../x", "a/../../b", "..\\x"] {
            assert!(name(None, id).unwrap_err().to_string().contains("names no file"), "{id}");
        }
    }
}
