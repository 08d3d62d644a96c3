use std::fs;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Role;

/// A UDP port that nobody uses, below the range that the system gives to callers.
///
/// # Panics
///
/// If no port is free.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 0..SPAN {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        // Test programs that run at the same time start at places that are far apart, although
        // their process identifiers are neighbours.
        let place = u64::from(std::process::id()) * 61 % u64::from(SPAN);
        let start = u16::try_from(place).expect("below SPAN");
        let port = FIRST + (start.wrapping_add(step)) % SPAN;
        if UdpSocket::bind(("0.0.0.0", port)).is_ok() && UdpSocket::bind(("::", port)).is_ok() {
            return port;
        }
    }
    panic!("no free UDP port between {FIRST} and {}", FIRST + SPAN);
}

/// Waits until some program has bound this UDP port. Looks at the system's table instead of trying
/// to bind, which would be in the program's way.
///
/// # Panics
///
/// If none has within ten seconds.
pub fn wait_until_bound(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_bound(port) {
        assert!(Instant::now() < deadline, "nobody listens on UDP port {port}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The missing other end of a program that waits for a connection: nobody calls its port, or nobody
/// answers at the port that it calls.
#[derive(Debug)]
pub struct Nobody {
    port: u16,
    /// The socket that hears the calls.
    called: Option<UdpSocket>,
}

impl Nobody {
    /// The end that a program in this role waits for.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn opposite(role: Role) -> Self {
        let port = free_port();
        let bind = || UdpSocket::bind(("127.0.0.1", port)).expect("the port is free");
        Self { port, called: (role == Role::Caller).then(bind) }
    }

    /// The port for the program.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until the program waits.
    ///
    /// # Panics
    ///
    /// If it does not within ten seconds.
    pub fn wait_for_the_other(&self) {
        let Some(socket) = &self.called else { return wait_until_bound(self.port) };
        let limit = Some(Duration::from_secs(10));
        socket.set_read_timeout(limit).expect("a time limit can be set");
        socket.recv(&mut [0; 2_048]).expect("somebody calls");
    }
}

fn is_bound(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    ["/proc/net/udp", "/proc/net/udp6"].iter().any(|table| {
        let table = fs::read_to_string(table).unwrap_or_default();
        // The second column is the local address in hexadecimal digits: 0100007F:59DC.
        table.lines().skip(1).any(|row| {
            row.split_whitespace().nth(1).is_some_and(|address| address.ends_with(&wanted))
        })
    })
}

const FIRST: u16 = 10_000;
const SPAN: u16 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that another test starts holds the port as well, for a moment, until it is
    /// executed.
    fn wait_until_free(port: u16) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_bound(port) {
            assert!(Instant::now() < deadline, "port {port} is still seen as bound");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_port_is_seen_as_bound_while_somebody_holds_it() {
        let port = free_port();
        wait_until_free(port);
        let held = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        wait_until_bound(port);
        drop(held);
        wait_until_free(port);
        assert_ne!(free_port(), port, "ports are not handed out twice");
    }
}
