//! Resident memory that one more connection of 5 Mb/s takes, both ends together.

use super::{Bench, STREAM_RATE, demand_held};
use crate::Result;
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Sample, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let repeats = bench.effort.repeats.min(3);
    let what = "kB a 5 Mb/s connection, libsrt with defaults and with small buffers";
    let [default, small] = bench
        .alternate(what, Implementation::ALL, repeats, async |bench, implementation| {
            let default = slope(bench, implementation, EPOLL).await?;
            let small = match implementation {
                Implementation::Libsrt => slope(bench, implementation, SMALL).await?,
                Implementation::Punctual | Implementation::CLibrary => default,
            };
            Ok([default, small])
        })
        .await;
    let row = |what, samples: Vec<Sample>| Row {
        what,
        unit: "kB",
        target: Target::AtMostTimes(0.5),
        samples,
    };
    let default =
        row("resident memory a 5 Mb/s connection, sender and receiver, defaults", default);
    let small = row("the same, libsrt with buffers cut down by hand to what 5 Mb/s needs", small);
    let [default, of_c_library] = default.and_c_library(&Target::AtMostTimes(0.3));
    vec![default, small, of_c_library]
}

/// Kilobytes of the connections after the first, divided by their number.
#[expect(clippy::cast_precision_loss, reason = "memory lies far below 2^53 bytes")]
async fn slope(bench: &mut Bench, implementation: Implementation, tuning: Tuning) -> Result<f64> {
    let mut resident = [0.0; 2];
    for (resident, streams) in resident.iter_mut().zip([1, 1 + MORE_STREAMS]) {
        let traffic = Traffic {
            streams,
            rate: STREAM_RATE,
            ..Traffic::new(bench.pairs.port(), bench.effort.fill)
        };
        let outcome = bench.pairs.run(implementation, &traffic, tuning).await?;
        *resident = demand_held(outcome)?.resident as f64;
    }
    Ok((resident[1] - resident[0]) / f64::from(MORE_STREAMS) / 1e3)
}

/// Few enough for libsrt to carry them without a loss, which would fill its buffers.
const MORE_STREAMS: u32 = 40;
/// The library's own buffers; no threads but the library's for each connection.
const EPOLL: Tuning = Tuning { threads: 1, ..Tuning::DEFAULT };
/// A second's worth of packets in flight, half a second's in the buffers.
const SMALL: Tuning = Tuning { flow_window: 512, buffer: 256, ..EPOLL };
