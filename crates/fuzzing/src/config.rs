//! Options that bytes choose.

use std::time::Duration;

use punctual_proto::{BufferSize, Config, CryptoMode, KeyLength};

/// The most packets that either buffer holds.
pub(crate) const WINDOW: usize = 128;

/// Options with small buffers: `basic` chooses those of live mode, `extra` the packet filter, the
/// cipher and how long a key serves.
pub(crate) fn drawn(basic: u8, extra: u8) -> Config {
    let filter = filter(extra & 7);
    // Where nobody asks for what is missing again, a receiver that waits for it waits for ever.
    let may_wait = filter.is_empty() || filter.ends_with("arq:always");
    let config = Config::default()
        .with_receive_buffer(BufferSize::Packets(WINDOW))
        .with_send_buffer(BufferSize::Packets(WINDOW))
        .with_tsbpd(basic & 4 == 0 || !may_wait)
        .with_periodic_nak(basic & 8 == 0)
        .with_too_late_drop(basic & 64 == 0 || !may_wait)
        .with_stream_id(if basic & 16 == 0 { "" } else { "#!::r=a,m=publish" })
        .and_then(|config| config.with_reorder_tolerance(if basic & 32 == 0 { 0 } else { 5 }))
        // Whoever waits for silence waits for hours, of which there are none.
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

/// Whether packets that were changed on their way are refused with these options.
pub(crate) fn is_authentic(config: &Config) -> bool {
    config.passphrase().is_some() && config.crypto_mode() == CryptoMode::Gcm
}

fn filter(choice: u8) -> &'static str {
    match choice {
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
