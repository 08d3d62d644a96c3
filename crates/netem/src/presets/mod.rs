//! Links that people meet, with their reasons.

mod fixed;
mod mobile;

use crate::profile::PathProfile;
use crate::text::{LinkTextError, nearest};

pub use mobile::mobile;

/// A path that people meet.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name, as `punctual emulate --preset` takes it.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Where its figures come from.
    pub source: &'static str,
    build: fn(u64) -> PathProfile,
}

impl Preset {
    /// The path both ways. The seed decides the courses that are left to chance, such as a mobile
    /// link's capacity; the same seed makes the same path.
    pub fn path(&self, seed: u64) -> PathProfile {
        (self.build)(seed)
    }
}

/// Every preset.
pub fn all() -> &'static [Preset] {
    PRESETS
}

/// The preset of this name; the error says which there are.
pub fn find(name: &str) -> Result<&'static Preset, LinkTextError> {
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
        return Ok(preset);
    }
    let names = PRESETS.iter().map(|preset| preset.name);
    let meant = match nearest(name, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    };
    Err(LinkTextError::new(format!("`{name}` is no preset; {meant}")))
}

const PRESETS: &[Preset] = &[
    Preset {
        name: "lab",
        about: "the laboratory link of SRT's retransmission experiments: RTT 20 ms, 45 Mb/s",
        source: "SRT Alliance, Improving SRT retransmissions: experiments with simulated links",
        build: fixed::lab,
    },
    Preset {
        name: "intercontinental",
        about: "a long way over good networks: RTT 200 ms, 2 % of loss each way",
        source: "the usual figures of a contribution link between continents",
        build: fixed::intercontinental,
    },
    Preset {
        name: "mtu-drop",
        about: "1 Mb/s, RTT 200 ms, and 1.2 s from the start packets over 1394 bytes vanish",
        source: "picoquic's test mtu_drop (picoquictest/tls_api_test.c, 2023)",
        build: fixed::mtu_drop,
    },
    Preset {
        name: "mobile",
        about: "a moving 4G modem: 20 Mb/s, RTT 60 ms, jitter, 2 % of loss in bursts",
        source: "our own figures",
        build: mobile::path,
    },
];
