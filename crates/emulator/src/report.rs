//! What the emulator did, and how exactly in time.

use std::fmt;
use std::time::Duration;

use punctual_metrics::Quantiles;
use punctual_netem::LinkStatistics;
use punctual_units::{Bitrate, DisplayDuration, percent};

/// What an [`Emulator`](crate::Emulator) did so far.
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

/// What all links of one direction did.
#[derive(Clone, Debug, Default)]
pub struct DirectionReport {
    /// Packets and bytes; the IP and UDP headers count.
    pub link: LinkStatistics,
    /// How much later than the model says each packet was sent, in nanoseconds.
    pub lateness: Quantiles,
}

impl DirectionReport {
    pub(super) fn merge(&mut self, link: &LinkStatistics, lateness: &Quantiles) {
        let sum = &mut self.link;
        sum.sent += link.sent;
        sum.sent_bytes += link.sent_bytes;
        sum.delivered += link.delivered;
        sum.delivered_bytes += link.delivered_bytes;
        sum.lost += link.lost;
        sum.dropped_by_queue += link.dropped_by_queue;
        sum.duplicated += link.duplicated;
        sum.corrupted += link.corrupted;
        sum.reordered += link.reordered;
        sum.queue_delay_max = sum.queue_delay_max.max(link.queue_delay_max);
        self.lateness.merge(lateness);
    }
}

impl fmt::Display for EmulatorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row =
            |f: &mut fmt::Formatter<'_>, name: &str, value: &dyn Fn(&DirectionReport) -> String| {
                writeln!(f, "{name:<22}{:>22}{:>22}", value(&self.up), value(&self.down))
            };
        writeln!(
            f,
            "{} {} in {:.1}",
            self.clients,
            if self.clients == 1 { "client" } else { "clients" },
            DisplayDuration(self.elapsed)
        )?;
        writeln!(f, "{:<22}{:>22}{:>22}", "", "to the target", "to the client")?;
        row(f, "packets in", &|d| d.link.sent.to_string())?;
        row(f, "rate in", &|d| format!("{:#}", Bitrate::of(d.link.sent_bytes, self.elapsed)))?;
        row(f, "lost", &|d| share(d.link.lost, d.link.sent))?;
        row(f, "dropped by the queue", &|d| share(d.link.dropped_by_queue, d.link.sent))?;
        row(f, "duplicated", &|d| share(d.link.duplicated, d.link.sent))?;
        row(f, "corrupted", &|d| share(d.link.corrupted, d.link.sent))?;
        row(f, "reordered", &|d| share(d.link.reordered, d.link.sent))?;
        row(f, "delivered", &|d| share(d.link.delivered, d.link.sent))?;
        row(f, "longest in the queue", &|d| {
            format!("{:#}", DisplayDuration(d.link.queue_delay_max))
        })?;
        row(f, "late, median", &|d| lateness(d.lateness.median()))?;
        row(f, "late, p99", &|d| lateness(d.lateness.p99()))?;
        row(f, "late, most", &|d| lateness(d.lateness.max()))?;
        if self.refused > 0 {
            writeln!(f, "{} datagrams of clients beyond --max-clients", self.refused)?;
        }
        if self.overruns > 0 {
            writeln!(f, "{} datagrams came faster than they could be relayed", self.overruns)?;
        }
        write!(f, "(late: how much after the time of the model a packet was really sent)")
    }
}

fn share(part: u64, whole: u64) -> String {
    if part == 0 { "0".to_owned() } else { format!("{part} ({})", percent(part, whole)) }
}

fn lateness(nanos: Option<u64>) -> String {
    nanos.map_or("-".to_owned(), |nanos| {
        format!("{:#}", DisplayDuration(Duration::from_nanos(nanos)))
    })
}
