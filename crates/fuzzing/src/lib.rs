//! The work of the fuzz targets with their input.
//!
//! Each target is a function that takes any bytes, and panics if a promise is broken. `fuzz/` hands
//! them to libFuzzer, which needs the nightly compiler; this crate's own test hands them the
//! corpora that lie there, and changed copies of them, with any compiler.

#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_truncation, reason = "input is cut to its useful bits")]

mod access;
mod config;
mod endpoint;
mod file_message;
mod forge;
mod fragments;
mod frames;
mod group;
mod input;
mod key_message;
mod link;
mod measures;
mod options;
mod packet_cost;
mod plan;
mod quic;
mod relay_config;
mod resume;
mod roles;
mod session;
mod transport_stream;
mod wire;

/// Takes any bytes, and panics if a promise is broken.
pub type Target = fn(&[u8]);

/// Every target, by its name: that of its program in `fuzz/fuzz_targets` and of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("access", access::run),
    ("endpoint", endpoint::run),
    ("file_message", file_message::run),
    ("fragments", fragments::run),
    ("frames", frames::run),
    ("group", group::run),
    ("handshake", wire::handshake),
    ("key_message", key_message::run),
    ("link", link::run),
    ("loss_list", wire::loss_list),
    ("measures", measures::run),
    ("options", options::run),
    ("packet", wire::packet),
    ("plan", plan::run),
    ("quic", quic::run),
    ("relay_config", relay_config::run),
    ("resume", resume::run),
    ("roles", roles::run),
    ("session", session::run),
    ("transport_stream", transport_stream::run),
];

/// Hands `input` to the target of this name.
///
/// # Panics
///
/// There is no such target, or it found a fault.
pub fn run(target: &str, input: &[u8]) {
    let known = TARGETS.iter().find(|(name, _)| *name == target);
    let (_, run) = known.unwrap_or_else(|| panic!("there is no fuzz target {target}"));
    run(input);
}
