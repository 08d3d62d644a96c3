//! A custom NAK policy: the receiver waits for reordered packets for a fixed time, and repeats its
//! NAKs at a fixed interval, for links whose delays are known.
//!
//! ```sh
//! cargo run -p punctual --example custom_nak -- 127.0.0.1:4200 5 60 &
//! punctual generate 'srt://127.0.0.1:4200' --sendrate 5Mbps
//! ```

use std::time::Duration;

use punctual::{
    Config, Error, Instant, Listener, MissingPackets, NakAlgorithm, NakPolicy, ReceiverView,
    SentNak,
};

/// Sends the first NAK for missing packets after `wait`, and further NAKs every `interval`, without
/// copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedTimes {
    pub(crate) wait: Duration,
    pub(crate) interval: Duration,
}

impl NakPolicy for FixedTimes {
    fn nak_at(&self, missing: &MissingPackets, _view: &ReceiverView) -> Instant {
        match missing.last_nak {
            None => missing.detected + self.wait,
            Some(last) => last + self.interval,
        }
    }

    fn copy_after(&self, _n: u32, _nak: &SentNak, _view: &ReceiverView) -> Option<Duration> {
        None
    }
}

/// The default options with this NAK policy.
pub(crate) fn fixed_times(policy: FixedTimes) -> Config {
    Config::default().with_nak_algorithm(NakAlgorithm::custom(move || policy))
}

/// Receives from a caller at the address in the first argument; the others are the wait and the
/// interval in milliseconds.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().and_then(|text| text.parse().ok());
    let mut millis = || arguments.next()?.parse().ok().map(Duration::from_millis);
    let (Some(address), Some(wait), Some(interval)) = (address, millis(), millis()) else {
        eprintln!("usage: custom_nak ADDRESS:PORT WAIT_MS INTERVAL_MS");
        std::process::exit(2);
    };
    let config = fixed_times(FixedTimes { wait, interval });
    let socket = Listener::bind(address, config).await?.accept().await?;
    while socket.recv().await.is_ok() {}
    let statistics = socket.statistics();
    println!("{} packets were lost", statistics.packets_receive_lost);
    println!("{} packets came too late or not at all", statistics.packets_receive_dropped);
    Ok(())
}
