//! When each message of a stream is due.

use std::time::Duration;

use crate::run::Setup;

/// The times of a stream's messages since its start: an absolute schedule, so that no delay adds
/// up.
#[derive(Clone, Debug)]
pub(crate) struct StreamTimes<'a> {
    setup: &'a Setup,
    next: Duration,
}

impl<'a> StreamTimes<'a> {
    pub(crate) fn new(setup: &'a Setup) -> Self {
        Self { setup, next: Duration::ZERO }
    }
}

impl Iterator for StreamTimes<'_> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let due = self.next;
        if due >= self.setup.duration {
            return None;
        }
        let gap = self.setup.rate_at(due).time_for(self.setup.payload as u64);
        self.next = due.saturating_add(gap);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::run::{Selection, runs};

    #[test]
    fn a_ramp_sends_faster_in_each_step() {
        let text = "name = 'n'\n[stream]\nbitrate = '1Mbps'\npayload = 1250\nduration = '3s'\n\
                    ramp = { by = '1Mbps', every = '1s' }";
        let plan = Plan::parse("n.toml", text).unwrap();
        let spec = runs(&plan, &Selection::default()).unwrap().remove(0);
        let times: Vec<Duration> = StreamTimes::new(&spec.setup).collect();
        let within = |second: u64| times.iter().filter(|time| time.as_secs() == second).count();
        assert_eq!((within(0), within(1), within(2)), (100, 200, 300));
    }
}
