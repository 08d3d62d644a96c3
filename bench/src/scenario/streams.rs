//! The most live streams of 5 Mb/s that one listener port receives without a drop.

use super::{Bench, LARGE_UDP_BUFFER, NO_PACING, STREAM_RATE};
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let mut found = [None; 3];
    let searches = bench.effort.searches;
    let [samples] = bench
        .alternate(
            "5 Mb/s streams into one port",
            Implementation::ALL,
            searches,
            async |bench, implementation| {
                let who = implementation as usize;
                let search = bench.effort.search(found[who], GUESSES[who]);
                let streams = search
                    .highest(async |streams, seconds, attempt| {
                        let traffic = traffic(bench.pairs.port(), streams, seconds);
                        bench.holds(implementation, &traffic, LIBSRT, attempt).await
                    })
                    .await?
                    .floor();
                found[who] = Some(streams);
                Ok([streams])
            },
        )
        .await;
    let row = Row {
        what: "5 Mb/s live streams into one listener port without a drop",
        unit: "streams",
        target: Target::AtLeastTimes(5.0),
        samples,
    };
    row.and_c_library(&Target::AtLeastTimes(5.0)).into()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "loads are positive")]
fn traffic(port: u16, streams: f64, seconds: f64) -> Traffic {
    Traffic {
        streams: streams as u32,
        rate: STREAM_RATE,
        max_bandwidth: NO_PACING,
        udp_buffer: LARGE_UDP_BUFFER,
        ..Traffic::new(port, seconds)
    }
}

/// All callers on one UDP port, and no more memory than streams of 5 Mb/s need: libsrt carries more
/// streams so than with its defaults or with a port for each. A blocking thread for each stream, or
/// one with epoll for all.
const LIBSRT: [Tuning; 2] = [
    Tuning { local_ports: 1, threads: 0, flow_window: 1_024, buffer: 1_024 },
    Tuning { local_ports: 1, threads: 1, flow_window: 1_024, buffer: 1_024 },
];
/// The numbers at which the first searches begin, streams of libsrt, Punctual and
/// its C library.
const GUESSES: [f64; 3] = [80.0, 400.0, 400.0];
