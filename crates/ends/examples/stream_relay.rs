//! A relay of named streams: publishers send to one listener, and viewers take from it by name.
//!
//! ```sh
//! cargo run -p punctual-ends --example stream_relay -- 0.0.0.0:4200 &
//! punctual generate 'srt://127.0.0.1:4200?streamid=publish:live/one' --sendrate 5Mbps &
//! punctual receive 'srt://127.0.0.1:4200?streamid=live/one'
//! ```
//!
//! The stream ID of a caller names a stream, and says whether the caller publishes it. A stream is
//! there while its publisher is connected; each viewer gets it from the time of its call. A viewer
//! that does not keep up delays no other.

#![expect(clippy::disallowed_types, reason = "the streams are found under a lock")]

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual::{AccessMode, Config, Error, Listener, RejectReason, StreamId};
use punctual_ends::route::{
    AcceptedViewer, ConnectedViewers, Fanout, Flow, RouteSettings, StreamDirection, WhenFull,
};
use punctual_ends::{Connection, EndLog, Stop};
use tokio::sync::mpsc::{Sender, channel};

/// The streams that are published at present.
struct Relay {
    /// For each stream, by its name, the way to hand in a viewer.
    streams: Mutex<HashMap<String, Sender<AcceptedViewer>>>,
    log: Arc<EndLog>,
    settings: Arc<RouteSettings<()>>,
}

/// The part of a caller in the stream of this name.
#[derive(Clone, Debug)]
enum Part {
    Publisher(String),
    Viewer(String),
}

/// Accepts publishers and viewers until `stop` tells the end.
///
/// # Errors
///
/// The listener has stopped.
pub(crate) async fn relay(listener: Listener, stop: Stop) -> Result<(), Error> {
    let relay = Arc::new(Relay {
        streams: Mutex::default(),
        log: Arc::new(EndLog::new(listener.local_addr(), false)),
        settings: Arc::new(RouteSettings { stop, ..RouteSettings::default() }),
    });
    let decider = Arc::clone(&relay);
    let mut gate = listener.gate_with_value(move |caller| {
        let answer = decider.decide(&caller.stream_id);
        async move { answer.map(|part| (Config::default(), part)) }
    });
    while let Some(accepted) = relay.settings.stop.or(gate.accept()).await {
        let (socket, part) = accepted?;
        let connection = Connection::of_socket(socket, &relay.log);
        match part {
            Part::Publisher(name) => drop(tokio::spawn(Arc::clone(&relay).carry(name, connection))),
            Part::Viewer(name) => relay.add_viewer(&name, connection),
        }
    }
    Ok(())
}

impl Relay {
    /// Decides on a caller by its stream ID, before it is accepted.
    fn decide(&self, stream_id: &str) -> Result<Part, RejectReason> {
        let id = StreamId::parse(stream_id).map_err(|_| RejectReason::BAD_REQUEST)?;
        let name = id.resource().ok_or(RejectReason::BAD_REQUEST)?.to_owned();
        let is_published = self.streams().contains_key(&name);
        match id.mode() {
            AccessMode::Publish if is_published => Err(RejectReason::CONFLICT),
            AccessMode::Publish => Ok(Part::Publisher(name)),
            AccessMode::Request if is_published => Ok(Part::Viewer(name)),
            AccessMode::Request => Err(RejectReason::NOT_FOUND),
            AccessMode::Bidirectional => Err(RejectReason::BAD_MODE),
        }
    }

    /// Carries the stream of a publisher to its viewers, until the publisher ends it.
    async fn carry(self: Arc<Self>, name: String, publisher: Connection) {
        let (to_viewers, viewers) = channel(WAITING_VIEWERS);
        match self.streams().entry(name.clone()) {
            // Two publishers of one name have called at the same time.
            Entry::Occupied(_) => return,
            Entry::Vacant(place) => place.insert(to_viewers),
        };
        let (fanout, mut inboxes) = Fanout::to(vec![name.clone()], WhenFull::Miss);
        let inbox = inboxes.pop().expect("one name has one inbox");
        let mut flow = Flow::new(StreamDirection::In, None, fanout);
        let publish = async {
            if let Err(failure) = flow.carry(&name, publisher, &self.settings).await {
                self.log.lost(format_args!("{name}: {failure}"));
            }
            self.streams().remove(&name);
            drop(flow);
        };
        let (log, settings) = (Arc::clone(&self.log), Arc::clone(&self.settings));
        let serve = ConnectedViewers::new(name.clone(), log, settings);
        tokio::join!(publish, serve.serve(inbox.batches, viewers));
    }

    /// Hands a viewer to its stream. The connection is closed if the stream has just ended, or too
    /// many viewers wait.
    fn add_viewer(&self, name: &str, connection: Connection) {
        if let Some(stream) = self.streams().get(name) {
            let _ = stream.try_send(AcceptedViewer { connection, place: None });
        }
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<String, Sender<AcceptedViewer>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most accepted viewers that wait to be served, for each stream.
const WAITING_VIEWERS: usize = 64;

/// Listens at the address in the first argument, until Ctrl-C.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4200".to_owned());
    let address = address.parse().expect("an address and a port, such as 0.0.0.0:4200");
    let listener = Listener::bind(address, Config::default()).await?;
    println!("listening on {}", listener.local_addr());
    let stop = Stop::default();
    let signal = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            signal.interrupt();
        }
    });
    relay(listener, stop).await
}
