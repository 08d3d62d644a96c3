//! A custom retransmission policy: each lost packet is retransmitted a limited number of times, for
//! links where every byte costs money.
//!
//! ```sh
//! punctual receive 'srt://:4200' &
//! cargo run -p punctual --example custom_retransmission -- 127.0.0.1:4200 2
//! ```

use std::time::Duration;

use bytes::Bytes;
use punctual::{
    Config, Decision, Error, Instant, ReportedPacket, RetransmitAlgorithm, RetransmitPolicy,
    SenderView, Socket,
};

/// Retransmits each packet at most `limit` times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtMost {
    pub(crate) limit: u32,
}

impl RetransmitPolicy for AtMost {
    fn decide(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Decision {
        // The NAK was sent before the last retransmission could arrive.
        let is_answered = packet.last_retransmit.is_some_and(|at| now < at + view.rtt.smoothed);
        if is_answered {
            Decision::Suppress
        } else if packet.retransmissions >= self.limit {
            Decision::TooLate
        } else {
            Decision::ONCE
        }
    }
}

/// The default options with this retransmission policy.
pub(crate) fn at_most(limit: u32) -> Config {
    Config::default()
        .with_retransmit_algorithm(RetransmitAlgorithm::custom(move || AtMost { limit }))
}

/// Sends a thousand messages to the address in the first argument; the second one is the limit.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().and_then(|text| text.parse().ok());
    let limit = arguments.next().and_then(|text| text.parse().ok());
    let (Some(address), Some(limit)) = (address, limit) else {
        eprintln!("usage: custom_retransmission ADDRESS:PORT LIMIT");
        std::process::exit(2);
    };
    let socket = Socket::connect(address, at_most(limit)).await?;
    for number in 0..1_000_u32 {
        socket.send(Bytes::copy_from_slice(&number.to_be_bytes())).await?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let statistics = socket.statistics();
    println!("retransmitted {} packets", statistics.packets_retransmitted);
    socket.close().await;
    Ok(())
}
