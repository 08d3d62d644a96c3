//! The `punctual` program: generate, receive, route, emulate and demonstrate live streams.
#![forbid(unsafe_code)]

mod uri;

fn main() {}
