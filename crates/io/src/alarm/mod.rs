//! An alarm that any thread may set and one task waits for.

mod common;
mod system;

use std::io;
use std::task::{Context, Poll};

use punctual_units::Instant;

use self::common::CommonAlarm;
use self::system::SystemTimer;
use crate::descriptors::{Descriptors, Share};

/// A timer that any thread may set and one task waits for.
///
/// On Linux it goes off within some tens of microseconds of its deadline, never before it;
/// elsewhere it has the grain of tokio's timer, which is 1 ms.
///
/// The first alarms of a process have a timer of the system each. Further ones share one in each
/// runtime, so that a program with many ports needs a descriptor less for each.
#[derive(Debug)]
pub struct Alarm(Kind);

#[derive(Debug)]
enum Kind {
    Own { timer: SystemTimer, _share: Share },
    Common(CommonAlarm),
}

static TIMERS: Descriptors = Descriptors::new();

impl Alarm {
    /// An alarm that is not set. Must be called within a tokio runtime.
    pub fn new() -> io::Result<Self> {
        Ok(Self(match TIMERS.share() {
            Some(share) => Kind::Own { timer: SystemTimer::new()?, _share: share },
            None => Kind::Common(CommonAlarm::new()?),
        }))
    }

    /// Sets the alarm to go off at `deadline` instead of whenever it was set to before. A deadline
    /// in the past goes off at once.
    pub fn set(&self, deadline: Instant) {
        match &self.0 {
            Kind::Own { timer, .. } => timer.set(deadline),
            Kind::Common(alarm) => alarm.set(deadline),
        }
    }

    /// Ready if the alarm went off since the last call; else the task is woken when it does.
    pub fn poll_gone_off(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.0 {
            Kind::Own { timer, .. } => timer.poll_gone_off(cx),
            Kind::Common(alarm) => alarm.poll_gone_off(cx),
        }
    }
}
