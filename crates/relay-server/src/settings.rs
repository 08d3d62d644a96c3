//! The rules of streams and the options of connections, from the configuration.

use std::time::Duration;

use punctual::{Config, ConfigError, CryptoMode, KeyLength};
use punctual_relay::{SecondPublisher, SlowViewer, Start, StreamRules};
use punctual_relay_access::{Action, Secret};
use punctual_relay_config as config;
use punctual_relay_config::{ListenerSettings, StreamSettings};

/// The rules of a stream with these settings.
pub(crate) fn rules(settings: &StreamSettings) -> StreamRules {
    let most = |number: u32| (number > 0).then_some(number as usize);
    StreamRules {
        second_publisher: match settings.publishers.on_second {
            config::SecondPublisher::Replace => SecondPublisher::Replace,
            config::SecondPublisher::Refuse => SecondPublisher::Refuse,
            config::SecondPublisher::Standby => SecondPublisher::Standby,
        },
        keep_viewers: settings.publishers.keep_viewers,
        start: match settings.viewers.start {
            config::ViewerStart::RandomAccess => Start::RandomAccess,
            config::ViewerStart::Gop => Start::Gop,
            config::ViewerStart::Live => Start::Live,
        },
        slow_viewer: match settings.viewers.slow {
            config::SlowViewer::Skip => SlowViewer::Skip,
            config::SlowViewer::Disconnect => SlowViewer::Disconnect,
        },
        viewer_buffer: settings.viewers.buffer,
        max_viewers: most(settings.viewers.most),
        max_viewers_per_user: most(settings.viewers.most_per_user),
    }
}

/// The options of a connection of callers at this listener, before its stream is known.
///
/// # Errors
///
/// A value is out of the range of its option.
pub(crate) fn listening(listener: &ListenerSettings) -> Result<Config, ConfigError> {
    Config::default()
        .with_latency(listener.latency)?
        .with_group_connect(true)
        .with_peer_idle_timeout(listener.peer_idle_timeout)
}

/// The options of a caller's connection: those of the listener, with what its stream and the
/// decision on the caller say.
///
/// # Errors
///
/// A passphrase is too short or too long, or a value is out of range.
pub(crate) fn accepted(
    listener: &ListenerSettings,
    stream: &StreamSettings,
    action: Action,
    passphrase: Option<&Secret>,
) -> Result<Config, ConfigError> {
    let latency = stream.latency.unwrap_or_default().max(listener.latency);
    let mut config = listening(listener)?.with_latency(latency)?;
    let encryption = &stream.encryption;
    let own = match action {
        Action::Publish => encryption.publish.as_ref(),
        _ => encryption.read.as_ref(),
    };
    let own = own.map(|value| &value.secret);
    if let Some(passphrase) = passphrase.or(own) {
        config = config.with_passphrase(passphrase.expose())?;
    }
    if let Some(length) = encryption.key_length {
        config = config.with_key_length(Some(match length {
            16 => KeyLength::Aes128,
            24 => KeyLength::Aes192,
            _ => KeyLength::Aes256,
        }));
    }
    Ok(match encryption.cipher {
        config::CipherChoice::Auto => config,
        config::CipherChoice::Ctr => config.with_crypto_mode(CryptoMode::Ctr),
        config::CipherChoice::Gcm => config.with_crypto_mode(CryptoMode::Gcm),
    })
}

/// The pauses between attempts to open an end: each twice as long as the one before, with jitter.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(range: config::RetryRange) -> Self {
        Self { first: range.first, longest: range.longest, next: range.first }
    }

    /// The next pause: half to all of the time that is due, so that ends that failed together do
    /// not come back together.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        // Without random numbers the pauses are the shortest ones.
        let share = f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX);
        pause.mul_f64(0.5 + share / 2.0)
    }

    /// Notes an end that was open for this long: after good media the first pause is due again.
    pub(crate) fn was_open(&mut self, time: Duration) {
        if time >= GOOD {
            self.next = self.first;
        }
    }
}

/// The time of good media after which the first pause is due again.
const GOOD: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_good_media() {
        let range =
            config::RetryRange { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        let mut backoff = Backoff::new(range);
        for due in [1, 2, 4, 8, 16, 30, 30] {
            let pause = backoff.pause();
            let due = Duration::from_secs(due);
            assert!(pause >= due / 2 && pause <= due, "{pause:?} of {due:?}");
        }
        backoff.was_open(Duration::from_secs(59));
        assert!(backoff.pause() >= Duration::from_secs(15));
        backoff.was_open(GOOD);
        assert!(backoff.pause() <= Duration::from_secs(1));
    }
}
