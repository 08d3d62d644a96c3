//! A C library with libsrt's functions, on Punctual's protocol machine.
#![forbid(unsafe_code)]
