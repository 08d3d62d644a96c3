//! Real sockets on the loopback interface.

mod cancel;
mod close;
#[cfg(test)]
mod common;
mod connect;
mod exchange;
mod listener;
mod reconnect;
mod stream;
