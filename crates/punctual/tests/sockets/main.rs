//! Real sockets on the loopback interface.

mod cancel;
mod close;
mod common;
mod connect;
mod exchange;
mod listener;
mod reconnect;
