//! The lab: experiments with live streams, planned in a few lines, run by the thousand, and laid
//! beside what others published.
//!
//! A [`plan::Plan`] is a short TOML text: the streams, the link and the options. A list of values
//! makes an axis, and every combination is run, as often as repeats are wanted. [`run::runs`] lists
//! the runs. Each has a seed that depends on nothing but its parameters and its repeat, so a run is
//! the same in any sweep, on any worker and in any part.
//!
//! A [`backend::Backend`] runs them: [`Sim`](backend::Sim) in virtual time, [`Net`](backend::Net)
//! with real sockets through the real-time emulator, and [`External`](backend::External) with other
//! people's programs. A [`sweep::Sweep`] runs all of them on all cores and writes a folder of
//! results that can be resumed, parted and merged.
//!
//! [`results::Results`] holds a row for each run: parameters, every statistic of both ends under
//! libsrt's name, the counts of the links, metrics. It makes figures
//! ([`results::Results::drawing`]) and tables ([`results::Results::tabulation`]) of them, with 95 %
//! intervals, beside published figures.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use punctual_lab::backend::Sim;
//! use punctual_lab::plan::Plan;
//! use punctual_lab::sweep::{Adjustments, Execution, Sweep};
//!
//! let plan = Plan::parse("my.toml", r#"
//!     name = "my"
//!     [stream]
//!     bitrate = "2Mbps"
//!     duration = "2s"
//!     [link]
//!     rtt = "20ms"
//!     loss = ["0", "5%"]
//!     [options]
//!     latency = "4 × RTT"
//!     [metrics]
//!     overhead = "pktRetrans / pktSentUnique"
//! "#)?;
//! let sweep = Sweep::new(plan, &Adjustments::default())?;
//! let folder = std::env::temp_dir().join(format!("punctual-lab-doc-{}", std::process::id()));
//! let ended = sweep.run(&folder, &Execution {
//!     backends: &[&Sim],
//!     jobs: 2,
//!     resume: false,
//!     stop: &AtomicBool::new(false),
//!     progress: &|done, all, run| println!("{done} of {all}: {}", run.id),
//! })?;
//! assert_eq!(ended.results.sheet.number(0, "overhead"), Some(0.0));
//! assert!(ended.results.sheet.number(1, "overhead") > Some(0.02));
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_types,
    reason = "a sweep has workers, and backends in real time have sockets"
)]

pub mod backend;
mod numbers;
mod outcome;
pub mod plan;
pub mod published;
pub mod report;
pub mod results;
pub mod run;
mod settings;
pub mod sweep;
#[cfg(target_os = "linux")]
pub mod two_sides;
