//! The share of the throughput that is left with encryption: CPU time of a clear stream divided by
//! that of the same stream encrypted, both ends together, one right after the other.

use super::{Bench, LARGE_UDP_BUFFER, NO_PACING, demand_held};
use crate::Result;
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

/// AES-CTR with short and long keys, and GCM.
const CIPHERS: [(&str, usize, bool, Target); 3] = [
    ("AES-128-CTR: throughput of a CPU second, of the clear", 16, false, Target::AtLeast(0.85)),
    ("AES-256-CTR: throughput of a CPU second, of the clear", 32, false, Target::AtLeast(0.85)),
    ("AES-256-GCM: throughput of a CPU second, of the clear", 32, true, Target::AtLeast(0.8)),
];

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let mut rows = Vec::new();
    for (what, key_length, gcm, target) in CIPHERS {
        let repeats = bench.effort.repeats;
        let [samples] = bench
            .alternate(what, Implementation::TWO, repeats, async |bench, implementation| {
                if gcm && implementation == Implementation::Libsrt {
                    return Err("no package of libsrt has it".into());
                }
                let clear = cores(bench, implementation, 0, false).await?;
                let encrypted = cores(bench, implementation, key_length, gcm).await?;
                Ok([clear / encrypted])
            })
            .await;
        rows.push(Row { what, unit: "×", target, samples });
    }
    rows
}

/// Cores that both ends keep busy.
async fn cores(
    bench: &mut Bench,
    implementation: Implementation,
    key_length: usize,
    gcm: bool,
) -> Result<f64> {
    let traffic = Traffic {
        rate: RATE,
        max_bandwidth: NO_PACING,
        udp_buffer: LARGE_UDP_BUFFER,
        key_length,
        gcm,
        ..Traffic::new(bench.pairs.port(), bench.effort.steady)
    };
    let outcome = bench.pairs.run(implementation, &traffic, LIBSRT).await?;
    Ok(demand_held(outcome)?.cores)
}

const RATE: u64 = 500_000_000;
/// Buffers that never fill at this rate.
const LIBSRT: Tuning = Tuning { local_ports: 1, threads: 0, flow_window: 32_768, buffer: 32_768 };
