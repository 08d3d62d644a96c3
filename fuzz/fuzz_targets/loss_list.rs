//! Whatever loss list parses has ordered ranges, and building it anew gives the same ranges.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_wire::{LossList, LossListBuilder};

fuzz_target!(|body: &[u8]| {
    let Ok(list) = LossList::parse(body) else { return };
    assert_eq!(list.as_bytes(), body);
    let mut builder = LossListBuilder::new(body.len() / 4);
    assert!(list.ranges().all(|(first, last)| builder.push(first, last)));
    assert!(builder.as_list().ranges().eq(list.ranges()));
});
