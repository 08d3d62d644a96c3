//! The cost of the calls that send and receive one message.

use super::Bench;
use crate::Result;
use crate::messages::MessageCost;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let repeats = bench.effort.repeats;
    let [samples] = bench.alternate("ns a message", Implementation::ALL, repeats, measure).await;
    let row = Row {
        what: "a message: the calls that send and receive it, time of the calling thread",
        unit: "ns",
        target: Target::None,
        samples,
    };
    row.and_c_library(&Target::AtMostMore(150.0)).into()
}

async fn measure(bench: &mut Bench, implementation: Implementation) -> Result<[f64; 1]> {
    let traffic = Traffic {
        streams: ROUNDS,
        latency_ms: LATENCY_MS,
        ..Traffic::new(bench.pairs.port(), 0.0)
    };
    let mut process = bench.pairs.start(implementation, "messages", &traffic.flags())?;
    let MessageCost { send_ns, receive_ns } = process.report().await?;
    eprint!("(send {send_ns:.0}, receive {receive_ns:.0}) ");
    Ok([send_ns + receive_ns])
}

/// Rounds of 64 messages; the median counts.
const ROUNDS: u32 = 100;
/// Half the time of a round.
const LATENCY_MS: u64 = 30;
