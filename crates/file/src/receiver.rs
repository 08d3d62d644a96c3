//! The receiver of files in messages.

use std::collections::VecDeque;

use punctual::{CloseReason, SendOptions, Socket};
use tokio::task::block_in_place;

use crate::error::{Error, Kept, Side};
use crate::event::{Event, Observer};
use crate::handover::refuse_rest;
use crate::message::{Answer, Digest, FromReceiver, FromSender, Language, Segment, SkipReason};
use crate::path::RelativePath;
use crate::sender::OFFERS_AHEAD;
use crate::store::{Found, Incoming, Prefix, Store};

/// Receives files until the sender has sent them all. A sender on Punctual is told to use
/// `language`.
pub(crate) async fn receive(
    socket: &Socket,
    store: &Store,
    language: Language,
    observer: &impl Observer,
) -> Result<(), Error> {
    let mut receiver = Receiver {
        socket,
        store,
        observer,
        offered: VecDeque::new(),
        current: Current::Nothing,
        heard: Heard::Nothing,
    };
    if socket.info().path_update {
        receiver.send_message(&FromReceiver::Hello(language)).await?;
    }
    loop {
        match socket.recv().await {
            Ok(message) => {
                let taken = receiver.take_in(FromSender::parse(message.payload)?).await;
                if let Err(Error::CannotWrite { .. }) = taken {
                    refuse_rest(socket).await;
                }
                taken?;
            }
            Err(_) if receiver.heard == Heard::Finish => return Ok(()),
            Err(punctual::Error::Closed(CloseReason::Peer)) => return receiver.end(),
            Err(punctual::Error::Truncated) => return Err(receiver.interrupted(LEFT)),
            Err(error) => return Err(receiver.interrupted(&error.to_string())),
        }
    }
}

struct Receiver<'a, O> {
    socket: &'a Socket,
    store: &'a Store,
    observer: &'a O,
    /// Files that were offered and not refused, in the order in which they will be sent.
    offered: VecDeque<Offered>,
    current: Current,
    heard: Heard,
}

struct Offered {
    path: RelativePath,
    size: u64,
    /// The bytes of the file that are there.
    prefix: Prefix,
}

/// The file whose bytes come at present.
enum Current {
    Nothing,
    /// A file, and its size if that is known.
    File(RelativePath, Option<u64>, Incoming),
    /// A file that cannot be taken, and the reason.
    Dropped(String),
}

/// The kinds of messages that the sender has sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heard {
    /// Nothing, or segments alone.
    Nothing,
    /// Messages of the language of two Punctual ends.
    Punctual,
    /// The message that there are no more files.
    Finish,
}

impl<O: Observer> Receiver<'_, O> {
    async fn send_message(&self, message: &FromReceiver) -> Result<(), Error> {
        let options = SendOptions { in_order: true, ..SendOptions::default() };
        Ok(self.socket.send_with(message.to_bytes(), options).await?)
    }

    fn problem(&self, problem: &str) {
        self.observer.observe(Event::Problem(problem));
    }

    async fn take_in(&mut self, message: FromSender) -> Result<(), Error> {
        self.heard = match (self.heard, &message) {
            (Heard::Nothing, FromSender::Segment(_)) => Heard::Nothing,
            (Heard::Finish, _) | (Heard::Punctual, FromSender::Segment(_)) => {
                return Err(unexpected());
            }
            (Heard::Nothing | Heard::Punctual, _) => Heard::Punctual,
        };
        match message {
            FromSender::Segment(segment) => self.take_segment(segment),
            FromSender::Offer { size, path } => {
                let answer = self.consider(size, &path)?;
                self.send_message(&FromReceiver::Answer(answer)).await
            }
            FromSender::Start { offset } => self.start(offset),
            FromSender::Data(data) => self.write(&data),
            FromSender::End(digest) => {
                let done = self.finish_checked(digest)?;
                self.send_message(&FromReceiver::Done(done)).await
            }
            FromSender::Skip(reason) => self.skip(reason),
            FromSender::Finish
                if matches!(self.current, Current::Nothing) && self.offered.is_empty() =>
            {
                self.heard = Heard::Finish;
                self.send_message(&FromReceiver::Bye).await
            }
            FromSender::Finish => Err(unexpected()),
        }
    }

    /// The answer to the offer of a file.
    fn consider(&mut self, size: u64, path: &[u8]) -> Result<Answer, Error> {
        if self.offered.len() >= OFFERS_AHEAD {
            return Err(unexpected());
        }
        let found = RelativePath::parse(path).map_err(|error| error.to_string()).and_then(|path| {
            let found = block_in_place(|| self.store.look(&path, size));
            found.map(|found| (path, found)).map_err(|error| error.to_string())
        });
        let (path, found) = match found {
            Ok(found) => found,
            Err(why) => {
                let path = String::from_utf8_lossy(path);
                self.problem(&format!("{}: not taken: {why}", path.escape_debug()));
                return Ok(Answer::Refused(why));
            }
        };
        self.observer.observe(Event::Offered(size));
        let (answer, prefix) = match found {
            Found::Part(prefix) => (Answer::Part(prefix.len, prefix.digest()), prefix),
            Found::Whole(digest) => {
                let replaces = self.store.replaces();
                (Answer::Whole { digest, replaces }, Prefix::default())
            }
        };
        self.offered.push_back(Offered { path, size, prefix });
        Ok(answer)
    }

    /// Begins the file that was offered first, from `offset` on.
    fn start(&mut self, offset: u64) -> Result<(), Error> {
        let none = matches!(self.current, Current::Nothing);
        let Some(Offered { path, size, prefix }) = self.offered.pop_front().filter(|_| none) else {
            return Err(unexpected());
        };
        let prefix = match offset {
            0 => Prefix::default(),
            _ if offset == prefix.len => prefix,
            _ => return Err(unexpected()),
        };
        self.observer.observe(Event::Spared(offset));
        self.begin(path, Some(size), prefix);
        Ok(())
    }

    fn begin(&mut self, path: RelativePath, size: Option<u64>, prefix: Prefix) {
        self.observer.observe(Event::Began(&path));
        self.current = match block_in_place(|| self.store.begin(&path, prefix)) {
            Ok(incoming) => Current::File(path, size, incoming),
            Err(error) => {
                self.problem(&format!("{path}: not taken: {error}"));
                Current::Dropped(error.to_string())
            }
        };
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Error> {
        self.observer.observe(Event::Carried(data.len()));
        let Current::File(path, size, incoming) = &mut self.current else {
            let dropped = matches!(self.current, Current::Dropped(_));
            return if dropped { Ok(()) } else { Err(unexpected()) };
        };
        if size.is_some_and(|size| incoming.len() + data.len() as u64 > size) {
            return Err(unexpected());
        }
        // The transfer ends with the first error: the next write would fail as well, and the sender
        // should hear of it now.
        let Err(error) = block_in_place(|| incoming.write(data)) else { return Ok(()) };
        let path = path.clone();
        Err(Error::CannotWrite { path, error, kept: self.kept() })
    }

    /// Completes the current file if it is the one that the sender has; otherwise gives the reason
    /// for the sender.
    fn finish_checked(&mut self, digest: Digest) -> Result<Result<(), String>, Error> {
        let (path, size, incoming) = match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::File(path, size, incoming) => (path, size, incoming),
            Current::Dropped(why) => return Ok(Err(why)),
            Current::Nothing => return Err(unexpected()),
        };
        let same = size == Some(incoming.len()) && incoming.digest() == digest;
        let done = block_in_place(|| {
            if same {
                incoming.finish().map_err(|error| error.to_string())
            } else {
                incoming.discard();
                Err("it did not arrive as it was sent: the checksums differ".to_owned())
            }
        });
        match &done {
            Ok(()) => self.observer.observe(Event::Completed),
            Err(why) => self.problem(&format!("{path}: {why}")),
        }
        Ok(done)
    }

    /// Drops the current file, of which nothing more is sent, or the one that was offered first.
    fn skip(&mut self, reason: SkipReason) -> Result<(), Error> {
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {
                let offered = self.offered.pop_front().ok_or_else(unexpected)?;
                self.observer.observe(Event::Spared(offered.size));
                match reason {
                    SkipReason::Same => self.observer.observe(Event::Unchanged),
                    SkipReason::Other => {
                        let path = offered.path;
                        let problem = "another file of its name is there (--overwrite replaces it)";
                        self.problem(&format!("{path}: {problem}"));
                    }
                    SkipReason::Failed => self.problem(&format!("{}: not sent", offered.path)),
                }
            }
            Current::File(path, ..) => {
                self.problem(&format!("{path}: the sender could not read on"));
            }
            Current::Dropped(_) => {}
        }
        Ok(())
    }

    /// Takes a segment. srt-xtransmit marks no last segment of a file that fills its segments
    /// exactly, so the next file's first segment ends a file as well.
    fn take_segment(&mut self, segment: Segment) -> Result<(), Error> {
        if let Some(path) = segment.path {
            self.finish_segments();
            match RelativePath::parse(&path) {
                Ok(path) => self.begin(path, None, Prefix::default()),
                Err(error) => {
                    let path = String::from_utf8_lossy(&path);
                    self.problem(&format!("{}: not taken: {error}", path.escape_debug()));
                    self.current = Current::Dropped(error.to_string());
                }
            }
        }
        self.write(&segment.data)?;
        if segment.last {
            self.finish_segments();
        }
        Ok(())
    }

    /// Completes the file whose segments came.
    fn finish_segments(&mut self) {
        if let Current::File(path, _, incoming) =
            std::mem::replace(&mut self.current, Current::Nothing)
        {
            match block_in_place(|| incoming.finish()) {
                Ok(()) => self.observer.observe(Event::Completed),
                Err(why) => self.problem(&format!("{path}: {why}")),
            }
        }
    }

    /// The result when the sender closes the connection without a message, as srt-xtransmit does
    /// when it has sent everything.
    fn end(&self) -> Result<(), Error> {
        match (&self.current, self.heard) {
            (Current::Nothing, Heard::Nothing) => Ok(()),
            _ => Err(self.interrupted(LEFT)),
        }
    }

    fn interrupted(&self, why: &str) -> Error {
        Error::Interrupted { why: why.to_owned(), kept: self.kept() }
    }

    /// The current file, whose bytes are kept.
    fn kept(&self) -> Option<Kept> {
        let Current::File(path, ..) = &self.current else { return None };
        Some(Kept { path: path.clone(), resumable: self.heard != Heard::Nothing })
    }
}

fn unexpected() -> Error {
    Error::Unexpected(Side::Sender)
}

/// The reason of an interruption where the sender closed the connection.
const LEFT: &str = "the sender left";
