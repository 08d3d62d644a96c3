//! `punctual generate`: sends a generated stream at an exact rate.

mod pace;
mod payload;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use punctual::{Bitrate, now};
use punctual_ends::route::{RouteObserver, StreamDirection};
use punctual_ends::{
    Connection, ConnectionLimits, Opener, Reader, Role, Streams, Writer, carry_all, end_stream,
    is_live,
};
use punctual_io::{SharedTimer, Sleeper};

use crate::args::GenerateArgs;
use crate::exit::Failure;
use crate::live::Live;
use crate::stats::StatsFiles;
use crate::stop::{self, Stop};
use crate::uris;
use crate::watching::Watching;
use pace::MessageTimes;
use payload::Payloads;
use punctual_uri::Uri;

/// Runs the command until all its streams have ended.
pub(crate) async fn run(args: GenerateArgs, quiet: bool) -> Result<(), Failure> {
    if args.stamps.checksum().is_some() {
        Payloads::check_size(args.msgsize)?;
    }
    let pace = MessageTimes::new(&args, rate(&args))?;
    args.destinations().for_each(uris::destination);
    let openers = Opener::each(args.destinations(), Role::Destination, args.msgsize)?;
    let grouped = openers.iter().any(Opener::is_grouped);
    let existing = args.output_files.existing();
    let openers = openers.into_iter().map(move |opener| opener.with_existing(existing));
    let command = Arc::new(Generate {
        watching: Watching {
            stats: StatsFiles::open(&args.stats, grouped)?,
            live: Live::start(quiet),
        },
        stop: stop::on_signals(None),
        timer: SharedTimer::new(args.coalesce)?,
        pace,
        args,
    });
    let result = carry_all(&command, openers).await;
    command.watching.live.say_totals();
    result
}

/// The rate of the streams: that of the options, or [`LIVE_RATE`] if a destination is live, or else
/// no limit.
fn rate(args: &GenerateArgs) -> Bitrate {
    let is_paced = args.sendrate.is_some() || args.playback_csv.is_some();
    if !is_paced && args.destinations().any(is_live) {
        tracing::info!(
            "sending at {LIVE_RATE:#}: --sendrate sets another rate, and --sendrate 0 sends as \
             fast as possible"
        );
        return LIVE_RATE;
    }
    args.sendrate.unwrap_or_default()
}

struct Generate {
    args: GenerateArgs,
    pace: MessageTimes,
    timer: SharedTimer,
    watching: Watching,
    stop: Stop,
}

impl Streams for Generate {
    fn limits(&self) -> ConnectionLimits {
        self.args.connections.limits()
    }

    fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Sends one stream over one connection.
    async fn carry(self: Arc<Self>, uri: Uri, connection: Connection) -> Result<(), Failure> {
        let observed = connection.observed();
        let work = self.stream(connection);
        self.watching.observe(&uri.to_string(), &observed, StreamDirection::Out, work).await
    }
}

impl Generate {
    async fn stream(&self, connection: Connection) -> Result<(), Failure> {
        let Connection { mut reader, mut writer, traffic, socket, .. } = connection;
        let send = async {
            let result = self.send(&mut writer, |bytes| traffic.count(bytes)).await;
            let ended = end_stream(&mut writer, socket.as_ref(), &traffic).await;
            result.and(self.stop.judge(ended))
        };
        if !self.args.twoway {
            return send.await;
        }
        let mut answers = 0;
        let mut send = std::pin::pin!(send);
        let result = tokio::select! {
            result = &mut send => result,
            // The end of the connection also ends the sending, whose result says who closed it.
            () = count_answers(&mut reader, &mut answers) => send.await,
        };
        tracing::info!("{answers} messages came back");
        result
    }

    /// Sends messages at their times until the limit.
    async fn send(&self, writer: &mut Writer, mut count: impl FnMut(usize)) -> Result<(), Failure> {
        let mut payloads = Payloads::new(self.args.msgsize, self.args.stamps.checksum());
        let mut schedule = self.pace.start(now());
        let mut sleeper = self.timer.sleeper();
        let mut batch: VecDeque<Bytes> = VecDeque::with_capacity(BATCH);
        let mut has_more_due = !schedule.is_paced();
        // Polled for each message, so it is made once.
        let mut told = std::pin::pin!(self.stop.told());
        while let Some(due) = schedule.next() {
            if !has_more_due {
                tokio::select! {
                    biased;
                    () = self.wait(&mut sleeper, due) => {}
                    () = &mut told => break,
                }
            }
            let now = now();
            let taken = (0..BATCH).take_while(|_| schedule.take(now)).count();
            has_more_due = taken == BATCH || !schedule.is_paced();
            payloads.make(taken, &mut batch);
            batch.iter().for_each(|message| count(message.len()));
            tokio::select! {
                biased;
                written = writer.write(&mut batch) => written?,
                () = &mut told => break,
            }
        }
        if let Some(behind) = schedule.fell_behind() {
            tracing::warn!("the pace could not be kept: {behind:#} of the stream were left out");
        }
        Ok(())
    }

    async fn wait(&self, sleeper: &mut Sleeper, due: punctual::Instant) {
        if self.args.spin_wait {
            while now() < due {
                tokio::task::yield_now().await;
            }
        } else {
            sleeper.sleep_until(due).await;
        }
    }
}

/// Counts the messages that come back, and ends with the connection.
async fn count_answers(reader: &mut Reader, answers: &mut u64) {
    let mut batch = Vec::new();
    while let Ok(true) = reader.read(&mut batch).await {
        *answers += batch.len() as u64;
        batch.clear();
    }
}

/// The rate of a live stream for which no rate is set: faster than a link carries, most of it would
/// be lost.
const LIVE_RATE: Bitrate = Bitrate::from_mbps(5);

/// The most messages that are handed over at once.
const BATCH: usize = 64;
