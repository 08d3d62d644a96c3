//! A model of QUIC's sender and receiver: a laboratory instrument for timers, loss recovery,
//! acknowledgements, path MTU discovery, pacing and congestion control.
//!
//! A client asks for an object and a server sends it over two [`netem`](punctual_netem) links, in
//! virtual time and in one loop of events. The same [`Scenario`] gives the same [`Outcome`] on any
//! machine: when the object had arrived, the packets lost and repeated, each event, and the
//! sender's state over time.
//!
//! ```
//! use punctual_quic_model::{Control, Scenario, SenderConfig, run};
//! use punctual_rtt::{BuiltInRtt, TimerRule};
//!
//! let timer = TimerRule::ThreeVariances;
//! let sender = SenderConfig::picoquic_2023(Control::Bbr, BuiltInRtt::OncePublished, timer);
//! let outcome = run(&Scenario::mtu_drop(sender));
//! let completed = outcome.completed.expect("it ends within two minutes");
//! assert!((10.0..11.0).contains(&completed.as_secs_f64()));
//! ```
//!
//! | part | choices |
//! |---|---|
//! | estimator ([`BuiltInRtt`](punctual_rtt::BuiltInRtt)) | every one of `punctual-rtt` |
//! | timer ([`TimerRule`](punctual_rtt::TimerRule)) | 4V, 3V, MaxRTT of lifetime or epoch |
//! | loss detection ([`LossDetection`]) | RFC 9002, picoquic in June 2023 |
//! | acknowledgements ([`AckPolicy`]) | every n packets, or as the sender asks |
//! | congestion control ([`Control`]) | NewReno, CUBIC, BBRv1 with a start for long paths |
//! | path MTU | probes at the greatest size and at 1400 bytes, detection of black holes |
//! | pacing | a token bucket |
//!
//! # What is left out
//!
//! It is no transport. Packets have sizes, numbers and meanings, but no bytes.
//!
//! - Each direction has one space of packet numbers. The handshake is a script with the sizes of
//!   picoquic's packets; it is neither lost nor repeated, and the client's own packets are not
//!   repeated either.
//! - The server's acknowledgements of the client's packets take no room on the link.
//! - One stream, no flow control, no ECN, no migration, no keys, no end of the connection.
//! - Both ends are infinitely fast and have exact clocks.
//! - Headers have 36 bytes in each packet, whatever the numbers in them are.
//! - Congestion controls have picoquic's parameters with either loss detection. Persistent
//!   congestion (RFC 9002 section 7.6) is seen in the losses that are found at one time.
//!
//! The published results came from a whole transport; the tests of this crate say how near the
//! model comes to them.

#![forbid(unsafe_code)]
#![expect(clippy::single_range_in_vec_init, reason = "parts of a stream are lists of ranges")]

mod ack_policy;
mod config;
mod congestion;
mod delivery_rate;
mod flight;
mod journal;
mod loss;
mod pacer;
mod packet;
mod pmtud;
mod ranges;
mod receiver;
mod sender;
mod simulation;
mod stream;
mod timing;

pub use ack_policy::AckPolicy;
pub use config::{Scenario, SenderConfig};
pub use congestion::Control;
pub use journal::{Counts, Event, Sample};
pub use loss::LossDetection;
pub use simulation::{Outcome, run};
