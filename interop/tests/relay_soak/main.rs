//! The relay under load: a crowd that comes and goes behind a bad link, and an honest stream beside
//! floods of all kinds.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "callers of a real relay have a clock, threads and sockets"
)]

mod caller;
mod crowd;
mod floods;
mod judge;
mod ledger;
mod relay_watch;
mod soak;
mod source;

use std::time::Duration;

use interop::{Turns, retry_if_stalled};

use crate::crowd::Habits;
use crate::soak::{Plan, soak};

/// Each of these tests needs the processors for itself.
static TURNS: Turns = Turns::new(1);

#[test]
fn a_small_crowd_behind_a_bad_link_leaves_nothing_behind() {
    let _turn = TURNS.take(1);
    let habits = Habits {
        publishers: 5,
        viewers: 20,
        pictures_per_second: 25,
        longest_stay: Duration::from_secs(12),
        longest_pause: Duration::from_secs(3),
    };
    let plan = Plan {
        habits,
        time: Duration::from_secs(16),
        keep_viewers: Duration::from_secs(2),
        power_cuts: Duration::from_secs(4),
    };
    retry_if_stalled(|| soak("relay_soak_small", plan, number("SOAK_SEED").unwrap_or(1)));
}

/// 50 publishers and 200 viewers, for `SOAK_MINUTES`. Each stream has 0.5 Mb/s, or 0.26 Mb/s
/// without optimisation.
#[test]
#[ignore = "it takes minutes: cargo xtask relay-soak"]
fn relay_soak() {
    let habits = Habits {
        publishers: 50,
        viewers: 200,
        pictures_per_second: if cfg!(debug_assertions) { 25 } else { 50 },
        longest_stay: Duration::from_secs(40),
        longest_pause: Duration::from_secs(20),
    };
    let plan = Plan {
        habits,
        time: Duration::from_secs(60 * number("SOAK_MINUTES").unwrap_or(10)),
        keep_viewers: Duration::from_secs(10),
        power_cuts: Duration::from_secs(15),
    };
    soak("relay_soak", plan, number("SOAK_SEED").unwrap_or(std::process::id().into()));
}

/// The number in a variable of the environment.
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
