//! The highest load that holds.

use crate::Result;

/// A search for the highest load that holds: short runs to find it, a long one to confirm it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The load to begin with.
    pub(crate) start: f64,
    /// The factor from one load to the next until the limit lies between two.
    pub(crate) growth: f64,
    /// The distance of the load found from the lowest one that failed: 0.04 for 4 %.
    pub(crate) precision: f64,
    /// Length of a short run, seconds.
    pub(crate) probe: f64,
    /// Length of the run that confirms, seconds.
    pub(crate) confirm: f64,
}

impl Search {
    /// The highest load for which `holds(load, seconds, attempt)` says yes; an error if none is
    /// found.
    ///
    /// A load fails only if it fails twice, in attempts 0 and 1: a neighbour on the machine may
    /// spoil a run.
    pub(crate) async fn highest(
        self,
        mut holds: impl AsyncFnMut(f64, f64, usize) -> bool,
    ) -> Result<f64> {
        let mut twice =
            async |load, seconds| holds(load, seconds, 0).await || holds(load, seconds, 1).await;
        let mut load = self.bracket(&mut twice).await?;
        for _ in 0..CONFIRMATIONS {
            if twice(load, self.confirm).await {
                return Ok(load);
            }
            load /= 1.0 + self.precision;
        }
        Err(format!("no load holds for {} s, down to {load:.0}", self.confirm).into())
    }

    /// Grows or shrinks the load until one holds and one does not, then closes in on the limit.
    async fn bracket(self, holds: &mut impl AsyncFnMut(f64, f64) -> bool) -> Result<f64> {
        let mut good = None;
        let mut bad = None;
        let mut load = self.start;
        loop {
            if holds(load, self.probe).await {
                good = Some(load);
            } else {
                bad = Some(load);
            }
            load = match (good, bad) {
                (Some(good), Some(bad)) if bad <= good * (1.0 + self.precision) => return Ok(good),
                (Some(good), Some(bad)) => f64::sqrt(good * bad),
                (Some(good), None) => good * self.growth,
                (None, _) if load < self.start / 64.0 => {
                    return Err(format!("not even a load of {load:.0} holds").into());
                }
                (None, _) => load / self.growth,
            };
        }
    }
}

const CONFIRMATIONS: usize = 12;

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use super::*;

    fn from(start: f64) -> Search {
        Search { start, growth: 1.3, precision: 0.04, probe: 3.0, confirm: 10.0 }
    }

    fn below(limit: f64) -> RangeInclusive<f64> {
        limit / 1.04..=limit
    }

    #[tokio::test]
    async fn finds_the_limit_from_below_and_above() {
        for start in [10.0, 95.0, 100.0, 105.0, 2_000.0] {
            let found = from(start).highest(async |load, _, _| load <= 100.0).await.unwrap();
            assert!(below(100.0).contains(&found), "{found} from {start}");
        }
    }

    #[tokio::test]
    async fn steps_down_to_a_load_that_holds_for_longer() {
        let limit = |seconds| if seconds > 5.0 { 80.0 } else { 100.0 };
        let found = from(90.0).highest(async |load, seconds, _| load <= limit(seconds)).await;
        let found = found.unwrap();
        assert!(below(80.0).contains(&found), "{found}");
    }

    #[tokio::test]
    async fn says_so_when_nothing_holds() {
        let failure = from(64.0).highest(async |_, _, _| false).await.unwrap_err();
        assert_eq!(failure.to_string(), "not even a load of 1 holds");
        let failure = from(64.0).highest(async |load, s, _| load < 64.0 && s < 5.0).await;
        assert!(failure.unwrap_err().to_string().starts_with("no load holds for 10 s, down to"));
    }

    #[tokio::test]
    async fn one_spoilt_run_changes_nothing() {
        let found = from(90.0).highest(async |load, _, attempt| load <= 100.0 && attempt == 1);
        assert!(found.await.unwrap() > 95.0);
    }
}
