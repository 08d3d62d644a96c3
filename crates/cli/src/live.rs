//! How the streams are doing, now and at the end: the line at the bottom of a terminal, or a message
//! every ten seconds.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use punctual::{Bitrate, Socket, Statistics};
use punctual_units::{DisplayBytes, DisplayDuration};

use crate::endpoint::{Connection, Traffic};
use crate::log::LIVE_LINE;

/// Which way a command's streams go: what their statistics are taken from.
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

struct Watched {
    id: u64,
    way: Way,
    socket: Option<Socket>,
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
            tokio::spawn(live.clone().show());
        }
        live
    }

    /// Watches `connection` until what this gives is dropped.
    pub(crate) fn watch(&self, connection: &Connection, way: Way) -> Watch {
        self.lock().push(Watched {
            id: connection.id,
            way,
            socket: connection.socket.clone(),
            traffic: Arc::clone(&connection.traffic),
            bytes_before: 0,
        });
        Watch { live: self.clone(), id: connection.id, since: Instant::now() }
    }

    async fn show(self) {
        let on_terminal = std::io::stderr().is_terminal();
        let period = if on_terminal { REDRAW } else { MESSAGE };
        let line = on_terminal.then(|| LIVE_LINE.get_or_init(new_line));
        let start = Instant::now();
        let mut before = start;
        loop {
            tokio::time::sleep(period).await;
            let now = Instant::now();
            let state = self.describe(now - before);
            before = now;
            match (line, state) {
                (Some(line), Some(state)) => {
                    line.set_message(format!("{} {state}", clock(now - start)))
                }
                (Some(line), None) => line.set_message(""),
                (None, Some(state)) => tracing::info!("{state}"),
                (None, None) => {}
            }
        }
    }

    /// How all connections are, over the last `time`; `None` without any.
    fn describe(&self, time: Duration) -> Option<String> {
        let mut sum = Sum::default();
        for watched in self.lock().iter_mut() {
            sum.add(watched);
        }
        (sum.connections > 0).then(|| sum.describe(time))
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
            "{} {messages} messages, {:#}, in {:#} ({:#})",
            if self.way == Way::In { "received" } else { "sent" },
            DisplayBytes(bytes),
            DisplayDuration(time),
            Bitrate::of(bytes, time),
        );
        if let Some(socket) = &self.socket {
            let figures = Figures::of(&socket.statistics(), self.way);
            let _ = write!(
                text,
                "; lost on the way {}, retransmitted {} ({}), unrecovered {}",
                figures.lost,
                figures.retransmitted,
                percent(figures.retransmitted, figures.packets),
                figures.unrecovered
            );
        }
        text
    }
}

/// What is shown of a connection's statistics, from the side that the stream goes to.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// Packets of the stream, each once.
    packets: u64,
    lost: u64,
    retransmitted: u64,
    unrecovered: u64,
    buffer: Duration,
}

impl Figures {
    fn of(statistics: &Statistics, way: Way) -> Self {
        match way {
            Way::In => Self {
                packets: statistics.packets_received_unique + statistics.packets_receive_dropped,
                lost: statistics.packets_receive_lost,
                retransmitted: statistics.packets_received_retransmitted,
                unrecovered: statistics.packets_receive_dropped,
                buffer: statistics.receive_buffer_span,
            },
            Way::Out => Self {
                packets: statistics.packets_sent_unique,
                lost: statistics.packets_send_lost,
                retransmitted: statistics.packets_retransmitted,
                unrecovered: statistics.packets_send_dropped,
                buffer: statistics.send_buffer_span,
            },
        }
    }
}

/// All connections together.
#[derive(Debug, Default)]
struct Sum {
    connections: usize,
    bytes: u64,
    messages: u64,
    srt: Option<(Duration, Figures)>,
}

impl Sum {
    fn add(&mut self, watched: &mut Watched) {
        let bytes = watched.traffic.bytes();
        self.connections += 1;
        self.bytes += bytes - watched.bytes_before;
        self.messages += watched.traffic.messages();
        watched.bytes_before = bytes;
        if let Some(socket) = &watched.socket {
            let statistics = socket.statistics();
            let figures = Figures::of(&statistics, watched.way);
            let (rtt, sum) = self.srt.get_or_insert_default();
            *rtt = (*rtt).max(statistics.rtt);
            sum.packets += figures.packets;
            sum.lost += figures.lost;
            sum.retransmitted += figures.retransmitted;
            sum.unrecovered += figures.unrecovered;
            sum.buffer = sum.buffer.max(figures.buffer);
        }
    }

    fn describe(&self, time: Duration) -> String {
        let mut text = String::new();
        if self.connections > 1 {
            let _ = write!(text, "{} connections  ", self.connections);
        }
        let _ = write!(text, "{:#}", Bitrate::of(self.bytes, time));
        match &self.srt {
            Some((rtt, figures)) => {
                let _ = write!(
                    text,
                    "  RTT {:#}  lost {}  retransmitted {}  unrecovered {}  buffer {} ms",
                    DisplayDuration(*rtt),
                    percent(figures.lost, figures.packets),
                    percent(figures.retransmitted, figures.packets),
                    figures.unrecovered,
                    figures.buffer.as_millis(),
                );
            }
            None => {
                let _ = write!(text, "  {} messages", self.messages);
            }
        }
        text
    }
}

/// `part` of `whole` in percent, with as many digits as say something.
#[expect(clippy::cast_precision_loss, reason = "for people: 53 bits are plenty")]
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        0.0..0.1 => format!("{percent:.4} %"),
        0.1..10.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// Hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}")
}

fn new_line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_msg}").expect("the template is sound");
    line.with_style(style)
}

/// How often the line on a terminal changes.
const REDRAW: Duration = Duration::from_millis(500);

/// How often a message is written where there is no terminal.
const MESSAGE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_as_many_digits_as_say_something() {
        assert_eq!(percent(0, 5), "0 %");
        assert_eq!(percent(2, 56_500), "0.0035 %");
        assert_eq!(percent(598, 10_000), "5.98 %");
        assert_eq!(percent(1, 4), "25.0 %");
        assert_eq!(percent(1, 0), "0 %");
    }

    #[test]
    fn all_connections_make_one_line() {
        let traffic = Arc::new(Traffic::default());
        (0..475).for_each(|_| traffic.count(1_316));
        let mut watched = |id| Watched {
            id,
            way: Way::Out,
            socket: None,
            traffic: Arc::clone(&traffic),
            bytes_before: 0,
        };
        let mut sum = Sum::default();
        sum.add(&mut watched(1));
        assert_eq!(sum.describe(Duration::from_secs(1)), "5 Mb/s  475 messages");
        sum.add(&mut watched(2));
        let line = sum.describe(Duration::from_secs(1));
        assert_eq!(line, "2 connections  10 Mb/s  950 messages");
        sum.srt = Some((
            Duration::from_micros(20_312),
            Figures { packets: 1_000, lost: 21, retransmitted: 23, ..Figures::default() },
        ));
        assert_eq!(
            sum.describe(Duration::from_secs(1)),
            "2 connections  10 Mb/s  RTT 20.3 ms  lost 2.10 %  retransmitted 2.30 %  \
             unrecovered 0  buffer 0 ms"
        );
        let seconds = clock(Duration::from_secs(3_723));
        assert_eq!(seconds, "01:02:03");
    }
}
