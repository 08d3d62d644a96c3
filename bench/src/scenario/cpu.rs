//! CPU time a gigabit of payload, both ends together, at 500 Mb/s.

use super::{Bench, LARGE_UDP_BUFFER, NO_PACING, demand_held};
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let repeats = bench.effort.repeats;
    let [samples] = bench
        .alternate(
            "CPU seconds a gigabit at 500 Mb/s",
            Implementation::ALL,
            repeats,
            async |bench, implementation| {
                let traffic = Traffic {
                    rate: RATE,
                    max_bandwidth: NO_PACING,
                    udp_buffer: LARGE_UDP_BUFFER,
                    ..Traffic::new(bench.pairs.port(), bench.effort.steady)
                };
                let outcome = bench.pairs.run(implementation, &traffic, LIBSRT).await?;
                Ok([demand_held(outcome)?.cores / GIGABITS_PER_SECOND])
            },
        )
        .await;
    let row = Row {
        what: "CPU time a gigabit at 500 Mb/s, sender and receiver",
        unit: "s",
        target: Target::AtMostTimes(0.25),
        samples,
    };
    row.and_c_library(&Target::AtMostTimes(0.4)).into()
}

const RATE: u64 = 500_000_000;
const GIGABITS_PER_SECOND: f64 = 0.5;
/// Buffers that never fill at this rate.
const LIBSRT: Tuning = Tuning { local_ports: 1, threads: 0, flow_window: 32_768, buffer: 32_768 };
