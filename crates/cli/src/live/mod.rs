//! How the streams are doing, now and at the end.

mod figures;
pub(crate) mod line;

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual::Bitrate;
use punctual_units::{DisplayBytes, DisplayDuration, percent};
use punctual_uri::Uri;

use crate::endpoint::{Connection, SrtEnd, Traffic};
use figures::{Figures, Sum, filtered_by, lost_by};

/// Which way a stream goes at a connection: what its statistics are taken from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    In,
    Out,
}

/// Watches the connections of a command.
#[derive(Clone)]
pub(crate) struct Live {
    watched: Arc<Mutex<Vec<Watched>>>,
}

/// A connection that is watched.
struct Watched {
    id: u64,
    name: String,
    way: Way,
    socket: Option<SrtEnd>,
    traffic: Arc<Traffic>,
    bytes_before: u64,
}

/// Stops watching a connection when it is dropped, and says what it carried.
pub(crate) struct Watch {
    live: Live,
    id: u64,
    since: Instant,
}

impl Live {
    /// Begins to show how things are, unless `quiet`.
    pub(crate) fn start(quiet: bool) -> Self {
        let live = Self { watched: Arc::default() };
        if !quiet {
            let shown = live.clone();
            tokio::spawn(line::show(move |time| shown.describe(time)));
        }
        live
    }

    /// Watches `connection`, made with what `uri` names, until what this gives is dropped.
    pub(crate) fn watch(&self, uri: &Uri, connection: &Connection, way: Way) -> Watch {
        self.lock().push(Watched {
            id: connection.id,
            name: uri.to_string(),
            way,
            socket: connection.socket.clone(),
            traffic: Arc::clone(&connection.traffic),
            bytes_before: 0,
        });
        Watch { live: self.clone(), id: connection.id, since: Instant::now() }
    }

    /// How all connections are, over the last `time`; `None` without any.
    fn describe(&self, time: Duration) -> Option<String> {
        let (mut incoming, mut outgoing) = (Sum::default(), Sum::default());
        for watched in self.lock().iter_mut() {
            match watched.way {
                Way::In => incoming.add(watched),
                Way::Out => outgoing.add(watched),
            }
        }
        match (incoming.has_srt(), outgoing.has_srt()) {
            (true, true) => Some(format!(
                "in {}  |  out {}",
                incoming.describe(time, Way::In)?,
                outgoing.describe(time, Way::Out)?
            )),
            (false, true) => outgoing.describe(time, Way::Out),
            _ => incoming.describe(time, Way::In).or_else(|| outgoing.describe(time, Way::Out)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut all = self.live.lock();
        let Some(place) = all.iter().position(|watched| watched.id == self.id) else { return };
        let watched = all.swap_remove(place);
        drop(all);
        tracing::info!("{}", watched.summary(self.since.elapsed()));
    }
}

impl Watched {
    /// What the connection carried, and at what cost.
    fn summary(&self, time: Duration) -> String {
        let (messages, bytes) = (self.traffic.messages(), self.traffic.bytes());
        let mut text = format!(
            "{}: {} {messages} messages, {:#}, in {:#} ({:#})",
            self.name,
            if self.way == Way::In { "received" } else { "sent" },
            DisplayBytes(bytes),
            DisplayDuration(time),
            Bitrate::of(bytes, time),
        );
        if let Some(socket) = &self.socket {
            let figures = Figures::of(&socket.statistics(), self.way);
            let _ = write!(
                text,
                "; {} {}, retransmitted {} ({})",
                lost_by(self.way),
                figures.lost,
                figures.retransmitted,
                percent(figures.retransmitted, figures.packets),
            );
            if let Some(packets) = figures.filter {
                let share = percent(packets, figures.packets);
                let _ = write!(text, ", {} {packets} ({share})", filtered_by(self.way));
            }
            let _ = write!(text, ", unrecovered {}", figures.unrecovered);
        }
        text
    }
}
