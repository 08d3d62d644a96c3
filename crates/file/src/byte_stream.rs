//! One file as a stream of bytes, as srt-file-transmit carries it: its name is the caller's stream
//! ID, and the end of the connection is the end of the file.

use bytes::Bytes;
use punctual::{CloseReason, Socket, StreamId};
use tokio::task::block_in_place;

use crate::error::Error;
use crate::event::{Event, Observer};
use crate::handover::refuse_rest;
use crate::path::RelativePath;
use crate::source::{Entry, Reading};
use crate::store::{Prefix, Store};

/// Sends the file.
pub(crate) async fn send(
    socket: &Socket,
    entry: &Entry,
    observer: &impl Observer,
) -> Result<(), Error> {
    let failure = |error| Error::file(&entry.path, error);
    let mut reading = block_in_place(|| Reading::open(&entry.path)).map_err(failure)?;
    observer.observe(Event::Began(&entry.name));
    let mut buffer = vec![0; AT_ONCE];
    while !reading.is_over() {
        let count = block_in_place(|| reading.next(&mut buffer)).map_err(failure)?;
        socket.write_all(Bytes::copy_from_slice(&buffer[..count])).await?;
        observer.observe(Event::Carried(count));
    }
    reading.check_unchanged().map_err(failure)?;
    observer.observe(Event::Completed);
    Ok(())
}

/// Receives a file under `name`, or under the name that the caller's stream ID gives.
pub(crate) async fn receive(
    socket: &Socket,
    store: &Store,
    name: Option<&str>,
    observer: &impl Observer,
) -> Result<(), Error> {
    let path = file_name(name, socket.stream_id())?;
    observer.observe(Event::Began(&path));
    let mut incoming = match block_in_place(|| store.begin(&path, None, Prefix::default())) {
        Ok(incoming) => incoming,
        Err(error) => {
            refuse_rest(socket).await;
            return Err(Error::NotTaken { path, error });
        }
    };
    loop {
        match socket.recv().await {
            Ok(message) => {
                observer.observe(Event::Carried(message.payload.len()));
                if let Err(error) = block_in_place(|| incoming.write(&message.payload)) {
                    refuse_rest(socket).await;
                    return Err(Error::CannotWrite { path, error, kept: None });
                }
            }
            // A caller that names no file and sends nothing has no empty file either.
            Err(punctual::Error::Closed(CloseReason::Peer))
                if incoming.len() == 0 && socket.stream_id().is_empty() =>
            {
                incoming.discard();
                return Err(Error::NothingCame);
            }
            Err(punctual::Error::Closed(CloseReason::Peer)) if !was_abandoned(socket) => break,
            Err(_) if was_abandoned(socket) => {
                let why = "the sender gave up in the middle".to_owned();
                return Err(Error::StreamCutOff { path, why });
            }
            Err(error) => return Err(Error::StreamCutOff { path, why: error.to_string() }),
        }
    }
    block_in_place(|| incoming.finish()).map_err(|error| Error::NotFinished { path, error })?;
    observer.observe(Event::Completed);
    Ok(())
}

/// Whether the sender has reported that the end of the stream is not the end of the file.
fn was_abandoned(socket: &Socket) -> bool {
    socket.info().peer_error.is_some()
}

/// The path of the file: `given`, or the one that the stream ID names.
fn file_name(given: Option<&str>, stream_id: &str) -> Result<RelativePath, Error> {
    let (name, origin) = match given {
        Some(name) => (name.to_owned(), "--name"),
        None if stream_id.is_empty() => return Err(Error::NoName),
        None => (resource(stream_id), "the caller's stream ID"),
    };
    RelativePath::parse(name.as_bytes()).map_err(|error| Error::BadName { name, origin, error })
}

/// The resource that a stream ID names, or the whole stream ID if it has no fields.
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
    fn the_name_is_the_given_one_or_the_callers_stream_id() {
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
