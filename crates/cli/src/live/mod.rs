//! The state of the streams, at present and at the end.

mod absent;
mod figures;
mod links;
mod playout;
mod totals;
mod unrecovered;

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual::Bitrate;
use punctual_ends::route::StreamDirection;
use punctual_ends::{EndLog, MessageTraffic, Observed, SrtEnd};
use punctual_units::{DisplayBytes, DisplayDuration, one_line, percent};
use punctual_uri::Uri;

use crate::line::{self, LineText};
use crate::stop;
use absent::Absences;
use figures::{Figures, Sum, filtered_by, lost_by};
use links::Links;
use playout::PlayoutWarning;
use totals::Totals;
use unrecovered::Unrecovered;

pub(crate) use absent::Absence;

/// Watches the connections of a command.
#[derive(Clone)]
pub(crate) struct Live {
    watched: Arc<Mutex<Vec<WatchedConnection>>>,
    absences: Absences,
    /// The totals of incoming and of outgoing connections.
    totals: Arc<Mutex<[Totals; 2]>>,
}

/// A connection that is watched.
struct WatchedConnection {
    id: u64,
    name: String,
    way: StreamDirection,
    socket: Option<SrtEnd>,
    traffic: Arc<MessageTraffic>,
    log: Arc<EndLog>,
    bytes_before: u64,
    links: Links,
    playout: PlayoutWarning,
}

/// Stops watching a connection when it is dropped, and logs its summary.
pub(crate) struct ConnectionWatch {
    live: Live,
    id: u64,
    since: Instant,
}

impl Live {
    /// Begins to show the live line, unless `quiet`, and aborts the connections if a second signal
    /// asks for that.
    pub(crate) fn start(quiet: bool) -> Self {
        let live =
            Self { watched: Arc::default(), absences: Absences::default(), totals: Arc::default() };
        let hurried = live.clone();
        tokio::spawn(async move {
            stop::hurried().await;
            hurried.abort_connections();
        });
        if !quiet {
            let shown = live.clone();
            tokio::spawn(line::show(move |time| shown.describe(time)));
        }
        live
    }

    /// Watches `connection`, which is named, until the result is dropped.
    pub(crate) fn watch(
        &self,
        name: &str,
        connection: &Observed,
        way: StreamDirection,
    ) -> ConnectionWatch {
        self.lock().push(WatchedConnection {
            id: connection.id,
            name: one_line(name).into_owned(),
            way,
            socket: connection.socket.clone(),
            traffic: Arc::clone(&connection.traffic),
            log: Arc::clone(&connection.log),
            bytes_before: 0,
            links: Links::default(),
            playout: PlayoutWarning::default(),
        });
        ConnectionWatch { live: self.clone(), id: connection.id, since: Instant::now() }
    }

    /// Names an end without a connection, until the result is dropped.
    pub(crate) fn absent(&self, uri: &Uri) -> Absence {
        self.absences.add(one_line(&uri.to_string()).into_owned())
    }

    /// Names an end without a connection that will not come back.
    pub(crate) fn lost(&self, uri: &Uri) {
        self.absences.add_for_good(one_line(&uri.to_string()).into_owned());
    }

    /// Logs the totals of all connections that have ended, if there were several.
    pub(crate) fn say_totals(&self) {
        let totals = *self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        for (totals, way) in totals.iter().zip([StreamDirection::In, StreamDirection::Out]) {
            if let Some(text) = totals.describe(way) {
                tracing::info!("{text}");
            }
        }
    }

    /// Tells the peers of all SRT connections that these end at once.
    fn abort_connections(&self) {
        for socket in self.lock().iter().filter_map(|watched| watched.socket.as_ref()) {
            match socket {
                SrtEnd::Socket(socket) => socket.begin_abort(),
                SrtEnd::Group(group) => group.begin_abort(),
            }
        }
    }

    fn add_to_totals(&self, watched: &WatchedConnection) {
        let unrecovered = match (&watched.socket, watched.traffic.lost()) {
            (Some(socket), _) => Unrecovered::of(&socket.statistics(), watched.way),
            (None, Some((lost, _))) => Unrecovered::by_numbers(lost),
            (None, None) => Unrecovered::default(),
        };
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let traffic = &watched.traffic;
        totals[watched.way as usize].add(traffic.messages(), traffic.bytes(), unrecovered);
    }

    /// The figures of all connections over the last `time`, and the names of absent ends; `None` if
    /// there is neither.
    fn describe(&self, time: Duration) -> Option<LineText> {
        let mut line = self.describe_connections(time);
        if let Some(absent) = self.absences.describe() {
            line.get_or_insert_default().push(ABSENT_WORTH, absent);
        }
        line
    }

    /// The figures of all connections over the last `time`; `None` without any.
    fn describe_connections(&self, time: Duration) -> Option<LineText> {
        let (mut incoming, mut outgoing) = (Sum::default(), Sum::default());
        for watched in self.lock().iter_mut() {
            watched.warn_of_playout();
            match watched.way {
                StreamDirection::In => incoming.add(watched, time),
                StreamDirection::Out => outgoing.add(watched, time),
            }
        }
        match (incoming.has_srt(), outgoing.has_srt()) {
            (true, true) => {
                let mut both = LineText::default();
                both.append("in", incoming.describe(time, StreamDirection::In)?);
                both.append("out", outgoing.describe(time, StreamDirection::Out)?);
                Some(both)
            }
            (false, true) => outgoing.describe(time, StreamDirection::Out),
            _ => incoming
                .describe(time, StreamDirection::In)
                .or_else(|| outgoing.describe(time, StreamDirection::Out)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WatchedConnection>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionWatch {
    fn drop(&mut self) {
        let mut all = self.live.lock();
        let Some(place) = all.iter().position(|watched| watched.id == self.id) else { return };
        let watched = all.swap_remove(place);
        drop(all);
        self.live.add_to_totals(&watched);
        watched.log.ended(|| watched.summary(self.since.elapsed()));
    }
}

impl WatchedConnection {
    fn warn_of_playout(&mut self) {
        let Some(SrtEnd::Socket(socket)) = &self.socket else { return };
        if let Some(warning) = self.playout.warning(&socket.info(), &socket.statistics()) {
            tracing::warn!("{}: {warning}", self.name);
        }
    }

    /// The messages that the connection carried, its losses and its overhead.
    fn summary(&self, time: Duration) -> String {
        let (messages, bytes) = (self.traffic.messages(), self.traffic.bytes());
        let mut text = format!(
            "{}: {} {messages} messages, {:#}, in {:#} ({:#})",
            self.name,
            if self.way == StreamDirection::In { "received" } else { "sent" },
            DisplayBytes(bytes),
            DisplayDuration(time),
            Bitrate::of(bytes, time),
        );
        if let Some((lost, late)) = self.traffic.lost() {
            let _ = write!(text, "; lost {lost}, came twice or too late {late}");
        }
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
            let _ = write!(text, ", {}", figures.unrecovered);
            for link in socket.links_in_all() {
                let _ = write!(text, "; {}", links::summary(&link, time, self.way));
            }
        }
        let (messages, bytes) = self.traffic.unsent();
        if bytes > 0 {
            let bytes = DisplayBytes(bytes);
            let _ = write!(text, "; not sent {messages} messages ({bytes:#})");
        }
        text
    }
}

/// The worth of the names of absent ends: more than that of any figure but the rate.
const ABSENT_WORTH: u8 = 95;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_live_line_names_a_destination_that_is_absent() {
        let live = Live::start(true);
        assert_eq!(live.describe(Duration::from_secs(1)), None);
        let absence = live.absent(&"srt://host:4200".parse().expect("it is a URI"));
        let line = live.describe(Duration::from_secs(1)).map(|line| line.to_string());
        assert_eq!(line.as_deref(), Some("absent: srt://host:4200"));
        drop(absence);
        assert_eq!(live.describe(Duration::from_secs(1)), None);
    }
}
