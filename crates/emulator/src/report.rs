//! The totals of the emulator, and its exactness in time.

use std::fmt;
use std::time::Duration;

use punctual_metrics::Quantiles;
use punctual_netem::LinkStatistics;
use punctual_units::{Bitrate, DisplayDuration, percent};

/// The totals of an [`Emulator`](crate::Emulator) so far.
#[derive(Clone, Debug, Default)]
pub struct EmulatorReport {
    /// Time since the start.
    pub elapsed: Duration,
    /// Clients that were heard.
    pub clients: u64,
    /// Datagrams of clients beyond the limit.
    pub refused: u64,
    /// Datagrams of clients that came faster than they could be relayed.
    pub overruns: u64,
    /// From the clients to the target.
    pub up: DirectionReport,
    /// From the target to the clients.
    pub down: DirectionReport,
}

/// The totals of a [`TunEmulator`](crate::TunEmulator) so far.
#[derive(Clone, Debug, Default)]
pub struct TunReport {
    /// Time since the start.
    pub elapsed: Duration,
    /// From the left side to the right.
    pub up: DirectionReport,
    /// From the right side to the left.
    pub down: DirectionReport,
}

/// The totals of all links of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionReport {
    /// Packets and bytes; the IP and UDP headers count.
    pub link: LinkStatistics,
    /// How late each packet was sent, in nanoseconds after the model's time.
    pub lateness: Quantiles,
    /// Packets that came faster than they could be read; the link has not seen them. Only of a
    /// [`TunEmulator`](crate::TunEmulator): no system tells of datagrams.
    pub overruns: u64,
    /// Packets that the link delivered and the system refused, as one whose header is corrupted.
    pub refused: u64,
}

impl DirectionReport {
    pub(super) fn merge(&mut self, link: &LinkStatistics, lateness: &Quantiles) {
        self.link.merge(link);
        self.lateness.merge(lateness);
    }
}

impl fmt::Display for EmulatorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = if self.clients == 1 { "client" } else { "clients" };
        writeln!(f, "{} {clients} in {:.1}", self.clients, DisplayDuration(self.elapsed))?;
        table(f, ["to the target", "to the client"], self.elapsed, [&self.up, &self.down])?;
        if self.refused > 0 {
            writeln!(f, "{} datagrams of clients beyond --max-clients", self.refused)?;
        }
        if self.overruns > 0 {
            writeln!(f, "{} datagrams came faster than they could be relayed", self.overruns)?;
        }
        f.write_str(LATE)
    }
}

impl fmt::Display for TunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "two sides in {:.1}", DisplayDuration(self.elapsed))?;
        table(f, ["left to right", "right to left"], self.elapsed, [&self.up, &self.down])?;
        f.write_str(LATE)
    }
}

/// The two directions side by side, a line for each thing that is counted.
fn table(
    f: &mut fmt::Formatter<'_>,
    names: [&str; 2],
    elapsed: Duration,
    directions: [&DirectionReport; 2],
) -> fmt::Result {
    writeln!(f, "{:<22}{:>22}{:>22}", "", names[0], names[1])?;
    let mut row = |name: &str, value: &dyn Fn(&DirectionReport) -> String| {
        let [up, down] = directions.map(value);
        writeln!(f, "{name:<22}{up:>22}{down:>22}")
    };
    row("packets in", &|d| d.link.sent.to_string())?;
    row("rate in", &|d| format!("{:#}", Bitrate::of(d.link.sent_bytes, elapsed)))?;
    row("lost", &|d| share(d.link.lost, d.link.sent))?;
    if directions.iter().any(|direction| direction.link.lost > direction.link.lost_by_chance) {
        row("  by chance", &|d| share(d.link.lost_by_chance, d.link.sent))?;
        row("  by pattern", &|d| share(d.link.lost_by_pattern, d.link.sent))?;
        row("  in outages", &|d| share(d.link.lost_in_outage, d.link.sent))?;
    }
    row("dropped by the queue", &|d| share(d.link.dropped_by_queue, d.link.sent))?;
    if directions.iter().any(|direction| direction.link.dropped_by_codel > 0) {
        row("dropped by CoDel", &|d| share(d.link.dropped_by_codel, d.link.sent))?;
    }
    if directions.iter().any(|direction| direction.link.dropped_by_mtu > 0) {
        row("dropped, too long", &|d| share(d.link.dropped_by_mtu, d.link.sent))?;
    }
    row("duplicated", &|d| share(d.link.duplicated, d.link.sent))?;
    row("corrupted", &|d| share(d.link.corrupted, d.link.sent))?;
    row("reordered", &|d| share(d.link.reordered, d.link.sent))?;
    row("delivered", &|d| share(d.link.delivered, d.link.sent))?;
    if directions.iter().any(|direction| direction.overruns > 0) {
        row("came too fast", &|d| d.overruns.to_string())?;
    }
    if directions.iter().any(|direction| direction.refused > 0) {
        row("refused at the end", &|d| d.refused.to_string())?;
    }
    row("longest in the queue", &|d| format!("{:#}", DisplayDuration(d.link.queue_delay_max)))?;
    row("late, median", &|d| lateness(d.lateness.median()))?;
    row("late, p99", &|d| lateness(d.lateness.p99()))?;
    row("late, most", &|d| lateness(d.lateness.max()))
}

fn share(part: u64, whole: u64) -> String {
    if part == 0 { "0".to_owned() } else { format!("{part} ({})", percent(part, whole)) }
}

fn lateness(nanos: Option<u64>) -> String {
    nanos.map_or("-".to_owned(), |nanos| {
        format!("{:#}", DisplayDuration(Duration::from_nanos(nanos)))
    })
}

const LATE: &str = "(late: how much after the time of the model a packet was really sent)";
