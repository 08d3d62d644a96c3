//! Which rate of a ramp the link still carries.

use crate::outcome::RunSeries;
use crate::run::Setup;

/// The highest rate of a ramp before the first at which the path was congested, Mb/s; `None`
/// without a ramp or a series.
///
/// A step is congested if the receiver dropped more than [`DROPPED`] of the packets sent in it, or
/// if the round-trip time was more than [`STRETCHED`] of the first step's for more than half of it.
pub(crate) fn usable(setup: &Setup, series: &RunSeries) -> Option<f64> {
    let ramp = setup.ramp?;
    let column = |name: &str| series.columns.iter().position(|column| column == name);
    let (sent, dropped) = (column("sender.pktSentUnique")?, column("receiver.pktRcvDrop")?);
    let rtt = column("sender.msRTT")?;
    let every = ramp.every.as_secs_f64();
    let mut usable = None;
    let mut calm = None;
    let mut start = 0.0;
    let mut rate = setup.bitrate.as_mbps();
    while start < setup.duration.as_secs_f64() {
        let rows: Vec<&Vec<f64>> = (series.rows.iter())
            .filter(|row| row[0] > start + SETTLING && row[0] <= start + every)
            .collect();
        let sum = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>();
        let mut times: Vec<f64> = rows.iter().map(|row| row[rtt]).collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied()?;
        let calm = *calm.get_or_insert(median);
        if sum(dropped) > DROPPED * sum(sent) || median > STRETCHED * calm {
            break;
        }
        usable = Some(rate);
        start += every;
        rate += ramp.by.as_mbps();
    }
    Some(usable.unwrap_or(0.0))
}

/// Share of packets dropped by the receiver from which a path counts as congested.
const DROPPED: f64 = 0.02;

/// The round-trip time of a congested path, as a multiple of that of a free one.
const STRETCHED: f64 = 2.0;

/// The first second of a step belongs to the change, s.
const SETTLING: f64 = 1.0;
