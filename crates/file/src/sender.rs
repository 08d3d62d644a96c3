//! The sender of files in messages.

use std::collections::VecDeque;
use std::io;
use std::slice::Iter;
use std::time::Duration;

use bytes::Bytes;
use punctual::{SendOptions, Socket};
use punctual_units::DisplayBytes;
use tokio::task::block_in_place;
use tokio::time::timeout;

use crate::error::{Error, Side};
use crate::event::{Event, Observer};
use crate::message::{Answer, FromReceiver, FromSender, Language, Segment, SkipReason};
use crate::send::SendFormat;
use crate::source::{Entry, Listing, Reading, Version, changed, is_change};

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
            sender.send_segments(listing.files.iter()).await?;
            sender.later_files(listing).iter().for_each(|problem| sender.problem(problem));
            Ok(())
        }
        Language::Punctual => sender.send_checked(listing).await,
    }
}

struct Sender<'a, O> {
    socket: &'a Socket,
    /// Most bytes of a message.
    segment: usize,
    observer: &'a O,
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
                if last {
                    reading.check_unchanged().map_err(|error| Error::file(&entry.path, error))?;
                }
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
    async fn send_checked(&self, listing: &Listing) -> Result<(), Error> {
        for problem in &listing.problems {
            self.send_message(&FromSender::Unsent(problem.clone())).await?;
        }
        let mut files = listing.files.iter();
        let mut queue = Queue::default();
        loop {
            while queue.has_room()
                && let Some(entry) = files.next()
            {
                self.offer(entry, &mut queue).await?;
            }
            if queue.is_empty() {
                break;
            }
            self.take(self.receive_message().await?, &mut queue).await?;
        }
        for problem in self.later_files(listing) {
            self.unsent(&problem).await?;
        }
        self.send_message(&FromSender::Finish).await?;
        loop {
            match self.receive_message().await? {
                FromReceiver::Bye if queue.sent.is_empty() => return Ok(()),
                FromReceiver::Done(done) => self.note_done(&mut queue, done)?,
                _ => return Err(unexpected()),
            }
        }
    }

    /// A problem for each file that came into the folder while it was sent.
    fn later_files(&self, listing: &Listing) -> Vec<String> {
        let names = block_in_place(|| listing.later_files()).into_iter();
        names
            .map(|name| format!("{name}: it came while the folder was sent: send it again"))
            .collect()
    }

    /// Offers a file, or reports at both ends that it cannot be sent.
    async fn offer<'a>(&self, entry: &'a Entry, queue: &mut Queue<'a>) -> Result<(), Error> {
        match block_in_place(|| Version::of(&entry.path)) {
            Ok((version, fingerprint)) => {
                let path = Bytes::copy_from_slice(entry.name.as_str().as_bytes());
                let offer = FromSender::Offer { size: version.size, fingerprint, path };
                queue.push(entry, version);
                self.send_message(&offer).await
            }
            Err(error) => self.unsent(&format!("{}: {error}", entry.name)).await,
        }
    }

    async fn unsent(&self, problem: &str) -> Result<(), Error> {
        self.problem(problem);
        self.send_message(&FromSender::Unsent(problem.to_owned())).await
    }

    /// Takes a message of the receiver, and sends a file whose turn it is then.
    async fn take(&self, message: FromReceiver, queue: &mut Queue<'_>) -> Result<(), Error> {
        match message {
            FromReceiver::Answer(answer) => {
                let offered = queue.offered.pop_front().ok_or_else(unexpected)?;
                self.observer.observe(Event::Began(&offered.entry.name));
                match answer {
                    Answer::Refused(why) => {
                        self.problem(&format!("{}: refused: {why}", offered.entry.name));
                        Ok(())
                    }
                    Answer::Part(0) => self.send_from(&offered, 0, None, queue).await,
                    Answer::Part(have) if have <= offered.version.size => {
                        self.claim(offered, Kind::Part(have), queue).await
                    }
                    Answer::Part(_) => Err(unexpected()),
                    Answer::Whole { replaces } => {
                        self.claim(offered, Kind::Whole { replaces }, queue).await
                    }
                }
            }
            FromReceiver::Verdict(same) => {
                let claimed = queue.claimed.pop_front().ok_or_else(unexpected)?;
                self.observer.observe(Event::Began(&claimed.offered.entry.name));
                self.follow(claimed, same, queue).await
            }
            FromReceiver::Done(done) => self.note_done(queue, done),
            FromReceiver::Hello(_) | FromReceiver::Bye => Err(unexpected()),
        }
    }

    /// Tells the digest of the bytes that the receiver has.
    async fn claim<'a>(
        &self,
        offered: OfferedFile<'a>,
        kind: Kind,
        queue: &mut Queue<'a>,
    ) -> Result<(), Error> {
        let len = match kind {
            Kind::Part(have) => have,
            Kind::Whole { .. } => offered.version.size,
        };
        let read = block_in_place(|| {
            let mut reading = offered.open()?;
            reading.skip(len, |count| self.observer.observe(Event::Compared(count)))?;
            Ok(reading)
        });
        match read {
            Ok(reading) => {
                let (offer, digest) = (offered.number, reading.digest());
                let reading = Some(reading).filter(|_| queue.claimed.len() < HELD_OPEN);
                queue.claimed.push_back(Claimed { offered, kind, reading });
                self.send_message(&FromSender::Claim { offer, digest }).await
            }
            Err(error) => self.skip(&offered, &error).await,
        }
    }

    /// Does what follows from the receiver's verdict on the bytes that it has.
    async fn follow<'a>(
        &self,
        claimed: Claimed<'a>,
        same: bool,
        queue: &mut Queue<'a>,
    ) -> Result<(), Error> {
        let Claimed { offered, kind, reading } = claimed;
        match kind {
            Kind::Part(have) if same => self.send_from(&offered, have, reading, queue).await,
            Kind::Part(_) => self.send_from(&offered, 0, None, queue).await,
            Kind::Whole { .. } if same => {
                self.observer.observe(Event::Spared(offered.version.size));
                self.observer.observe(Event::Unchanged);
                Ok(())
            }
            Kind::Whole { replaces: true } => self.send_from(&offered, 0, None, queue).await,
            Kind::Whole { replaces: false } => {
                self.problem(&format!("{}: {OTHER_FILE}", offered.entry.name));
                Ok(())
            }
        }
    }

    /// Sends a file from `offset` on, to which `reading` has come if it is still open.
    async fn send_from<'a>(
        &self,
        offered: &OfferedFile<'a>,
        offset: u64,
        reading: Option<Reading>,
        queue: &mut Queue<'a>,
    ) -> Result<(), Error> {
        let entry = offered.entry;
        let opened = reading.map_or_else(
            || {
                block_in_place(|| {
                    let mut reading = offered.open()?;
                    reading.skip(offset, |count| self.observer.observe(Event::Compared(count)))?;
                    Ok(reading)
                })
            },
            Ok,
        );
        let mut reading = match opened {
            Ok(reading) => reading,
            Err(error) => return self.skip(offered, &error).await,
        };
        if offset > 0 {
            let bytes = DisplayBytes(offset);
            tracing::info!("{}: going on after {bytes:.1}", entry.name);
        }
        self.observer.observe(Event::Spared(offset));
        self.send_message(&FromSender::Start { offer: offered.number, offset }).await?;
        let rest = usize::try_from(offered.version.size - offset).unwrap_or(usize::MAX);
        let mut buffer = vec![0; rest.min(self.segment - 1)];
        while !reading.is_over() {
            let count = match block_in_place(|| reading.next(&mut buffer)) {
                Ok(count) => count,
                Err(error) => return self.skip(offered, &error).await,
            };
            self.send_message(&FromSender::Data(Bytes::copy_from_slice(&buffer[..count]))).await?;
            self.observer.observe(Event::Carried(count));
        }
        if let Err(error) = reading.check_unchanged() {
            return self.skip(offered, &error).await;
        }
        queue.sent.push_back(entry);
        self.send_message(&FromSender::End(reading.digest())).await
    }

    /// Reports at both ends that nothing of a file is sent, or nothing more.
    async fn skip(&self, offered: &OfferedFile<'_>, error: &io::Error) -> Result<(), Error> {
        self.problem(&format!("{}: {error}", offered.entry.path.display()));
        let reason = match is_change(error) {
            true => SkipReason::Changed,
            false => SkipReason::Failed,
        };
        self.send_message(&FromSender::Skip { offer: offered.number, reason }).await
    }

    /// Takes the receiver's report on the first of the files that it has not reported on yet.
    fn note_done(&self, queue: &mut Queue<'_>, done: Result<(), String>) -> Result<(), Error> {
        let entry = queue.sent.pop_front().ok_or_else(unexpected)?;
        match done {
            Ok(()) => self.observer.observe(Event::Completed),
            Err(why) => {
                self.problem(&format!("{}: at the other end: {why}", entry.name));
            }
        }
        Ok(())
    }
}

/// The files on their way, each in the order in which the receiver answers.
#[derive(Default)]
struct Queue<'a> {
    /// The number of the next offer.
    next: u32,
    /// Offers without an answer.
    offered: VecDeque<OfferedFile<'a>>,
    /// Claims without a verdict.
    claimed: VecDeque<Claimed<'a>>,
    /// Files that were sent, and that the receiver has not reported on.
    sent: VecDeque<&'a Entry>,
}

impl<'a> Queue<'a> {
    fn has_room(&self) -> bool {
        self.offered.len() + self.claimed.len() < OFFERS_AHEAD
    }

    fn is_empty(&self) -> bool {
        self.offered.is_empty() && self.claimed.is_empty()
    }

    fn push(&mut self, entry: &'a Entry, version: Version) {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.offered.push_back(OfferedFile { number, entry, version });
    }
}

/// A file that was offered and is not sent yet.
struct OfferedFile<'a> {
    number: u32,
    entry: &'a Entry,
    /// The file as it was offered.
    version: Version,
}

impl OfferedFile<'_> {
    /// Opens the file, if it is still the one that was offered.
    fn open(&self) -> io::Result<Reading> {
        let reading = Reading::open(&self.entry.path)?;
        if reading.version == self.version { Ok(reading) } else { Err(changed()) }
    }
}

/// A file of which the receiver compares what it has.
struct Claimed<'a> {
    offered: OfferedFile<'a>,
    kind: Kind,
    /// The file behind the bytes that are compared, unless too many are open.
    reading: Option<Reading>,
}

/// The bytes of a file that the receiver has.
#[derive(Clone, Copy)]
enum Kind {
    /// The first ones.
    Part(u64),
    /// As many as the file has; others are replaced or not.
    Whole { replaces: bool },
}

fn unexpected() -> Error {
    Error::Unexpected(Side::Receiver)
}

/// Most files that are offered and not sent yet; a receiver refuses more. Over 200 ms it takes a
/// few thousand small files a second.
pub(crate) const OFFERS_AHEAD: usize = 1_024;

/// Most files that stay open while the receiver compares what it has.
const HELD_OPEN: usize = 8;

/// The problem of a file of which the receiver keeps another version.
pub(crate) const OTHER_FILE: &str = "another file of its name is there (--overwrite replaces it)";

/// How long a Punctual end may take for its first message.
const SILENCE: Duration = Duration::from_secs(5);
