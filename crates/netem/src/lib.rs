//! A network link as a pure model: no socket, no clock, no thread. Packets and instants go in,
//! packets and instants come out, and one seed decides all that is left to chance.
//!
//! [`Link`] is one direction of a link; a path both ways is two of them, each with its own
//! [`LinkConfig`] and its own seed. A packet passes these stages, in this order:
//!
//! 1. **loss** at the entrance ([`Loss`]): what is lost takes no room and no rate;
//! 2. **duplication**: the copy follows right behind and is from here on a packet like any other;
//! 3. the **queue** with tail drop ([`QueueLimit`]);
//! 4. **corruption** of what the queue took;
//! 5. transmission at the link's **rate**, one packet after the other;
//! 6. **delay** and [`Jitter`], with order kept or not, and deliberate [`Reorder`]ing.
//!
//! A packet meets at each stage the configuration of that moment: [`Link::set_config`] makes delay
//! steps, outages and changes of rate, and disturbs nothing that is already past the stage.
//!
//! The caller's loop is the same in virtual and in real time: [`send`](Link::send) what goes in,
//! [`recv`](Link::recv) what is due, sleep until [`poll_timeout`](Link::poll_timeout).
//!
//! ```
//! use std::time::Duration;
//! use punctual_netem::{Link, LinkConfig, Loss};
//! use punctual_units::{Bitrate, Instant};
//!
//! let config = LinkConfig::default()
//!     .with_rate(Some(Bitrate::from_mbps(10)))
//!     .with_delay(Duration::from_millis(20))
//!     .with_loss(Loss::Random(0.02))?;
//! let mut link = Link::new(config, 42);
//! link.send(Instant::ORIGIN, vec![0; 1250]);
//!
//! let due = link.poll_timeout().expect("this packet is not lost with seed 42");
//! assert_eq!(due, Instant::from_millis(21));
//! assert_eq!(link.recv(due).expect("it is due").packet.len(), 1250);
//! # Ok::<(), punctual_netem::LinkConfigError>(())
//! ```
//!
//! # Same seed, same packets
//!
//! The same calls with the same seed give the same packets at the same nanoseconds on any machine:
//! the generator is a named one (PCG), and nothing transcendental is computed in floating point.
//! Every impairment has a generator of its own, which every packet draws from the same number of
//! times whatever becomes of it. So a run with another share of loss loses other packets, but the
//! jitter of the n-th packet is what it was.

#![forbid(unsafe_code)]

mod bottleneck;
mod chance;
mod change;
mod codel;
mod config;
mod link;
mod loss;
mod packet;
pub mod presets;
mod profile;
mod schedule;
mod service;
mod slope;
mod statistics;
mod text;
mod timeline;
mod trace;

pub use change::Change;
pub use codel::Discipline;
pub use config::{Jitter, LinkConfig, LinkConfigError, QueueLimit, Reorder};
pub use link::{Arrival, Link};
pub use loss::{Loss, PacketList};
pub use packet::Packet;
pub use presets::Preset;
pub use profile::{LinkProfile, PathProfile};
pub use statistics::LinkStatistics;
pub use text::{KEYS, Key, LinkTextError};
pub use timeline::{Action, Event, Ramp, Timeline};
pub use trace::{Trace, TraceError, TraceRow};
