//! The sending end, in messages.

use std::collections::VecDeque;
use std::slice::Iter;
use std::time::Duration;

use bytes::Bytes;
use punctual::{SendOptions, Socket};
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::message::{Answer, FromReceiver, FromSender, Language, Segment, Why};
use super::progress::Progress;
use super::source::{Entry, Listing, Reading};
use crate::exit::Failure;

/// Sends all files of `listing` in messages of at most `segment` bytes, in the language that the
/// other end speaks; only in srt-xtransmit's if `plain`.
pub(crate) async fn send(
    socket: &Socket,
    listing: &Listing,
    segment: usize,
    plain: bool,
    progress: &Progress,
) -> Result<(), Failure> {
    let info = socket.info();
    if segment > info.max_payload {
        tracing::warn!("the other end takes segments of at most {} bytes", info.max_payload);
    }
    let sender = Sender { socket, segment: segment.min(info.max_payload), progress };
    // Who is no Punctual would not understand the question, nor answer it.
    let language = if plain || !info.path_update {
        Language::Segments
    } else {
        sender.hear_language().await?
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

struct Sender<'a> {
    socket: &'a Socket,
    segment: usize,
    progress: &'a Progress,
}

/// A file that was offered and not sent yet.
struct Offered<'a> {
    entry: &'a Entry,
    reading: Reading,
}

impl Sender<'_> {
    /// What the receiver says first. A program of the user's own may say nothing.
    async fn hear_language(&self) -> Result<Language, Failure> {
        match timeout(SILENCE, self.hear()).await {
            Ok(Ok(FromReceiver::Hello(language))) => Ok(language),
            Ok(Ok(_)) => Err(unexpected()),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Ok(Language::Segments),
        }
    }

    async fn hear(&self) -> Result<FromReceiver, Failure> {
        let message = self.socket.recv().await?;
        FromReceiver::parse(message.payload).map_err(|error| Failure::runtime(error.to_string()))
    }

    async fn say(&self, message: &FromSender) -> Result<(), Failure> {
        let options = SendOptions { in_order: true, ..SendOptions::default() };
        Ok(self.socket.send_with(message.to_bytes(), options).await?)
    }

    /// srt-xtransmit's way: one file after the other, and nothing comes back.
    async fn send_segments(&self, files: Iter<'_, Entry>) -> Result<(), Failure> {
        let mut buffer = vec![0; self.segment];
        for entry in files {
            let mut reading = match block_in_place(|| Reading::open(&entry.path)) {
                Ok(reading) => reading,
                Err(error) => {
                    self.progress.problem(&format!("{}: {error}", entry.path.display()));
                    continue;
                }
            };
            self.progress.begin(entry.name.as_str());
            let mut path = Some(Bytes::copy_from_slice(entry.name.as_str().as_bytes()));
            loop {
                let header = 1 + path.as_ref().map_or(0, |path| path.len() + 1);
                let room = self.segment.saturating_sub(header).max(1);
                let room = room.min(buffer.len());
                // What was begun cannot be taken back: the receiver would take it for whole.
                let count = block_in_place(|| reading.next(&mut buffer[..room]))
                    .map_err(|error| Failure::file(&entry.path, &error))?;
                let data = Bytes::copy_from_slice(&buffer[..count]);
                let last = reading.is_over();
                let segment = Segment { path: path.take(), last, data };
                self.say(&FromSender::Segment(segment)).await?;
                self.progress.carried(count);
                if last {
                    break;
                }
            }
            self.progress.whole();
        }
        Ok(())
    }

    /// The way between Punctual ends. Offers go ahead, so that small files do not each wait for a
    /// round trip.
    async fn send_checked(&self, mut files: Iter<'_, Entry>) -> Result<(), Failure> {
        let mut ahead: VecDeque<Offered<'_>> = VecDeque::new();
        let mut sent = VecDeque::new();
        loop {
            while ahead.len() < OFFERS_AHEAD
                && let Some(entry) = files.next()
            {
                match block_in_place(|| Reading::open(&entry.path)) {
                    Ok(reading) => {
                        let path = Bytes::copy_from_slice(entry.name.as_str().as_bytes());
                        self.say(&FromSender::Offer { size: reading.size, path }).await?;
                        ahead.push_back(Offered { entry, reading });
                    }
                    Err(error) => {
                        self.progress.problem(&format!("{}: {error}", entry.path.display()));
                    }
                }
            }
            let Some(offered) = ahead.pop_front() else { break };
            let answer = loop {
                match self.hear().await? {
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
        self.say(&FromSender::Finish).await?;
        loop {
            match self.hear().await? {
                FromReceiver::Done(done) => self.note_done(&mut sent, done)?,
                FromReceiver::Bye if sent.is_empty() => return Ok(()),
                _ => return Err(unexpected()),
            }
        }
    }

    /// Sends what the receiver lacks of a file; whether it will say that the file is whole.
    async fn send_one(&self, offered: Offered<'_>, answer: Answer) -> Result<bool, Failure> {
        let Offered { entry, mut reading } = offered;
        self.progress.begin(entry.name.as_str());
        let (skipped, offset) = match answer {
            Answer::Refused(why) => {
                self.progress.problem(&format!("{}: refused: {why}", entry.name));
                return Ok(false);
            }
            Answer::Part(have, digest) => {
                let kept = have > 0 && self.skip(entry, &mut reading, have, &digest);
                (None, if kept { have } else { 0 })
            }
            Answer::Whole { digest, replaces } => {
                let size = reading.size;
                let same = self.skip(entry, &mut reading, size, &digest);
                let why = if same { Why::Same } else { Why::Other };
                (Some(why).filter(|_| same || !replaces), 0)
            }
        };
        match skipped {
            Some(Why::Same) => {
                self.progress.spared(reading.size);
                self.progress.same();
            }
            Some(_) => {
                let what = "another file of its name is there (--overwrite replaces it)";
                self.progress.problem(&format!("{}: {what}", entry.name));
            }
            None => return self.send_from(entry, reading, offset).await,
        }
        self.say(&FromSender::Skip(skipped.unwrap_or(Why::Failed))).await?;
        Ok(false)
    }

    /// Whether a file's first bytes are those that the receiver has. A file that cannot be read is
    /// found out again when it is sent.
    fn skip(&self, entry: &Entry, reading: &mut Reading, len: u64, digest: &[u8; 32]) -> bool {
        let skipped = block_in_place(|| reading.skip(len, digest));
        skipped.unwrap_or_else(|error| {
            tracing::warn!("{}: {error}", entry.path.display());
            false
        })
    }

    async fn send_from(
        &self,
        entry: &Entry,
        mut reading: Reading,
        offset: u64,
    ) -> Result<bool, Failure> {
        if offset > 0 {
            let bytes = punctual_units::DisplayBytes(offset);
            tracing::info!("{}: going on after {bytes:.1}", entry.name);
        }
        self.progress.spared(offset);
        self.say(&FromSender::Start { offset }).await?;
        let mut buffer = vec![0; self.segment - 1];
        while !reading.is_over() {
            let count = match block_in_place(|| reading.next(&mut buffer)) {
                Ok(count) => count,
                Err(error) => {
                    self.progress.problem(&format!("{}: {error}", entry.path.display()));
                    self.say(&FromSender::Skip(Why::Failed)).await?;
                    return Ok(false);
                }
            };
            self.say(&FromSender::Data(Bytes::copy_from_slice(&buffer[..count]))).await?;
            self.progress.carried(count);
        }
        self.say(&FromSender::End(reading.digest())).await?;
        Ok(true)
    }

    /// The receiver says what became of the file that was sent first of those that it has not told
    /// of yet.
    fn note_done(
        &self,
        sent: &mut VecDeque<&Entry>,
        done: Result<(), String>,
    ) -> Result<(), Failure> {
        let entry = sent.pop_front().ok_or_else(unexpected)?;
        match done {
            Ok(()) => self.progress.whole(),
            Err(why) => {
                self.progress.problem(&format!("{}: at the other end: {why}", entry.name));
            }
        }
        Ok(())
    }
}

fn unexpected() -> Failure {
    Failure::runtime("the other end sent a message that makes no sense at this time")
}

/// Files that are offered and not sent yet, at most. A receiver need not bear more.
pub(crate) const OFFERS_AHEAD: usize = 64;

/// How long a Punctual end may take for its first word.
const SILENCE: Duration = Duration::from_secs(5);
