//! A network link as a pure model: no socket, no clock, no thread. Packets and instants go in,
//! packets and instants come out, and one seed decides all that is left to chance.
//!
//! [`Link`] is one direction of a link; a path both ways is two of them, each with its own
//! [`LinkProfile`] and its own seed. A packet passes these stages, in this order:
//!
//! 1. **loss** at the entrance ([`Loss`]): lost packets take no room and no rate;
//! 2. **duplication**: the copy follows right behind and is from here on a packet like any other;
//! 3. the **queue**, which refuses packets beyond its limit ([`QueueLimit`]) and may be kept short
//!    by CoDel ([`Discipline`]);
//! 4. **corruption** of accepted packets;
//! 5. transmission at the link's **rate**, one packet after the other, or by the opportunities of a
//!    recorded [`Trace`]; packets longer than the **MTU** go no further;
//! 6. **delay** and [`Jitter`], with order kept or not, and deliberate [`Reorder`]ing.
//!
//! A packet meets at each stage the configuration of that moment. It changes by itself where the
//! link has a [`Timeline`] (steps, ramps, outages, stalls) or a [`Trace`], each change at its
//! instant however often the link is asked; and by [`Link::set_config`]. Packets that are past the
//! stage are not affected. [`LinkStatistics`] counts every packet that is dropped, by its cause.
//!
//! [`presets`] has links that people meet. Parameters, events and timelines have text forms, which
//! the command line, plans and files share: [`LinkProfile::set`], [`Change::parse`], [`Timeline`].
//!
//! The caller's loop is the same in virtual and in real time: [`send`](Link::send) packets,
//! [`recv`](Link::recv) the due ones, sleep until [`poll_timeout`](Link::poll_timeout).
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
//! Every impairment has a separate generator, and each packet has a place in it that its number
//! determines. So a run with another share of loss loses other packets, but the jitter of the n-th
//! packet does not change. An unused impairment costs nothing: its generator is moved on when it is
//! needed.

#![forbid(unsafe_code)]

mod bottleneck;
mod change;
mod codel;
mod config;
mod gate;
mod generators;
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
pub use gate::LinkEnd;
pub use link::{Arrival, Link};
pub use loss::{Loss, PacketList};
pub use packet::Packet;
pub use presets::Preset;
pub use profile::{LinkProfile, PathProfile};
pub use statistics::LinkStatistics;
pub use text::{KEYS, LinkKey, LinkTextError};
pub use timeline::{Action, Event, Ramp, Timeline};
pub use trace::{Trace, TraceError, TraceRow};
