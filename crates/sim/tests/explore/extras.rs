//! Additions of a seed to the options of a stream: keys, a packet filter, another address. They are
//! drawn from a separate generator, so that a seed's links and loads never change.

use std::time::Duration;

use punctual_proto::{Config, CryptoMode, KeyLength, MaxBandwidth};

use punctual_testbed::Random;

/// How the two ends' keys fit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Keys {
    /// Nothing is encrypted.
    #[default]
    None,
    /// Both have the same passphrase.
    Same,
    /// The passphrases differ, and an end insists: there is no connection.
    Refused,
    /// The passphrases differ, and no end insists: nothing can be read.
    Unreadable,
}

/// Changes of a host's address.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// Which host moves.
    pub host: usize,
    /// When, and to which port.
    pub at: Vec<(Duration, u16)>,
}

/// Gives the two ends of a stream keys and a filter, or not.
pub fn draw(chance: &mut Random, ends: &mut [Config; 2]) -> Keys {
    let keys = if chance.one_in(2) { draw_keys(chance, ends) } else { Keys::None };
    if chance.one_in(3) {
        draw_filter(chance, ends);
    }
    keys
}

/// At most one host moves: two that move within a round trip lose each other.
pub fn draw_moves(chance: &mut Random, hosts: usize, until: Duration) -> Moves {
    if !chance.one_in(3) {
        return Moves::default();
    }
    let host = chance.below(hosts as u32) as usize;
    let latest = until.as_millis() as u32;
    let moves = (0..=chance.below(3)).map(|i| (chance.millis(latest), 20_000 + i as u16));
    let mut at: Vec<_> = moves.collect();
    at.sort();
    Moves { host, at }
}

fn draw_keys(chance: &mut Random, ends: &mut [Config; 2]) -> Keys {
    let lengths = [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256];
    let length = chance.pick(&lengths);
    let mode = chance.pick(&[CryptoMode::Auto, CryptoMode::Ctr, CryptoMode::Gcm]);
    let rate = chance.pick(&[1 << 24, 1_000, 200, 40]);
    let differ = chance.one_in(8);
    let insist = chance.one_in(2);
    for (end, passphrase) in ends.iter_mut().zip(["correct horse", "battery staple"]) {
        let passphrase = if differ { passphrase } else { "correct horse" };
        *end = encrypted(std::mem::take(end), passphrase, length, mode, rate)
            .with_enforced_encryption(!differ || insist);
    }
    match (differ, insist) {
        (false, _) => Keys::Same,
        (true, true) => Keys::Refused,
        (true, false) => Keys::Unreadable,
    }
}

/// Options with a passphrase and refreshes each `rate` packets.
fn encrypted(
    config: Config,
    passphrase: &str,
    length: KeyLength,
    mode: CryptoMode,
    rate: u32,
) -> Config {
    config
        .with_passphrase(passphrase)
        .and_then(|config| config.with_key_refresh_rate(rate))
        .and_then(|config| config.with_key_pre_announce(rate / 4))
        .expect("in range")
        .with_key_length(Some(length))
        .with_crypto_mode(mode)
}

/// Options with a passphrase that both ends have, or without.
pub fn with_shared_keys(chance: &mut Random, config: Config) -> (Config, Keys) {
    if !chance.one_in(3) {
        return (config, Keys::None);
    }
    let length = chance.pick(&[KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256]);
    let mode = chance.pick(&[CryptoMode::Auto, CryptoMode::Ctr, CryptoMode::Gcm]);
    let rate = chance.pick(&[1 << 24, 1_000, 200, 40]);
    (encrypted(config, "correct horse", length, mode, rate), Keys::Same)
}

/// One end or both wish it.
fn draw_filter(chance: &mut Random, ends: &mut [Config; 2]) {
    let cols = 2 + chance.below(10);
    let rows = chance.pick(&[1, 1, 2, 5, -3, -6]);
    let layout = chance.pick(&["staircase", "even"]);
    let arq = chance.pick(&["always", "onreq", "never"]);
    let filter = format!("fec,cols:{cols},rows:{rows},layout:{layout},arq:{arq}");
    let both = chance.one_in(2);
    for (end, wants) in ends.iter_mut().zip([true, both]) {
        let mut config = std::mem::take(end);
        if wants {
            config = config.with_packet_filter(&filter).expect("a filter");
        }
        // The filter may add more than a limit leaves above the input.
        config = config.with_max_bandwidth(MaxBandwidth::Unlimited);
        if arq != "always" {
            // Nothing is retransmitted on a NAK, so a receiver without drops would wait for ever,
            // and so would a sender that drops nothing, once a whole buffer was lost.
            config = config.with_tsbpd(true).with_too_late_drop(true);
            config = config.with_send_drop_delay(Some(Duration::ZERO));
        }
        *end = config;
    }
}
