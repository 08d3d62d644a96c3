//! The receiving end, in messages.

use std::collections::VecDeque;

use punctual::{CloseReason, SendOptions, Socket};
use tokio::task::block_in_place;

use super::message::{Answer, Digest, FromReceiver, FromSender, Language, Segment, Why};
use super::path::RelativePath;
use super::progress::Progress;
use super::send::OFFERS_AHEAD;
use super::session::refuse_rest;
use super::store::{Found, Incoming, Prefix, Store};
use crate::exit::Failure;

/// Receives files until the sender has sent them all.
pub(crate) async fn receive(
    socket: &Socket,
    store: &Store,
    plain: bool,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut receiver = Receiver {
        socket,
        store,
        progress,
        offered: VecDeque::new(),
        current: Current::None,
        finished: false,
        unwritable: false,
        checked: false,
    };
    if socket.info().path_update {
        let language = if plain { Language::Segments } else { Language::Punctual };
        receiver.say(&FromReceiver::Hello(language)).await?;
    }
    loop {
        match socket.recv().await {
            Ok(message) => {
                let message = FromSender::parse(message.payload)
                    .map_err(|error| Failure::runtime(error.to_string()))?;
                let taken = receiver.take_in(message).await;
                if receiver.unwritable {
                    refuse_rest(socket).await;
                }
                taken?;
            }
            Err(_) if receiver.finished => return Ok(()),
            Err(punctual::Error::Closed(CloseReason::Peer)) => return receiver.end(),
            Err(punctual::Error::Truncated) => return Err(receiver.interrupted("the sender left")),
            Err(error) => return Err(receiver.interrupted(&error.to_string())),
        }
    }
}

struct Receiver<'a> {
    socket: &'a Socket,
    store: &'a Store,
    progress: &'a Progress,
    /// What was offered and not refused, in turn.
    offered: VecDeque<Offered>,
    current: Current,
    /// The sender has said that there is no more.
    finished: bool,
    /// The disk does not take what comes.
    unwritable: bool,
    /// The sender speaks as Punctual does.
    checked: bool,
}

struct Offered {
    path: RelativePath,
    size: u64,
    /// What there is of it.
    prefix: Prefix,
}

/// What comes in.
enum Current {
    None,
    /// A file, and its size if that is known.
    File(RelativePath, Option<u64>, Incoming),
    /// A file that cannot be taken, and why.
    Dropped(String),
}

impl Receiver<'_> {
    async fn say(&self, message: &FromReceiver) -> Result<(), Failure> {
        let options = SendOptions { in_order: true, ..SendOptions::default() };
        Ok(self.socket.send_with(message.to_bytes(), options).await?)
    }

    async fn take_in(&mut self, message: FromSender) -> Result<(), Failure> {
        if self.finished {
            return Err(unexpected());
        }
        self.checked |= !matches!(message, FromSender::Segment(_));
        match message {
            FromSender::Segment(segment) => self.take_segment(segment),
            FromSender::Offer { size, path } => {
                let answer = self.consider(size, &path)?;
                self.say(&FromReceiver::Answer(answer)).await
            }
            FromSender::Start { offset } => self.start(offset),
            FromSender::Data(data) => self.write(&data),
            FromSender::End(digest) => {
                let done = self.finish_checked(digest)?;
                self.say(&FromReceiver::Done(done)).await
            }
            FromSender::Skip(why) => self.skip(why),
            FromSender::Finish
                if matches!(self.current, Current::None) && self.offered.is_empty() =>
            {
                self.finished = true;
                self.say(&FromReceiver::Bye).await
            }
            FromSender::Finish => Err(unexpected()),
        }
    }

    /// What there is of a file that is offered.
    fn consider(&mut self, size: u64, path: &[u8]) -> Result<Answer, Failure> {
        if self.offered.len() >= OFFERS_AHEAD {
            return Err(unexpected());
        }
        let found = RelativePath::parse(path).map_err(|error| error.to_string()).and_then(|path| {
            block_in_place(|| self.store.look(&path, size)).map(|found| (path, found))
        });
        let (path, found) = match found {
            Ok(found) => found,
            Err(why) => {
                let path = String::from_utf8_lossy(path);
                self.progress.problem(&format!("{}: not taken: {why}", path.escape_debug()));
                return Ok(Answer::Refused(why));
            }
        };
        self.progress.expect(size);
        let (answer, prefix) = match found {
            Found::Part(prefix) => (Answer::Part(prefix.len, prefix.digest()), prefix),
            Found::Whole(digest) => {
                let replaces = self.store.overwrites;
                (Answer::Whole { digest, replaces }, Prefix::default())
            }
        };
        self.offered.push_back(Offered { path, size, prefix });
        Ok(answer)
    }

    /// The file that is next follows from this place on.
    fn start(&mut self, offset: u64) -> Result<(), Failure> {
        let none = matches!(self.current, Current::None);
        let Some(Offered { path, size, prefix }) = self.offered.pop_front().filter(|_| none) else {
            return Err(unexpected());
        };
        let prefix = match offset {
            0 => Prefix::default(),
            _ if offset == prefix.len => prefix,
            _ => return Err(unexpected()),
        };
        self.progress.spared(offset);
        self.begin(path, Some(size), prefix);
        Ok(())
    }

    fn begin(&mut self, path: RelativePath, size: Option<u64>, prefix: Prefix) {
        self.progress.begin(path.as_str());
        self.current = match block_in_place(|| self.store.begin(&path, prefix)) {
            Ok(incoming) => Current::File(path, size, incoming),
            Err(why) => {
                self.progress.problem(&format!("{path}: not taken: {why}"));
                Current::Dropped(why)
            }
        };
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.progress.carried(data.len());
        let Current::File(path, size, incoming) = &mut self.current else {
            let dropped = matches!(self.current, Current::Dropped(_));
            return if dropped { Ok(()) } else { Err(unexpected()) };
        };
        if size.is_some_and(|size| incoming.len() + data.len() as u64 > size) {
            return Err(unexpected());
        }
        let Err(error) = block_in_place(|| incoming.write(data)) else { return Ok(()) };
        // It will hardly be better with what is behind it, and the sender should not have to find
        // out at the end.
        let why = format!("{path}: {error}");
        self.unwritable = true;
        Err(self.interrupted(&why).unwritable())
    }

    /// The file is over: is it what the sender has?
    fn finish_checked(&mut self, digest: Digest) -> Result<Result<(), String>, Failure> {
        let (path, size, incoming) = match std::mem::replace(&mut self.current, Current::None) {
            Current::File(path, size, incoming) => (path, size, incoming),
            Current::Dropped(why) => return Ok(Err(why)),
            Current::None => return Err(unexpected()),
        };
        let same = size == Some(incoming.len()) && incoming.digest() == digest;
        let done = block_in_place(|| {
            if same {
                incoming.finish()
            } else {
                incoming.discard();
                Err("it did not arrive as it was sent: the checksums differ".to_owned())
            }
        });
        match &done {
            Ok(()) => self.progress.whole(),
            Err(why) => self.progress.problem(&format!("{path}: {why}")),
        }
        Ok(done)
    }

    /// Nothing, or nothing more, of a file is sent.
    fn skip(&mut self, why: Why) -> Result<(), Failure> {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => {
                let offered = self.offered.pop_front().ok_or_else(unexpected)?;
                self.progress.spared(offered.size);
                match why {
                    Why::Same => self.progress.same(),
                    Why::Other => {
                        let path = offered.path;
                        let what = "another file of its name is there (--overwrite replaces it)";
                        self.progress.problem(&format!("{path}: {what}"));
                    }
                    Why::Failed => self.progress.problem(&format!("{}: not sent", offered.path)),
                }
            }
            Current::File(path, ..) => {
                self.progress.problem(&format!("{path}: the sender could not read on"));
            }
            Current::Dropped(_) => {}
        }
        Ok(())
    }

    /// A segment of srt-xtransmit's. Of a file of just as many whole segments it marks no last one,
    /// so the next file's first one ends a file as well.
    fn take_segment(&mut self, segment: Segment) -> Result<(), Failure> {
        if self.checked {
            return Err(unexpected());
        }
        if let Some(path) = segment.path {
            self.finish_segments();
            match RelativePath::parse(&path) {
                Ok(path) => self.begin(path, None, Prefix::default()),
                Err(error) => {
                    let path = String::from_utf8_lossy(&path);
                    let what = format!("{}: not taken: {error}", path.escape_debug());
                    self.progress.problem(&what);
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

    /// The file whose segments came is over.
    fn finish_segments(&mut self) {
        if let Current::File(path, _, incoming) =
            std::mem::replace(&mut self.current, Current::None)
        {
            match block_in_place(|| incoming.finish()) {
                Ok(()) => self.progress.whole(),
                Err(why) => self.progress.problem(&format!("{path}: {why}")),
            }
        }
    }

    /// The sender has closed without a word, as srt-xtransmit does when it is done.
    fn end(&self) -> Result<(), Failure> {
        match &self.current {
            Current::None if !self.checked => Ok(()),
            _ => Err(self.interrupted("the sender left")),
        }
    }

    fn interrupted(&self, why: &str) -> Failure {
        let kept = match &self.current {
            Current::File(path, ..) if self.checked => format!(
                "; what came of {path} is kept as {}: sent again, it goes on there",
                path.part_name()
            ),
            Current::File(path, ..) => format!("; what came of {path} is in {}", path.part_name()),
            Current::None | Current::Dropped(_) => String::new(),
        };
        Failure::runtime(format!("{why} before all had come{kept}"))
    }
}

fn unexpected() -> Failure {
    Failure::runtime("the sender sent a message that makes no sense at this time")
}
