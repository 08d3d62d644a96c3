//! The machine of a relay in virtual time: publishers that come and go, viewers that stall, and
//! what each viewer gets.

#![forbid(unsafe_code)]

mod links;
mod publishers;
mod random;
mod receiver;
mod slow_viewers;
mod sources;
mod starts;
mod world;
