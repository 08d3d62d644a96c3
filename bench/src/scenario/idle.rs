//! The share of a core that a connected pair takes while it sends nothing.

use super::Bench;
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let repeats = bench.effort.repeats.min(2);
    let [samples] = bench
        .alternate(
            "idle pair, % of a core",
            Implementation::TWO,
            repeats,
            async |bench, implementation| {
                let traffic = Traffic::new(bench.pairs.port(), bench.effort.idle);
                let outcome = bench.pairs.run(implementation, &traffic, Tuning::DEFAULT).await?;
                Ok([outcome.cores * 100.0])
            },
        )
        .await;
    vec![Row {
        what: "a connected idle pair, share of a core",
        unit: "%",
        target: Target::Below(0.2),
        samples,
    }]
}
