//! A custom estimator of the round-trip time: the median of the last samples, so that a few late
//! answers do not change it.
//!
//! ```sh
//! cargo run -p punctual --example custom_rtt -- 127.0.0.1:4200 15 &
//! punctual generate 'srt://127.0.0.1:4200' --sendrate 5Mbps
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use punctual::{Config, Error, Listener, Rtt, RttAlgorithm, RttEstimator, RttSample};

/// The median of the last `count` samples, and their median deviation from it.
#[derive(Debug)]
pub(crate) struct Median {
    count: usize,
    samples: VecDeque<Duration>,
}

impl Median {
    pub(crate) fn of_last(count: usize) -> Self {
        Self { count: count.max(1), samples: VecDeque::new() }
    }
}

impl RttEstimator for Median {
    fn acknowledged(&mut self, sample: &RttSample) {
        if self.samples.len() == self.count {
            self.samples.pop_front();
        }
        self.samples.push_back(sample.rtt);
    }

    fn estimate(&self) -> Option<Rtt> {
        let smoothed = median(self.samples.iter().copied())?;
        let variance = median(self.samples.iter().map(|rtt| rtt.abs_diff(smoothed)))?;
        Some(Rtt { smoothed, variance })
    }

    /// The late answers do not move the median, so that it alone would call each of them overdue.
    fn timeout(&self, estimate: Rtt) -> Duration {
        let greatest = self.samples.iter().max().copied().unwrap_or_default();
        estimate.bound().max(greatest)
    }
}

fn median(values: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// The default options with this estimator.
pub(crate) fn median_of_last(count: usize) -> Config {
    Config::default().with_rtt_algorithm(RttAlgorithm::custom(move || Median::of_last(count)))
}

/// Receives from a caller at the address in the first argument; the second one is the number of
/// samples.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().and_then(|text| text.parse().ok());
    let count = arguments.next().and_then(|text| text.parse().ok());
    let (Some(address), Some(count)) = (address, count) else {
        eprintln!("usage: custom_rtt ADDRESS:PORT SAMPLES");
        std::process::exit(2);
    };
    let socket = Listener::bind(address, median_of_last(count)).await?.accept().await?;
    while socket.recv().await.is_ok() {}
    let statistics = socket.statistics();
    println!("round trip {:?}, deviation {:?}", statistics.rtt, statistics.rtt_variance);
    Ok(())
}
