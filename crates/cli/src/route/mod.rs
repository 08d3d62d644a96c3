//! `punctual route`: carries a stream from one place to another, or to several.

mod end;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::args::{Pace, RouteArgs};
use crate::endpoint::{Connection, Opener, Pacing, Role};
use crate::exit::Failure;
use crate::live::{Live, Way};
use crate::stats::StatsFile;
use crate::stop::Stop;
use end::{End, Outbox, Shared};
use punctual_uri::{Target, Uri};

/// Runs the command until the stream has ended.
pub(crate) async fn run(args: Box<RouteArgs>, quiet: bool) -> Result<(), Failure> {
    let destinations: Vec<Uri> = args.destinations().cloned().collect();
    let size = LARGEST_PAYLOAD.max(args.msgsize);
    let sinks = Opener::each(destinations.iter(), Role::Destination, size)?;
    let sources = Opener::each(args.sources(), Role::Source, args.msgsize)?;
    let grouped = sources.iter().chain(&sinks).any(Opener::is_grouped);
    let Ok([source]) = <[Opener; 1]>::try_from(sources) else {
        return Err(Failure::usage("there can be several sources only as the links of a group"));
    };
    if args.bidir && sinks.len() > 1 {
        return Err(Failure::usage("--bidir needs exactly one destination"));
    }
    let shared = Arc::new(Shared {
        stats: StatsFile::open(&args.stats, grouped)?,
        live: Live::start(quiet || destinations.iter().all(is_terminal_output)),
        stop: Stop::on_signals(args.duration()),
        reconnect: args.reconnect,
        close_listener: args.close_listener,
    });
    let pace = args.pace.or((!destinations.iter().any(is_network)).then_some(Pace::None));
    let pacing = Pacing { pace, repeat: args.repeat };
    let source = source.with_pacing(pacing);

    // A caller at one end must not wait for the other end to be there.
    let opening: Vec<Opening> =
        std::iter::once(source).chain(sinks).map(|opener| open(opener, &shared)).collect();
    let mut opened = Vec::new();
    for opening in opening {
        match opening.await.map_err(|error| Failure::runtime(error.to_string()))?? {
            Some(end) => opened.push(end),
            None => return Ok(()),
        }
    }
    carry(opened, args.bidir, &shared).await
}

type Opening = JoinHandle<Result<Option<(Opener, Connection)>, Failure>>;

/// Opens an end; with --reconnect it tries until it succeeds. `None` if it is time to stop first.
fn open(mut opener: Opener, shared: &Arc<Shared>) -> Opening {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let connection = shared.stop.or(shared.open(&mut opener)).await.transpose()?;
        Ok(connection.map(|connection| (opener, connection)))
    })
}

/// Carries the stream from the first end to the others.
async fn carry(
    ends: Vec<(Opener, Connection)>,
    bidir: bool,
    shared: &Arc<Shared>,
) -> Result<(), Failure> {
    let mut ends = ends.into_iter();
    let (opener, mut connection) = ends.next().expect("the source was opened");
    connection.reader.skip_old();
    let (back, from_back) = mpsc::channel(QUEUE);
    let mut tasks = JoinSet::new();
    let mut outboxes = Vec::new();
    for (opener, connection) in ends {
        let (outbox, inbox) = mpsc::channel(QUEUE);
        outboxes.push(outbox);
        let outbox = Outbox::new(if bidir { vec![back.clone()] } else { Vec::new() }, false);
        let end = End { opener, way: Way::Out, inbox: Some(inbox), outbox };
        tasks.spawn(end.run(connection, Arc::clone(shared)));
    }
    drop(back);
    let outbox = Outbox::new(outboxes, is_live(opener.uri()));
    let inbox = bidir.then_some(from_back);
    let source = End { opener, way: Way::In, inbox, outbox };
    let mut result = source.run(connection, Arc::clone(shared)).await;
    while let Some(ended) = tasks.join_next().await {
        let ended = ended.unwrap_or_else(|error| Err(Failure::runtime(error.to_string())));
        result = result.and(ended);
    }
    result
}

/// Whether a file should be sent there at the pace of its clock.
fn is_network(uri: &Uri) -> bool {
    matches!(uri.target, Target::Srt(_) | Target::Tcp(_) | Target::Udp(_))
}

/// Whether what comes from there cannot wait.
fn is_live(uri: &Uri) -> bool {
    matches!(uri.target, Target::Srt(_) | Target::Udp(_))
}

/// Whether what is written there appears where the live line is.
fn is_terminal_output(uri: &Uri) -> bool {
    use std::io::IsTerminal;
    matches!(uri.target, Target::Stdio) && std::io::stdout().is_terminal()
}

/// Batches of messages that wait for each destination.
const QUEUE: usize = 64;

/// What an SRT packet holds at most: datagrams that come from elsewhere may be larger than 1316.
const LARGEST_PAYLOAD: usize = 1_456;
