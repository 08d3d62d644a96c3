//! `punctual receive`: receives streams, measures them, and discards them.

mod measure;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use punctual_ends::route::{RouteObserver, StreamDirection};
use punctual_ends::{
    Connection, ConnectionLimits, Opener, Role, Streams, carry_all, check_arrival,
};

use crate::args::ReceiveArgs;
use crate::exit::Failure;
use crate::live::Live;
use crate::output;
use crate::stats::StatsFiles;
use crate::stop::{self, Stop};
use crate::uris;
use crate::watching::Watching;
use measure::{ConnectionMeter, MetricsFile};
use punctual_uri::Uri;

/// Runs the command until all its streams have ended.
pub(crate) async fn run(args: ReceiveArgs, quiet: bool) -> Result<(), Failure> {
    args.sources().for_each(uris::source);
    let openers = Opener::each(args.sources(), Role::Source, args.msgsize)?;
    let openers = args.callers.admit(openers)?;
    let grouped = openers.iter().any(Opener::is_grouped);
    let coalesce = args.coalesce;
    let command = Arc::new(Receive {
        watching: Watching {
            stats: StatsFiles::open(&args.stats, grouped)?,
            live: Live::start(quiet),
        },
        metrics: MetricsFile::open(&args.metrics)?,
        stop: stop::on_signals(args.duration()),
        args,
    });
    let openers = openers.into_iter().map(|opener| opener.with_coalesce(coalesce));
    let result = carry_all(&command, openers).await;
    command.watching.live.say_totals();
    result
}

struct Receive {
    args: ReceiveArgs,
    watching: Watching,
    metrics: Option<MetricsFile>,
    stop: Stop,
}

impl Streams for Receive {
    fn limits(&self) -> ConnectionLimits {
        self.args.connections.limits()
    }

    fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Receives one stream.
    async fn carry(self: Arc<Self>, uri: Uri, connection: Connection) -> Result<(), Failure> {
        let measurement = ConnectionMeter::new(connection.id, &self.args.metrics);
        let observed = connection.observed();
        let mut work: Work<'_> = Box::pin(self.stream(connection, &measurement));
        if let Some(metrics) = &self.metrics {
            work = Box::pin(metrics.observe(&measurement, work));
        }
        self.watching.observe(&uri.to_string(), &observed, StreamDirection::In, work).await
    }
}

impl Receive {
    async fn stream(
        &self,
        mut connection: Connection,
        measurement: &ConnectionMeter,
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
        result.and(self.stop.judge(arrival))
    }
}

type Work<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// Prints a line about a message, as srt-xtransmit does.
fn print_message(bytes: usize, id: u64) {
    output::row(format!("RECEIVED MESSAGE length {bytes} on conn ID {id}\n"));
}

/// The answer that srt-xtransmit sends.
const ANSWER: &[u8] = b"Message received";
