//! The sender of files in messages.

use std::collections::VecDeque;
use std::slice::Iter;
use std::time::Duration;

use bytes::Bytes;
use punctual::{SendOptions, Socket};
use punctual_units::DisplayBytes;
use tokio::task::block_in_place;
use tokio::time::timeout;

use crate::error::{Error, Side};
use crate::event::{Event, Observer};
use crate::message::{Answer, Digest, FromReceiver, FromSender, Language, Segment, SkipReason};
use crate::send::SendFormat;
use crate::source::{Entry, Listing, Reading};

/// Sends all files of `listing`, in the language that the other end chooses if `format` allows it.
pub(crate) async fn send(
    socket: &Socket,
    listing: &Listing,
    format: SendFormat,
    observer: &impl Observer,
) -> Result<(), Error> {
    let info = socket.info();
    if format.segment > info.max_payload {
        tracing::warn!("the other end takes segments of at most {} bytes", info.max_payload);
    }
    let sender = Sender { socket, segment: format.segment.min(info.max_payload), observer };
    // Path updates are Punctual's own, so they tell that the other end runs it. The receiver of
    // another program would send nothing to wait for.
    let language = match format.language {
        Language::Punctual if info.path_update => sender.receive_hello().await?,
        _ => Language::Segments,
    };
    match language {
        Language::Segments => {
            tracing::info!(
                "the other end has no way to say what it has: files are sent from their start, \
                 and their checksums are not compared"
            );
            sender.send_segments(listing.files.iter()).await
        }
        Language::Punctual => sender.send_checked(listing.files.iter()).await,
    }
}

struct Sender<'a, O> {
    socket: &'a Socket,
    /// Most bytes of a message.
    segment: usize,
    observer: &'a O,
}

/// A file that was offered and is not sent yet.
struct Offered<'a> {
    entry: &'a Entry,
    reading: Reading,
}

impl<O: Observer> Sender<'_, O> {
    /// The language that the receiver asks for in its first message. A program built on the library
    /// may send none, and gets segments after [`SILENCE`].
    async fn receive_hello(&self) -> Result<Language, Error> {
        match timeout(SILENCE, self.receive_message()).await {
            Ok(Ok(FromReceiver::Hello(language))) => Ok(language),
            Ok(Ok(_)) => Err(unexpected()),
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(Language::Segments),
        }
    }

    async fn receive_message(&self) -> Result<FromReceiver, Error> {
        let message = self.socket.recv().await?;
        Ok(FromReceiver::parse(message.payload)?)
    }

    async fn send_message(&self, message: &FromSender) -> Result<(), Error> {
        let options = SendOptions { in_order: true, ..SendOptions::default() };
        Ok(self.socket.send_with(message.to_bytes(), options).await?)
    }

    fn problem(&self, problem: &str) {
        self.observer.observe(Event::Problem(problem));
    }

    /// Sends one file after the other as srt-xtransmit does; nothing comes back.
    async fn send_segments(&self, files: Iter<'_, Entry>) -> Result<(), Error> {
        let mut buffer = vec![0; self.segment];
        for entry in files {
            let mut reading = match block_in_place(|| Reading::open(&entry.path)) {
                Ok(reading) => reading,
                Err(error) => {
                    self.problem(&format!("{}: {error}", entry.path.display()));
                    continue;
                }
            };
            self.observer.observe(Event::Began(&entry.name));
            let mut path = Some(Bytes::copy_from_slice(entry.name.as_str().as_bytes()));
            loop {
                let header = 1 + path.as_ref().map_or(0, |path| path.len() + 1);
                let room = self.segment.saturating_sub(header).max(1);
                let room = room.min(buffer.len());
                // A file that has begun cannot be taken back: the receiver would take it for
                // complete.
                let count = block_in_place(|| reading.next(&mut buffer[..room]))
                    .map_err(|error| Error::file(&entry.path, error))?;
                let data = Bytes::copy_from_slice(&buffer[..count]);
                let last = reading.is_over();
                let segment = Segment { path: path.take(), last, data };
                self.send_message(&FromSender::Segment(segment)).await?;
                self.observer.observe(Event::Carried(count));
                if last {
                    break;
                }
            }
            self.observer.observe(Event::Completed);
        }
        Ok(())
    }

    /// Sends files as two Punctual ends do. Offers are sent ahead, so that a small file does not
    /// wait for a round trip.
    async fn send_checked(&self, mut files: Iter<'_, Entry>) -> Result<(), Error> {
        let mut ahead: VecDeque<Offered<'_>> = VecDeque::new();
        let mut sent = VecDeque::new();
        loop {
            while ahead.len() < OFFERS_AHEAD
                && let Some(entry) = files.next()
            {
                match block_in_place(|| Reading::open(&entry.path)) {
                    Ok(reading) => {
                        let path = Bytes::copy_from_slice(entry.name.as_str().as_bytes());
                        self.send_message(&FromSender::Offer { size: reading.size, path }).await?;
                        ahead.push_back(Offered { entry, reading });
                    }
                    Err(error) => {
                        self.problem(&format!("{}: {error}", entry.path.display()));
                    }
                }
            }
            let Some(offered) = ahead.pop_front() else { break };
            let answer = loop {
                match self.receive_message().await? {
                    FromReceiver::Answer(answer) => break answer,
                    FromReceiver::Done(done) => self.note_done(&mut sent, done)?,
                    _ => return Err(unexpected()),
                }
            };
            let entry = offered.entry;
            if self.send_one(offered, answer).await? {
                sent.push_back(entry);
            }
        }
        self.send_message(&FromSender::Finish).await?;
        loop {
            match self.receive_message().await? {
                FromReceiver::Done(done) => self.note_done(&mut sent, done)?,
                FromReceiver::Bye if sent.is_empty() => return Ok(()),
                _ => return Err(unexpected()),
            }
        }
    }

    /// Sends the bytes of a file that the receiver lacks. Returns whether the receiver will report
    /// on the file.
    async fn send_one(&self, offered: Offered<'_>, answer: Answer) -> Result<bool, Error> {
        let Offered { entry, mut reading } = offered;
        self.observer.observe(Event::Began(&entry.name));
        let (skipped, offset) = match answer {
            Answer::Refused(why) => {
                self.problem(&format!("{}: refused: {why}", entry.name));
                return Ok(false);
            }
            Answer::Part(have, digest) => {
                let kept = have > 0 && self.skip(entry, &mut reading, have, &digest);
                (None, if kept { have } else { 0 })
            }
            Answer::Whole { digest, replaces } => {
                let size = reading.size;
                let same = self.skip(entry, &mut reading, size, &digest);
                let why = if same { SkipReason::Same } else { SkipReason::Other };
                (Some(why).filter(|_| same || !replaces), 0)
            }
        };
        match skipped {
            Some(SkipReason::Same) => {
                self.observer.observe(Event::Spared(reading.size));
                self.observer.observe(Event::Unchanged);
            }
            Some(_) => {
                let problem = "another file of its name is there (--overwrite replaces it)";
                self.problem(&format!("{}: {problem}", entry.name));
            }
            None => return self.send_from(entry, reading, offset).await,
        }
        self.send_message(&FromSender::Skip(skipped.unwrap_or(SkipReason::Failed))).await?;
        Ok(false)
    }

    /// Whether a file begins with the bytes that the receiver has. An error of reading is only
    /// logged, because it will come again when the file is sent.
    fn skip(&self, entry: &Entry, reading: &mut Reading, len: u64, digest: &Digest) -> bool {
        let skipped = block_in_place(|| reading.skip(len, digest));
        skipped.unwrap_or_else(|error| {
            tracing::warn!("{}: {error}", entry.path.display());
            false
        })
    }

    /// Sends a file from `offset` on. Returns whether the receiver will report on the file.
    async fn send_from(
        &self,
        entry: &Entry,
        mut reading: Reading,
        offset: u64,
    ) -> Result<bool, Error> {
        if offset > 0 {
            let bytes = DisplayBytes(offset);
            tracing::info!("{}: going on after {bytes:.1}", entry.name);
        }
        self.observer.observe(Event::Spared(offset));
        self.send_message(&FromSender::Start { offset }).await?;
        let mut buffer = vec![0; self.segment - 1];
        while !reading.is_over() {
            let count = match block_in_place(|| reading.next(&mut buffer)) {
                Ok(count) => count,
                Err(error) => {
                    self.problem(&format!("{}: {error}", entry.path.display()));
                    self.send_message(&FromSender::Skip(SkipReason::Failed)).await?;
                    return Ok(false);
                }
            };
            self.send_message(&FromSender::Data(Bytes::copy_from_slice(&buffer[..count]))).await?;
            self.observer.observe(Event::Carried(count));
        }
        self.send_message(&FromSender::End(reading.digest())).await?;
        Ok(true)
    }

    /// Takes the receiver's report on the first of the files that it has not reported on yet.
    fn note_done(
        &self,
        sent: &mut VecDeque<&Entry>,
        done: Result<(), String>,
    ) -> Result<(), Error> {
        let entry = sent.pop_front().ok_or_else(unexpected)?;
        match done {
            Ok(()) => self.observer.observe(Event::Completed),
            Err(why) => {
                self.problem(&format!("{}: at the other end: {why}", entry.name));
            }
        }
        Ok(())
    }
}

fn unexpected() -> Error {
    Error::Unexpected(Side::Receiver)
}

/// Most files that are offered and not sent yet; a receiver refuses more.
pub(crate) const OFFERS_AHEAD: usize = 64;

/// How long a Punctual end may take for its first message.
const SILENCE: Duration = Duration::from_secs(5);
