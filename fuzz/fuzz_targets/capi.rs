#![no_main]

// The model lies with the C library: it calls C functions, which this crate's other targets cannot.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    punctual_random_calls::run(input);
});
