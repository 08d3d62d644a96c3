//! The model of QUIC in virtual time.

use std::time::Duration;

use punctual_quic_model::{Outcome as Transfer, Sample, run};
use punctual_units::Instant;

use crate::backend::Backend;
use crate::outcome::{Outcome, RunSeries};
use crate::results::columns::link;
use crate::results::quic_model::{quic_model, quic_state};
use crate::run::RunSpec;

/// Runs the transfers of `[quic]` over the model of QUIC. The same run gives the same outcome, on
/// any machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuicModel;

impl Backend for QuicModel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, String> {
        let setup = &spec.setup;
        let Some(transfer) = &setup.quic else {
            return Err(format!("the backend `{NAME}` runs plans with [quic] alone"));
        };
        let path = &setup.path;
        let scenario = transfer.scenario(&path.up, &path.down, setup.seed, setup.duration)?;
        let transfer = run(&scenario);
        let status = if transfer.completed.is_some() { Outcome::OK } else { "not completed" };
        let mut outcome = Outcome { status: status.to_owned(), ..Outcome::default() };
        outcome.extend(quic_model(Some(&transfer)));
        outcome.extend(link("up", &transfer.down));
        outcome.series = setup.series.map(|period| series(&transfer, period));
        Ok(outcome)
    }
}

/// The error of another backend that is to run `[quic]`.
pub(super) fn refuse(spec: &RunSpec) -> Result<(), String> {
    match spec.setup.quic {
        None => Ok(()),
        Some(_) => Err(format!("a plan with [quic] is run by the backend `{NAME}` alone")),
    }
}

/// The sender's state at the end of each period.
fn series(transfer: &Transfer, period: Duration) -> RunSeries {
    let names = quic_state(None).into_iter().map(|(name, _)| name);
    let columns = ["time_s".to_owned()].into_iter().chain(names).collect();
    let mut rows = Vec::new();
    let mut at = Instant::ORIGIN;
    let end = transfer.samples.last().map_or(at, |last| last.at);
    let mut samples = transfer.samples.iter().peekable();
    let mut latest: Option<&Sample> = None;
    while at < end {
        at += period;
        while let Some(sample) = samples.next_if(|sample| sample.at <= at) {
            latest = Some(sample);
        }
        let state = quic_state(latest).into_iter().map(|(_, number)| number);
        rows.push([(at - Instant::ORIGIN).as_secs_f64()].into_iter().chain(state).collect());
    }
    RunSeries { columns, rows }
}

const NAME: &str = "quic-model";
