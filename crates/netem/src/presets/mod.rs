//! Links that people meet, with their reasons.

mod course;
mod fixed;
mod mobile;
mod moving;
mod stationary_4g;

use crate::profile::PathProfile;
use crate::text::{LinkTextError, nearest};

pub use mobile::mobile;
pub use stationary_4g::{CongestionEvent, stationary_4g};

/// A path that people meet.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name, as `punctual emulate --preset` takes it.
    pub name: &'static str,
    /// A description in a line.
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
        about: "the laboratory of SRT's retransmission experiments: RTT 20 ms, 45 Mb/s",
        source: "the SRT Alliance's article on SRT's retransmission algorithms, 2022",
        build: fixed::lab,
    },
    Preset {
        name: "4g-stationary",
        about: "a stationary 4G modem: RTT 150 ms, about 10 Mb/s of 20, an event at 20 s",
        source: "Examining SRT Streaming over 4G Networks, SRT Alliance, 2022",
        build: stationary_4g::path,
    },
    Preset {
        name: "intercontinental",
        about: "a long way over good networks: RTT 200 ms, 2 % of loss each way",
        source: "the usual figures of a contribution link between continents",
        build: fixed::intercontinental,
    },
    Preset {
        name: "wifi-to-wifi",
        about: "Wi-Fi at both ends, Germany to Spain: RTT 55 ms, 0.1 % of loss, long-tailed delay",
        source: "Live Streaming using SRT with QUIC Datagrams, Haivision, 2023; the RTT is assumed",
        build: fixed::wifi_to_wifi,
    },
    Preset {
        name: "mtu-drop",
        about: "1 Mb/s, RTT 200 ms; 1.2 s from the start, UDP payloads over 1394 bytes vanish",
        source: "picoquic's test mtu_drop (picoquictest/tls_api_test.c, 2023)",
        build: fixed::mtu_drop,
    },
    Preset {
        name: "mobile",
        about: "a moderately bad 4G modem: 20 Mb/s, RTT 60 ms, jitter, 2 % of loss in bursts",
        source: "our own figures",
        build: mobile::path,
    },
    Preset {
        name: "walking",
        about: "a phone carried through a town: 4 to 30 Mb/s, slow fading, short pauses",
        source: "our own course, made from the seed",
        build: moving::walking,
    },
    Preset {
        name: "driving",
        about: "a car through changing coverage: 1 to 40 Mb/s, fast fading, a handover a minute",
        source: "our own course, made from the seed",
        build: moving::driving,
    },
    Preset {
        name: "handover",
        about: "a train from cell to cell: each 10 to 20 s a gap of 100 to 600 ms with loss",
        source: "our own course, made from the seed",
        build: moving::handover,
    },
    Preset {
        name: "stadium",
        about: "a crowded cell: 0.5 to 8 Mb/s, seconds of queue, long pauses",
        source: "our own course, made from the seed",
        build: moving::stadium,
    },
];
