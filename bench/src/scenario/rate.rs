//! The highest rate that one live connection sustains without a drop.

use super::{Bench, LARGE_UDP_BUFFER, NO_PACING};
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let mut found = [None; 3];
    let searches = bench.effort.searches;
    let [samples] = bench
        .alternate(
            "one live connection, Mb/s",
            Implementation::ALL,
            searches,
            async |bench, implementation| {
                let who = implementation as usize;
                let search = bench.effort.search(found[who], GUESSES[who]);
                let mbps = search
                    .highest(async |mbps, seconds, attempt| {
                        let traffic = traffic(bench.pairs.port(), mbps, seconds);
                        bench.holds(implementation, &traffic, LIBSRT, attempt).await
                    })
                    .await?;
                found[who] = Some(mbps);
                Ok([mbps])
            },
        )
        .await;
    let row = Row {
        what: "one live connection, highest rate sustained without a drop",
        unit: "Mb/s",
        target: Target::AtLeastTimes(4.0),
        samples,
    };
    row.and_c_library(&Target::AtLeastTimes(3.0)).into()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are positive")]
fn traffic(port: u16, mbps: f64, seconds: f64) -> Traffic {
    Traffic {
        rate: (mbps * 1e6) as u64,
        max_bandwidth: NO_PACING,
        udp_buffer: LARGE_UDP_BUFFER,
        ..Traffic::new(port, seconds)
    }
}

/// A window and buffers for the latency at 11 Gb/s; a blocking receiver or epoll. The receiver
/// holds each packet for the latency, so a window of 32,768 packets would be full at 2.9 Gb/s.
const LIBSRT: [Tuning; 2] = [
    Tuning { local_ports: 1, threads: 0, flow_window: 131_072, buffer: 131_072 },
    Tuning { local_ports: 1, threads: 1, flow_window: 131_072, buffer: 131_072 },
];
/// The rates at which the first searches begin, Mb/s of libsrt, Punctual and its C library.
const GUESSES: [f64; 3] = [1_500.0, 5_000.0, 3_000.0];
