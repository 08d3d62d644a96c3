//! A simulated world: hosts, links and applications on one virtual clock, from one seed.
//!
//! The hosts run the very protocol machine that ships, [`punctual_proto::Endpoint`]; the links are
//! those of [`punctual_netem`]. Minutes of streaming take a blink, and the same world with the same
//! seed does the same, to the bit, on any machine.
//!
//! ```
//! use std::time::Duration;
//! use punctual_netem::LinkConfig;
//! use punctual_proto::Config;
//! use punctual_sim::{End, HostConfig, RateSchedule, StreamConfig, Transport, World};
//! use punctual_units::Bitrate;
//!
//! let ms = Duration::from_millis;
//! let mut world = World::new(42);
//! let (studio, club) = (world.add_host(HostConfig::default()),
//! world.add_host(HostConfig::default())); let there =
//! world.add_link(LinkConfig::default().with_delay(ms(20))); let back =
//! world.add_link(LinkConfig::default().with_delay(ms(20))); world.set_route(studio, club,
//! &[there])?; world.set_route(club, studio, &[back])?; let stream = world.add_stream(StreamConfig
//! {
//!     transport: Transport::Srt {
//!         sender: Config::default(),
//!         receiver: Config::default().with_latency(ms(120))?,
//!         caller: End::Sender,
//!     },
//!     rate: RateSchedule::constant(Bitrate::from_mbps(10)),
//!     payload: 1_316,
//!     start: Duration::ZERO,
//!     duration: Duration::from_secs(10),
//!     from: studio,
//!     to: club,
//!     series: None,
//! })?;
//! world.run_for(Duration::from_secs(11));
//!
//! let outcome = world.outcome(stream);
//! assert_eq!(outcome.messages_received, outcome.messages_sent);
//! assert_eq!(outcome.latency_us.median(), Some(140_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - A **host** ([`HostConfig`]) is one UDP port with the machine of a [`HostCarriage`], a clock
//!   that may be off and drift, and a way of waking up late as real hosts do ([`Lateness`]).
//! - A **link** is one direction of one. A route leads over several, and any number of routes may
//!   share one: that is a bottleneck. Packets count with their IP and UDP headers.
//! - A **stream** ([`StreamConfig`]) is an application at either end: one sends numbered messages
//!   at exact times, the other reads the due ones, checks every byte and measures. It may be a
//!   file, whose application waits for room, or go over the links of a group.
//! - **Cross traffic** ([`TrafficConfig`]) takes room on links: constant, in bursts, or as much as
//!   a TCP connection takes, with NewReno, CUBIC or BBR ([`TcpConfig`]). A TCP flow may carry a
//!   transfer or a live stream; [`World::traffic_progress`] says when its bytes arrived in order.
//! - **Seeds**: each host, link and stream has one, made from the world's seed, its kind and its
//!   number. Adding a stream changes no link's random numbers.

#![forbid(unsafe_code)]

mod agenda;
#[cfg(feature = "quic")]
mod bare_quic;
mod capture;
mod clock;
mod error;
mod ground;
mod host;
mod ids;
mod machine;
mod memory;
mod packet;
mod schedule;
mod seeds;
mod stream;
mod traffic;
mod world;

pub use error::WorldError;
pub use ground::links::{LinkSnapshot, Passage};
pub use host::{HostConfig, Lateness};
pub use ids::{HostId, LinkId, StreamId, TrafficId};
pub use machine::HostCarriage;
pub use punctual_netem::LinkEnd;
pub use schedule::RateSchedule;
pub use stream::{
    End, GroupLinkConfig, LinkOutcome, StreamConfig, StreamIntegrity, StreamOutcome, StreamSample,
    Transport,
};
pub use traffic::{
    FlowProgress, TcpConfig, TcpControl, TcpSource, Traffic, TrafficConfig, TrafficStatistics,
};
pub use world::World;
