//! Marks for a tool that counts instructions.

use std::hint::black_box;

/// Handles one packet and all that follows from it at once. A tool such as callgrind finds the
/// instructions in between by the names of the two functions that are called before and after.
pub(crate) fn of_one_packet<T>(work: impl FnOnce() -> T) -> T {
    packet_begins();
    let result = work();
    packet_ends();
    result
}

#[inline(never)]
fn packet_begins() {
    black_box(());
}

#[inline(never)]
fn packet_ends() {
    black_box(());
}
