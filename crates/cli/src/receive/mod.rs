//! `punctual receive`: receives streams, measures them, and discards them.

mod measure;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::args::{ConnectionArgs, ReceiveArgs};
use crate::connections::{self, Streams};
use crate::endpoint::{Connection, Opener, Role, check_arrival};
use crate::exit::Failure;
use crate::live::{Live, Way};
use crate::output;
use crate::stats::StatsFiles;
use crate::stop::{self, Stop};
use measure::{Measurement, MetricsFile};
use punctual_uri::Uri;

/// Runs the command until all its streams have ended.
pub(crate) async fn run(args: ReceiveArgs, quiet: bool) -> Result<(), Failure> {
    let openers = Opener::each(args.sources(), Role::Source, args.msgsize)?;
    let openers = args.callers.admit(openers)?;
    let grouped = openers.iter().any(Opener::is_grouped);
    let coalesce = args.coalesce;
    let command = Arc::new(Receive {
        stats: StatsFiles::open(&args.stats, grouped)?,
        metrics: MetricsFile::open(&args.metrics)?,
        live: Live::start(quiet),
        stop: Stop::on_signals(args.duration()),
        args,
    });
    let openers = openers.into_iter().map(|opener| opener.with_coalesce(coalesce));
    let result = connections::run_all(&command, openers).await;
    command.live.say_totals();
    result
}

struct Receive {
    args: ReceiveArgs,
    stats: Option<StatsFiles>,
    metrics: Option<MetricsFile>,
    live: Live,
    stop: Stop,
}

impl Streams for Receive {
    fn connections(&self) -> &ConnectionArgs {
        &self.args.connections
    }

    fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Receives one stream.
    async fn carry(self: Arc<Self>, uri: Uri, connection: Connection) -> Result<(), Failure> {
        let watch = self.live.watch(&uri, &connection, Way::In);
        let measurement = Measurement::new(connection.id, &self.args.metrics);
        let end = connection.stats_end();
        let mut work: Work<'_> = Box::pin(self.stream(connection, &measurement));
        if let Some(metrics) = &self.metrics {
            work = Box::pin(metrics.observe(&measurement, work));
        }
        let result = match (&self.stats, &end) {
            (Some(stats), Some(end)) => stats.observe(end, work).await,
            _ => work.await,
        };
        drop(watch);
        result
    }
}

impl Receive {
    async fn stream(
        &self,
        mut connection: Connection,
        measurement: &Measurement,
    ) -> Result<(), Failure> {
        let mut batch = Vec::new();
        let mut answers = VecDeque::new();
        let mut told = std::pin::pin!(self.stop.told());
        let result = loop {
            let more = tokio::select! {
                more = connection.reader.read(&mut batch) => more,
                () = &mut told => break Ok(()),
            };
            match more {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(failure) => break Err(failure),
            }
            if self.metrics.is_some() {
                measurement.submit(&batch);
            }
            for message in batch.drain(..) {
                connection.traffic.count(message.len());
                if self.args.printmsg {
                    print_message(message.len(), connection.id);
                }
                if self.args.twoway {
                    answers.push_back(Bytes::from_static(ANSWER));
                }
            }
            connection.writer.write(&mut answers).await?;
        };
        connection.writer.close().await;
        let arrival = check_arrival(&connection.reader, &connection.traffic);
        result.and(stop::judge(arrival))
    }
}

type Work<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// Prints a line about a message, as srt-xtransmit does.
fn print_message(bytes: usize, id: u64) {
    output::row(format!("RECEIVED MESSAGE length {bytes} on conn ID {id}\n"));
}

/// The answer that srt-xtransmit sends.
const ANSWER: &[u8] = b"Message received";
