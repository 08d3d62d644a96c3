#![no_main]

// The model lies with the C library: it calls C functions, which this crate's other targets cannot.
#[path = "../../crates/capi/tests/random_calls/world/mod.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|input: &[u8]| { world::run(input); });
