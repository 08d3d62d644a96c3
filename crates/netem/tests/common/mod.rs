//! A packet that knows its number, and a loop that empties a link in virtual time.

use punctual_netem::{Arrival, Link, Packet};

/// The `number`-th packet sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) size: usize,
    pub(crate) damaged: bool,
}

impl Numbered {
    pub(crate) fn new(number: u64, size: usize) -> Self {
        Self { number, size, damaged: false }
    }
}

impl Packet for Numbered {
    fn len(&self) -> usize {
        self.size
    }

    fn corrupt(&mut self, _: u64) {
        self.damaged = true;
    }
}

/// Takes out everything, each packet at its instant.
pub(crate) fn drain(link: &mut Link<Numbered>) -> Vec<Arrival<Numbered>> {
    let mut arrivals = Vec::new();
    while let Some(due) = link.poll_timeout() {
        arrivals.extend(std::iter::from_fn(|| link.recv(due)));
    }
    arrivals
}
