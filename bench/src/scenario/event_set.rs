//! The share of a core that a thousand connections take in one event set while nothing is sent.

use super::Bench;
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let repeats = bench.effort.repeats.min(2);
    let what = "1,000 idle connections, % of a core";
    let [samples] = bench
        .alternate(what, Implementation::ALL, repeats, async |bench, implementation| {
            let traffic = Traffic {
                streams: CONNECTIONS,
                ..Traffic::new(bench.pairs.port(), bench.effort.idle)
            };
            let outcome = bench.pairs.run(implementation, &traffic, ONE_SET).await?;
            Ok([outcome.receiver_cores * 100.0])
        })
        .await;
    let row = Row {
        what: "1,000 idle connections in one event set, share of a core, receiver",
        unit: "%",
        target: Target::None,
        samples,
    };
    row.and_c_library(&Target::AtMost(0.5)).into()
}

const CONNECTIONS: u32 = 1_000;
/// All sockets in one event set, and buffers of which a thousand fit into memory.
const ONE_SET: Tuning = Tuning { local_ports: 1, threads: 1, flow_window: 512, buffer: 256 };
