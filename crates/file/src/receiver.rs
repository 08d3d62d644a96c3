//! The receiver of files in messages.

use std::collections::BTreeMap;

use punctual::{CloseReason, SendOptions, Socket};
use punctual_units::one_line;
use tokio::task::block_in_place;

use crate::error::{Error, KeptFile, Side};
use crate::event::{Event, Observer};
use crate::handover::refuse_rest;
use crate::message::{
    Answer, Digest, Fingerprint, FromReceiver, FromSender, Language, Segment, SkipReason,
};
use crate::path::RelativePath;
use crate::sender::{OFFERS_AHEAD, OTHER_FILE};
use crate::store::{FileOffer, Found, IncomingFile, Prefix, Store};

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
        offered: BTreeMap::new(),
        next_offer: 0,
        current: CurrentFile::Nothing,
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
    /// Files that were offered and are not settled, by the numbers of their offers.
    offered: BTreeMap<u32, Offered>,
    /// The number of the next offer.
    next_offer: u32,
    current: CurrentFile,
    heard: Heard,
}

struct Offered {
    offer: FileOffer,
    found: Found,
    /// The bytes of the file that are there, once the sender has proven that they are its own.
    prefix: Option<Prefix>,
    was_claimed: bool,
}

/// The file whose bytes come at present.
enum CurrentFile {
    Nothing,
    File(Arriving),
    /// A file that cannot be taken, and the reason.
    Dropped(String),
}

struct Arriving {
    path: RelativePath,
    /// The number of its offer, and its size; `None` if it comes in segments.
    offer: Option<(u32, u64)>,
    incoming: IncomingFile,
}

/// The kinds of messages that the sender has sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heard {
    Nothing,
    /// Segments alone.
    Segments,
    /// Messages of the language of two Punctual ends.
    Punctual,
    /// The message that there are no more files.
    Finish,
}

impl<O: Observer> Receiver<'_, O> {
    /// Sends a message, unless the sender has left: what it sent before is still taken in.
    async fn send_message(&self, message: &FromReceiver) -> Result<(), Error> {
        let options = SendOptions { in_order: true, ..SendOptions::default() };
        match self.socket.send_with(message.to_bytes(), options).await {
            Err(punctual::Error::Closed(CloseReason::Peer)) => Ok(()),
            sent => Ok(sent?),
        }
    }

    fn problem(&self, problem: &str) {
        self.observer.observe(Event::Problem(problem));
    }

    async fn take_in(&mut self, message: FromSender) -> Result<(), Error> {
        self.heard = match (self.heard, &message) {
            (Heard::Nothing | Heard::Segments, FromSender::Segment(_)) => Heard::Segments,
            (Heard::Finish | Heard::Segments, _) | (Heard::Punctual, FromSender::Segment(_)) => {
                return Err(unexpected());
            }
            (Heard::Nothing | Heard::Punctual, _) => Heard::Punctual,
        };
        match message {
            FromSender::Segment(segment) => self.take_segment(segment),
            FromSender::Offer { size, fingerprint, path } => {
                let answer = self.consider(size, fingerprint, &path)?;
                self.send_message(&FromReceiver::Answer(answer)).await
            }
            FromSender::Claim { offer, digest } => {
                let verdict = self.judge(offer, &digest)?;
                self.send_message(&FromReceiver::Verdict(verdict)).await
            }
            FromSender::Start { offer, offset } => self.start(offer, offset),
            FromSender::Data(data) => self.write(&data),
            FromSender::End(digest) => {
                let done = self.finish_checked(digest)?;
                self.send_message(&FromReceiver::Done(done)).await
            }
            FromSender::Skip { offer, reason } => self.skip(offer, reason),
            FromSender::Unsent(problem) => {
                self.problem(&format!("not sent: {}", one_line(&problem)));
                Ok(())
            }
            FromSender::Finish
                if matches!(self.current, CurrentFile::Nothing) && self.offered.is_empty() =>
            {
                self.heard = Heard::Finish;
                self.send_message(&FromReceiver::Bye).await
            }
            FromSender::Finish => Err(unexpected()),
        }
    }

    /// The answer to the offer of a file.
    fn consider(
        &mut self,
        size: u64,
        fingerprint: Fingerprint,
        path: &[u8],
    ) -> Result<Answer, Error> {
        if self.offered.len() >= OFFERS_AHEAD {
            return Err(unexpected());
        }
        let number = self.next_offer;
        self.next_offer = number.wrapping_add(1);
        let found = RelativePath::parse(path).map_err(|error| error.to_string()).and_then(|path| {
            let offer = FileOffer { path, size, fingerprint };
            let found = block_in_place(|| self.store.look(&offer));
            found.map(|found| (offer, found)).map_err(|error| error.to_string())
        });
        let (offer, found) = match found {
            Ok(found) => found,
            Err(why) => {
                let path = String::from_utf8_lossy(path);
                self.problem(&format!("{}: not taken: {why}", path.escape_debug()));
                return Ok(Answer::Refused(why));
            }
        };
        self.observer.observe(Event::Offered(size));
        self.offered.insert(number, Offered { offer, found, prefix: None, was_claimed: false });
        Ok(match found {
            Found::Part(len) => Answer::Part(len),
            Found::Whole => Answer::Whole { replaces: self.store.replaces() },
        })
    }

    /// Whether the bytes of an offered file that are there are the sender's.
    fn judge(&mut self, number: u32, digest: &Digest) -> Result<bool, Error> {
        let Self { store, observer, .. } = *self;
        let offered = self.offered.get_mut(&number).filter(|offered| !offered.was_claimed);
        let offered = offered.ok_or_else(unexpected)?;
        offered.was_claimed = true;
        observer.observe(Event::Began(&offered.offer.path));
        let compared = block_in_place(|| {
            let compared = |count| observer.observe(Event::Compared(count));
            store.compare(&offered.offer, offered.found, digest, compared)
        });
        offered.prefix = compared.unwrap_or_else(|error| {
            tracing::warn!("{}: {error}", offered.offer.path);
            None
        });
        let same = offered.prefix.is_some();
        if offered.found == Found::Whole && (same || !store.replaces()) {
            self.observer.observe(Event::Spared(offered.offer.size));
            if same {
                self.observer.observe(Event::Unchanged);
            } else {
                let problem = format!("{}: {OTHER_FILE}", offered.offer.path);
                self.problem(&problem);
            }
            self.offered.remove(&number);
        }
        Ok(same)
    }

    /// Begins an offered file, from `offset` on.
    fn start(&mut self, number: u32, offset: u64) -> Result<(), Error> {
        let none = matches!(self.current, CurrentFile::Nothing);
        let offered = self.offered.remove(&number).filter(|_| none).ok_or_else(unexpected)?;
        let Offered { offer: FileOffer { path, size, fingerprint }, prefix, .. } = offered;
        let prefix = match (offset, prefix) {
            (0, _) => Prefix::default(),
            (_, Some(prefix)) if offset == prefix.len => prefix,
            _ => return Err(unexpected()),
        };
        self.observer.observe(Event::Spared(offset));
        self.begin(path, Some((number, size)), Some(fingerprint), prefix);
        Ok(())
    }

    fn begin(
        &mut self,
        path: RelativePath,
        offer: Option<(u32, u64)>,
        fingerprint: Option<Fingerprint>,
        prefix: Prefix,
    ) {
        self.observer.observe(Event::Began(&path));
        let len = prefix.len;
        let begun = block_in_place(|| self.store.begin(&path, fingerprint, prefix));
        self.current = match begun {
            Ok(incoming) if incoming.len() == len => {
                CurrentFile::File(Arriving { path, offer, incoming })
            }
            // Somebody has taken away the bytes that were there.
            Ok(_) => self.drop_file(&path, "its first bytes are not there any more"),
            Err(error) => self.drop_file(&path, &error.to_string()),
        };
    }

    fn drop_file(&self, path: &RelativePath, why: &str) -> CurrentFile {
        self.problem(&format!("{path}: not taken: {why}"));
        CurrentFile::Dropped(why.to_owned())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Error> {
        self.observer.observe(Event::Carried(data.len()));
        let CurrentFile::File(Arriving { path, offer, incoming }) = &mut self.current else {
            let dropped = matches!(self.current, CurrentFile::Dropped(_));
            return if dropped { Ok(()) } else { Err(unexpected()) };
        };
        if offer.is_some_and(|(_, size)| incoming.len() + data.len() as u64 > size) {
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
        let current = std::mem::replace(&mut self.current, CurrentFile::Nothing);
        let Arriving { path, offer, incoming } = match current {
            CurrentFile::File(arriving) => arriving,
            CurrentFile::Dropped(why) => return Ok(Err(why)),
            CurrentFile::Nothing => return Err(unexpected()),
        };
        let is_whole = offer.is_some_and(|(_, size)| size == incoming.len());
        let same = is_whole && incoming.digest() == digest;
        let done = block_in_place(|| {
            if same {
                incoming.finish().map_err(|error| error.to_string())
            } else {
                incoming.discard();
                Err("the file did not arrive as it was sent: the checksums differ".to_owned())
            }
        });
        match &done {
            Ok(()) => self.observer.observe(Event::Completed),
            Err(why) => self.problem(&format!("{path}: {why}")),
        }
        Ok(done)
    }

    /// Drops the current file, of which nothing more is sent, or one that was offered.
    fn skip(&mut self, number: u32, reason: SkipReason) -> Result<(), Error> {
        let why = match reason {
            SkipReason::Failed => "the sender cannot read it",
            SkipReason::Changed => "the file changed while it was sent: it must be sent again",
        };
        if let Some(Offered { offer: FileOffer { path, size, .. }, .. }) =
            self.offered.remove(&number)
        {
            self.observer.observe(Event::Spared(size));
            self.problem(&format!("{path}: not sent: {why}"));
            return Ok(());
        }
        match std::mem::replace(&mut self.current, CurrentFile::Nothing) {
            CurrentFile::File(Arriving { path, incoming, .. }) => {
                self.problem(&format!("{path}: {why}"));
                if reason == SkipReason::Changed {
                    block_in_place(|| incoming.discard());
                }
            }
            CurrentFile::Dropped(_) => {}
            CurrentFile::Nothing => return Err(unexpected()),
        }
        Ok(())
    }

    /// Takes a segment. srt-xtransmit marks no last segment of a file that fills its segments
    /// exactly, so the next file's first segment ends a file as well.
    fn take_segment(&mut self, segment: Segment) -> Result<(), Error> {
        if let Some(path) = segment.path {
            self.finish_segments();
            match RelativePath::parse(&path) {
                Ok(path) => self.begin(path, None, None, Prefix::default()),
                Err(error) => {
                    let path = String::from_utf8_lossy(&path);
                    self.problem(&format!("{}: not taken: {error}", path.escape_debug()));
                    self.current = CurrentFile::Dropped(error.to_string());
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
        if let CurrentFile::File(Arriving { path, incoming, .. }) =
            std::mem::replace(&mut self.current, CurrentFile::Nothing)
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
            (CurrentFile::Nothing, Heard::Segments) => Ok(()),
            (_, Heard::Nothing) => Err(Error::NothingCame),
            _ => Err(self.interrupted(LEFT)),
        }
    }

    fn interrupted(&self, why: &str) -> Error {
        Error::Interrupted { why: why.to_owned(), kept: self.kept() }
    }

    /// The current file, whose bytes are kept.
    fn kept(&self) -> Option<KeptFile> {
        let CurrentFile::File(Arriving { path, incoming, .. }) = &self.current else { return None };
        let resumable = self.heard != Heard::Segments;
        Some(KeptFile { path: path.clone(), part: incoming.part_name(), resumable })
    }
}

fn unexpected() -> Error {
    Error::Unexpected(Side::Sender)
}

/// The reason of an interruption where the sender closed the connection.
const LEFT: &str = "the sender left";
