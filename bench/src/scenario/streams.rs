//! How many live streams of 5 Mb/s one listener port takes in without a drop.

use super::{Bench, LARGE_UDP_BUFFER, NO_PACING, STREAM_RATE};
use crate::Result;
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let mut starts = [70.0, 150.0];
    let searches = bench.effort.searches;
    let [samples] = bench
        .alternate("5 Mb/s streams into one port", searches, async |bench, implementation| {
            let start = &mut starts[implementation as usize];
            let search = bench.effort.search(*start);
            let streams = search
                .highest(async |load, seconds| holds(bench, implementation, load, seconds).await)
                .await?
                .floor();
            *start = streams;
            Ok([streams])
        })
        .await;
    vec![Row {
        what: "5 Mb/s live streams into one listener port without a drop",
        unit: "streams",
        target: Target::AtLeastTimes(5.0),
        samples,
    }]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "loads are positive")]
async fn holds(
    bench: &mut Bench,
    implementation: Implementation,
    streams: f64,
    seconds: f64,
) -> Result<bool> {
    let traffic = Traffic {
        streams: streams as u32,
        rate: STREAM_RATE,
        max_bandwidth: NO_PACING,
        udp_buffer: LARGE_UDP_BUFFER,
        ..Traffic::new(bench.pairs.port(), seconds)
    };
    Ok(bench.pairs.run(implementation, &traffic, LIBSRT).await?.held().is_ok())
}

/// All callers on one UDP port, and no more memory than a stream of 5 Mb/s needs: libsrt carries
/// more streams so than with its defaults or with a port for each.
const LIBSRT: Tuning = Tuning { local_ports: 1, threads: 0, flow_window: 1_024, buffer: 1_024 };
