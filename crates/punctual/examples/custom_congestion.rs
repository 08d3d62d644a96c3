//! A custom congestion control for byte streams. It follows the delay, between a lowest and a
//! target rate, and keeps the queue at the bottleneck short. Losses do not slow it down.
//!
//! ```sh
//! punctual route 'srt://:4200?transtype=file' copy.bin &
//! cargo run -p punctual --example custom_congestion -- 127.0.0.1:4200 2 20 file.bin
//! ```

use std::time::Duration;

use bytes::Bytes;
use punctual::{
    Bitrate, Config, CongestionAlgorithm, CongestionControl, Error, Instant, PathState, SeqNo,
    Socket, Transmission,
};

/// The limits of the rate, and the number of bytes in the bottleneck's queue that it aims at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) least: Bitrate,
    pub(crate) target: Bitrate,
    pub(crate) queue: u64,
}

/// Moves the rate once per round trip toward the one that keeps the queue at its limit (FAST TCP).
#[derive(Debug)]
pub(crate) struct ByDelay {
    limits: Limits,
    rate: Bitrate,
    packet_size: u64,
    updated: Option<Instant>,
}

impl ByDelay {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, rate: limits.least, packet_size: 1_500, updated: None }
    }
}

impl CongestionControl for ByDelay {
    fn period(&self) -> Duration {
        self.rate.time_for(self.packet_size)
    }

    fn rate(&self) -> Option<Bitrate> {
        Some(self.rate)
    }

    fn window(&self) -> u32 {
        u32::MAX
    }

    fn max_bandwidth(&self) -> Bitrate {
        self.limits.target
    }

    fn round_trip(&mut self, now: Instant, path: &PathState) {
        self.packet_size = path.packet_size.into();
        if self.updated.is_some_and(|last| now < last + path.latest_rtt) {
            return;
        }
        self.updated = Some(now);
        let [base, latest] = [path.base_rtt, path.latest_rtt].map(|rtt| rtt.as_nanos().max(1_000));
        let rate = u128::from(self.rate.as_bits_per_sec());
        let queued = u128::from(self.limits.queue) * 8_000_000_000;
        let wanted = (rate * base + queued) / latest;
        // The peer smooths its reports over about eight samples, so that small steps are stable.
        let rate = u64::try_from((rate * 7 + wanted) / 8).unwrap_or(u64::MAX);
        self.rate = Bitrate::from_bits_per_sec(rate).clamp(self.limits.least, self.limits.target);
    }

    fn acknowledged(&mut self, _now: Instant, _packets: u32, _path: &PathState) {}

    fn lost(&mut self, _now: Instant, _first: SeqNo, _path: &PathState) {}

    fn timed_out(&mut self, _now: Instant, _path: &PathState) {
        self.rate = self.limits.least;
    }
}

/// The options of a byte stream with this congestion control.
pub(crate) fn by_delay(limits: Limits) -> Config {
    Config::default()
        .with_transmission(Transmission::Stream)
        .with_congestion_algorithm(CongestionAlgorithm::custom(move || ByDelay::new(limits)))
}

/// Sends a file to the address in the first argument, at a rate between the second and the third,
/// Mb/s.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().and_then(|text| text.parse().ok());
    let mut mbps = || arguments.next()?.parse().ok().map(Bitrate::from_mbps);
    let (least, target) = (mbps(), mbps());
    let (Some(address), Some(least), Some(target), Some(path)) =
        (address, least, target, arguments.next())
    else {
        eprintln!("usage: custom_congestion ADDRESS:PORT LEAST_MBPS TARGET_MBPS FILE");
        std::process::exit(2);
    };
    let socket =
        Socket::connect(address, by_delay(Limits { least, target, queue: 30_000 })).await?;
    socket.write_all(Bytes::from(std::fs::read(path)?)).await?;
    socket.close().await;
    println!("sent {} bytes", socket.statistics().bytes_sent_unique);
    Ok(())
}
