//! The highest rate that one live connection sustains without a drop.

use super::{Bench, LARGE_UDP_BUFFER, NO_PACING};
use crate::Result;
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let mut starts = [1_200.0, 3_000.0];
    let searches = bench.effort.searches;
    let [samples] = bench
        .alternate("one live connection, Mb/s", searches, async |bench, implementation| {
            let start = &mut starts[implementation as usize];
            let search = bench.effort.search(*start);
            let mbps = search
                .highest(async |mbps, seconds| holds(bench, implementation, mbps, seconds).await)
                .await?;
            *start = mbps;
            Ok([mbps])
        })
        .await;
    vec![Row {
        what: "one live connection, highest rate sustained without a drop",
        unit: "Mb/s",
        target: Target::AtLeastTimes(4.0),
        samples,
    }]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are positive")]
async fn holds(
    bench: &mut Bench,
    implementation: Implementation,
    mbps: f64,
    seconds: f64,
) -> Result<bool> {
    let traffic = Traffic {
        rate: (mbps * 1e6) as u64,
        max_bandwidth: NO_PACING,
        udp_buffer: LARGE_UDP_BUFFER,
        ..Traffic::new(bench.pairs.port(), seconds)
    };
    Ok(bench.pairs.run(implementation, &traffic, LIBSRT).await?.held().is_ok())
}

/// A window and buffers for a fifth of a second at several gigabits.
const LIBSRT: Tuning = Tuning { local_ports: 1, threads: 0, flow_window: 131_072, buffer: 131_072 };
