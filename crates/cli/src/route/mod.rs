//! `punctual route`: carries a stream from a source to one destination or several.

mod resuming;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_ends::route::{
    CutOff, CutOffReason, Destination, Fanout, Flow, Inbox, Members, Openings,
    ResumableDestination, RouteSettings, SinkSpool, Source, StreamDirection, Viewers, WhenFull,
    gather_for,
};
use punctual_ends::{FilePace, Opener, Pacing, Role, check_loop, is_live};
use punctual_uri::{FileTarget, Limits, Target, Uri};
use tokio::task::JoinSet;

use crate::args::{EndOfRoute, RouteArgs, SlowDestination};
use crate::exit::Failure;
use crate::live::Live;
use crate::stats::StatsFiles;
use crate::watching::Watching;
use crate::{stop, uris, written};
use resuming::{kept_streams, read_on, resumed_source};

/// Runs the command until the stream has ended.
pub(crate) async fn run(args: Box<RouteArgs>, quiet: bool) -> Result<(), Failure> {
    let (source, sinks) = openers(&args)?;
    let stop = stop::on_signals(args.duration());
    let source = source.with_stop(stop.clone());
    let sinks = sinks.into_iter();
    let sinks = sinks.map(|sink| sink.with_stop(stop.clone()).with_retries(args.reconnect));
    let sinks: Vec<Opener> = sinks.collect();
    for sink in &sinks {
        check_loop(source.uri(), sink.uri()).await?;
    }
    let grouped = std::iter::once(&source).chain(&sinks).any(Opener::is_grouped);
    let settings = Arc::new(RouteSettings {
        observer: Watching {
            stats: StatsFiles::open(&args.stats, grouped)?,
            live: Live::start(quiet || sinks.iter().all(|sink| is_terminal_output(sink.uri()))),
        },
        stop,
        reconnect: args.reconnect,
        close_listener: args.close_listener,
    });
    carry(source, sinks, &args, settings).await
}

/// The source, and an opener for each destination.
fn openers(args: &RouteArgs) -> Result<(Opener, Vec<Opener>), Failure> {
    let destinations: Vec<Uri> = args.destinations().cloned().collect();
    let size = LARGEST_PAYLOAD.max(args.msgsize);
    destinations.iter().for_each(uris::destination);
    args.sources().for_each(uris::source);
    let sinks = Opener::each(destinations.iter(), Role::Destination, size)?;
    let sources = Opener::each(args.sources(), Role::Source, args.msgsize)?;
    if sources.len() > 1 {
        return Err(Failure::usage(
            "there can be several sources only as the links of a group; -i takes all URIs after it, so \
             the destinations follow -o",
        ));
    }
    let ends = sources.into_iter().chain(sinks);
    let ends = ends.map(|end| end.with_reconnect(args.reconnect));
    let mut sinks = args.callers.admit(ends.collect())?;
    let source = sinks.remove(0);
    check_files(source.uri(), &destinations)?;
    if let Target::File(file) = &source.uri().target
        && args.repeat
        && (file.grows || file.limits != Limits::default())
    {
        let failure = "--loop repeats a whole file: leave out the keys of the file";
        return Err(Failure::usage(failure).at(source.uri()));
    }
    if args.viewers.is_some() && !sinks.iter().any(Opener::listens_for_srt) {
        return Err(Failure::usage("--viewers needs a destination that listens: srt://:4200"));
    }
    if args.bidir && sinks.len() > 1 {
        return Err(Failure::usage("--bidir needs exactly one destination"));
    }
    let pace = args.pace.or((!destinations.iter().any(is_network)).then_some(FilePace::None));
    let pacing = Pacing {
        pace,
        repeat: args.repeat,
        to_live: destinations.iter().any(is_live),
        to_network: destinations.iter().any(is_network),
        option: Some("--pace"),
    };
    let source = source.with_pacing(pacing).with_coalesce(args.coalesce);
    let source = source.with_gather(gather_for(&destinations));
    let source = resumed_source(source, &destinations, args);
    let sinks = sinks.into_iter().map(|sink| {
        let sink = sink.with_source(source.uri()).with_coalesce(args.coalesce);
        sink.with_existing(args.output_files.existing())
    });
    let sinks = sinks.collect();
    Ok((source, sinks))
}

/// Carries the stream from the source to each sink.
///
/// # Errors
///
/// The first failure, of the source or a destination, after which there is no other attempt.
async fn carry(
    source: Opener,
    sinks: Vec<Opener>,
    args: &RouteArgs,
    settings: Arc<RouteSettings<Watching>>,
) -> Result<(), Failure> {
    let names = sinks.iter().map(|sink| sink.uri().to_string()).collect();
    let is_live = is_live(source.uri());
    let when_full = when_full(source.uri(), sinks.len(), args);
    let waits_among_others = matches!(when_full, WhenFull::WaitAmongOthers { .. });
    let spools = waits_among_others && args.slow == SlowDestination::Spool;
    let members = Members::default();
    let (outbox, inboxes) = Fanout::to(names, when_full);
    let (mut back, mut from_back) = (Fanout::to_nobody(), None);
    if args.bidir {
        let (fanout, mut inboxes) = Fanout::to(vec![source.uri().to_string()], WhenFull::Wait);
        (back, from_back) = (fanout, inboxes.pop().map(|inbox| inbox.batches));
    }
    let openings = Openings::default();
    let common = Arc::new(RouteEnd {
        settings: Arc::clone(&settings),
        is_over: AtomicBool::new(false),
        among: (sinks.len() > 1).then_some(args.end),
    });
    let mut ends = JoinSet::new();
    let mut source = source;
    let sinks = kept_streams(sinks, source.uri(), is_live, args)?;
    for ((opener, stream), inbox) in sinks.into_iter().zip(inboxes) {
        let name = opener.uri().clone();
        let Inbox { batches: inbox, cut_off } = match spools {
            true => spooled(inbox, &name, args, &members)?,
            false => inbox,
        };
        let (opening, settings) = (openings.opening(&name), Arc::clone(&settings));
        let ends_with = Arc::clone(&common);
        if let Some(stream) = stream {
            source = read_on(source, &stream)?;
            let destination = ResumableDestination::new(opener, inbox, stream, opening);
            ends.spawn(ends_with.end(destination.run(settings), name, cut_off));
        } else if let Some(limit) = args.viewers.filter(|_| opener.listens_for_srt()) {
            let viewers = Viewers::new(opener, limit, inbox, opening);
            ends.spawn(ends_with.end(viewers.run(settings), name, cut_off));
        } else {
            let outbox = std::mem::replace(&mut back, Fanout::to_nobody());
            let flow = Flow::new(StreamDirection::Out, Some(inbox), outbox);
            let destination = Destination::new(opener, flow, opening);
            ends.spawn(ends_with.end(destination.run(settings), name, cut_off));
        }
    }
    let source = Source::new(source, Flow::new(StreamDirection::In, from_back, outbox), openings);
    ends.spawn(async move {
        let ended = source.run(settings).await;
        common.is_over.store(true, Ordering::Relaxed);
        ended
    });
    joined(ends).await
}

/// Waits for all ends; returns the first failure.
async fn joined(mut ends: JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    let mut result = Ok(());
    while let Some(ended) = ends.join_next().await {
        let ended = ended.unwrap_or_else(|error| Err(Failure::runtime(error.to_string())));
        if ended.as_ref().is_err_and(Failure::is_usage) {
            // The command line is wrong, so nothing is done.
            return ended;
        }
        result = result.and(ended);
    }
    result
}

/// The end of a route, as all its destinations see it.
struct RouteEnd {
    settings: Arc<RouteSettings<Watching>>,
    /// Whether the source has ended.
    is_over: AtomicBool,
    /// The effect of a lost destination if there are others.
    among: Option<EndOfRoute>,
}

impl RouteEnd {
    /// Waits for the end of a destination. If there are others, the failure is logged at once, and
    /// ends them too if the options ask for it.
    async fn end(
        self: Arc<Self>,
        destination: impl Future<Output = Result<(), Failure>>,
        name: Uri,
        cut_off: CutOff,
    ) -> Result<(), Failure> {
        let ended = tokio::select! {
            ended = destination => ended,
            reason = cut_off.reason() => Err(was_cut_off(&reason).at(name)),
        };
        let lost = ended.as_ref().err().filter(|lost| !lost.is_usage());
        match (lost, self.among) {
            (Some(lost), Some(_)) if self.is_over.load(Ordering::Relaxed) => {
                tracing::warn!("{lost}");
            }
            (Some(lost), Some(EndOfRoute::All)) => tracing::warn!("{lost}; the others go on"),
            (Some(lost), Some(EndOfRoute::Any)) => {
                tracing::warn!("{lost}; the others end too, as --end any says");
                self.settings.stop.tell();
            }
            (Some(_), None) | (None, _) => {}
        }
        ended
    }
}

fn was_cut_off(reason: &CutOffReason) -> Failure {
    let failure = Failure::runtime(reason.to_string());
    match reason {
        CutOffReason::TooSlow => failure.with_advice("--slow, --sink-buffer, --sink-spool"),
        CutOffReason::Unreadable(_) => failure,
    }
}

/// Checks that no file is written that another end reads or writes.
fn check_files(source: &Uri, destinations: &[Uri]) -> Result<(), Failure> {
    let mut files: Vec<&Path> = Vec::new();
    for uri in std::iter::once(source).chain(destinations) {
        let Target::File(FileTarget { path, .. }) = &uri.target else { continue };
        // Several ends may write to a device such as /dev/null.
        if path.exists() && !path.is_file() {
            continue;
        }
        if files.iter().any(|file| written::is_same_file(file, path)) {
            let path = path.display();
            return Err(Failure::usage(format!("{path} is at both ends, or twice a destination")));
        }
        files.push(path);
    }
    Ok(())
}

/// The treatment of a destination that is too slow.
fn when_full(source: &Uri, destinations: usize, args: &RouteArgs) -> WhenFull {
    let bytes = args.sink_buffer;
    match args.slow {
        _ if destinations < 2 => WhenFull::Wait,
        _ if is_live(source) => WhenFull::Miss,
        SlowDestination::Spool | SlowDestination::Wait => WhenFull::WaitAmongOthers { bytes },
        SlowDestination::End => WhenFull::CutOff { bytes },
    }
}

/// The inbox of a destination whose messages wait in a file if it is slow.
fn spooled(
    inbox: Inbox,
    destination: &Uri,
    args: &RouteArgs,
    members: &Members,
) -> Result<Inbox, Failure> {
    let name = destination.to_string();
    let (memory, size) = (args.sink_buffer, args.sink_spool);
    SinkSpool::between(inbox, name, memory, size, members).map_err(|error| {
        Failure::runtime(format!(
            "there can be no temporary file in which messages of a slow destination wait ({error}): \
             set TMPDIR to another folder, or use --slow wait"
        ))
    })
}

/// Whether a destination should get a file at the pace of its clock.
fn is_network(uri: &Uri) -> bool {
    matches!(uri.target, Target::Srt(_) | Target::Tcp(_) | Target::Udp(_))
}

/// Whether a destination writes to the terminal that has the live line.
fn is_terminal_output(uri: &Uri) -> bool {
    use std::io::IsTerminal;
    matches!(uri.target, Target::Stdio) && std::io::stdout().is_terminal()
}

/// The largest payload of an SRT packet: datagrams of a source may be larger than 1316 bytes.
const LARGEST_PAYLOAD: usize = 1_456;
