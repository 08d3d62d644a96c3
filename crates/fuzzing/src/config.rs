//! Options that bytes choose.

use std::time::Duration;

use punctual_proto::{
    BufferSize, Config, CryptoMode, KeyLength, RetransmitAlgorithm, Transmission,
};

/// The most packets that either buffer holds.
pub(crate) const WINDOW: usize = 128;

/// Bits of `basic`.
const NO_TSBPD: u8 = 4;
const NO_DROP: u8 = 64;
const DEADLINE: u8 = 128;

/// Options with small buffers: `basic` chooses those of live mode, `extra` the packet filter, the
/// cipher and how long a key serves.
pub(crate) fn drawn(basic: u8, extra: u8) -> Config {
    let config = Config::default()
        .with_tsbpd(basic & NO_TSBPD == 0)
        .with_periodic_nak(basic & 8 == 0)
        .with_too_late_drop(basic & NO_DROP == 0);
    with_extras(by_deadline(config, basic), basic, filter(extra), extra)
}

/// Options for files, which are cut into packets and of which nothing may be missing.
pub(crate) fn drawn_file(basic: u8, extra: u8, transmission: Transmission) -> Config {
    let config = Config::file().with_transmission(transmission).with_periodic_nak(basic & 8 != 0);
    // Without retransmission a receiver would wait for lost packets for ever.
    let filter = Some(filter(extra)).filter(|filter| !filter.ends_with("arq:never"));
    with_extras(config, basic, filter.unwrap_or_default(), extra)
}

/// Options for the links of a group, which has neither messages without a time nor a filter.
pub(crate) fn drawn_link(basic: u8, extra: u8) -> Config {
    let config = Config::default()
        .with_periodic_nak(basic & 8 == 0)
        .with_group_connect(true)
        .with_drift_tracer(basic & NO_TSBPD == 0);
    with_extras(by_deadline(config, basic), basic, "", extra)
}

fn by_deadline(config: Config, basic: u8) -> Config {
    config.with_retransmit_algorithm(if basic & DEADLINE == 0 {
        RetransmitAlgorithm::Efficient
    } else {
        RetransmitAlgorithm::Deadline
    })
}

fn with_extras(config: Config, basic: u8, filter: &str, extra: u8) -> Config {
    let config = config
        .with_receive_buffer(BufferSize::Packets(WINDOW))
        .with_send_buffer(BufferSize::Packets(WINDOW))
        .with_stream_id(if basic & 16 == 0 { "" } else { "#!::r=a,m=publish" })
        .and_then(|config| config.with_reorder_tolerance(if basic & 32 == 0 { 0 } else { 5 }))
        // A shorter idle timeout would end connections during the long silences of the input.
        .and_then(|config| config.with_peer_idle_timeout(Duration::from_secs(86_400)))
        .and_then(|config| config.with_packet_filter(filter))
        .expect("in range");
    let (rate, ahead) = [(1 << 24, 1 << 16), (16, 7), (40, 10), (3, 1)][usize::from(extra >> 6)];
    let config = config
        .with_key_refresh_rate(rate)
        .and_then(|config| config.with_key_pre_announce(ahead))
        .expect("in range");
    encrypted(config, extra >> 3 & 7)
}

/// `basic` so that an end does not wait for missing packets, if with one of these `extras` they are
/// not retransmitted: it would wait for ever.
pub(crate) fn without_waiting(basic: u8, extras: [u8; 2]) -> u8 {
    let asks = |extra| filter(extra).is_empty() || filter(extra).ends_with("arq:always");
    if extras.into_iter().all(asks) { basic } else { basic & !(NO_TSBPD | NO_DROP) }
}

/// Whether packets that were changed on their way are refused with these options.
pub(crate) fn is_authentic(config: &Config) -> bool {
    config.passphrase().is_some() && config.crypto_mode() == CryptoMode::Gcm
}

fn filter(extra: u8) -> &'static str {
    match extra & 7 {
        4 => "fec,cols:10,rows:5",
        5 => "fec,cols:4,arq:never",
        6 => "fec,cols:3,rows:-4,layout:even,arq:always",
        7 => "fec,rows:3,cols:3,arq:onreq",
        _ => "",
    }
}

fn encrypted(config: Config, choice: u8) -> Config {
    let (mode, length, passphrase) = match choice {
        4 => (CryptoMode::Ctr, KeyLength::Aes128, "correct horse"),
        5 => (CryptoMode::Gcm, KeyLength::Aes256, "correct horse"),
        6 => (CryptoMode::Gcm, KeyLength::Aes128, "correct horse"),
        7 => (CryptoMode::Auto, KeyLength::Aes192, "battery staple"),
        _ => return config,
    };
    config
        .with_crypto_mode(mode)
        .with_key_length(Some(length))
        .with_passphrase(passphrase)
        .expect("long enough")
}
