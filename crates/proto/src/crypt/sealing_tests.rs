use punctual_crypto::{CipherMode, GcmLayout, Kek, KeyLength, Passphrase};

use super::*;

fn sealing() -> Sealing {
    let salt = [7; 16];
    let passphrase = Passphrase::new("correct horse").expect("a legal length");
    let kek = Kek::derive(&passphrase, &salt, KeyLength::Aes128);
    let suite = Suite { mode: CipherMode::Ctr, layout: GcmLayout::Current, salt, kek };
    let mut chance = Chance::new([1; 32]);
    let key = StreamKey::generate(KeyLength::Aes128, |bytes| chance.fill(bytes));
    let config = Config::default().with_key_refresh_rate(10).expect("in range");
    let config = config.with_key_pre_announce(4).expect("in range");
    Sealing::new(KeyState::Secured, suite, key, chance, SeqNo::new(100), &config)
}

/// Sends the originals `range`, each of which is acknowledged at once.
fn send(sealing: &mut Sealing, range: std::ops::Range<u32>) {
    for number in range {
        let seq = SeqNo::new(number);
        sealing.sent_original(Instant::ORIGIN, seq, seq.next());
    }
}

#[test]
fn a_key_message_is_repeated_ever_more_rarely_and_without_end() {
    let mut sealing = sealing();
    send(&mut sealing, 100..105);
    assert!(!sealing.request_is_due());
    send(&mut sealing, 105..106);
    assert!(sealing.request_is_due());
    let rtt = Duration::from_millis(40);
    let mut now = Instant::from_millis(0);
    let mut intervals = Vec::new();
    for _ in 0..40 {
        assert!(sealing.take_request(now, rtt).is_some());
        assert!(!sealing.request_is_due() && sealing.take_request(now, rtt).is_none());
        let next = sealing.next_request().expect("it is not answered");
        intervals.push((next - now).as_millis());
        now = next;
        sealing.repeat_request();
    }
    assert!(intervals[..11].iter().all(|&interval| interval == 60), "{intervals:?}");
    assert!(intervals.is_sorted());
    assert_eq!(intervals[39], 1_000);
}

#[test]
fn the_next_key_waits_for_the_answer_and_no_other() {
    let mut sealing = sealing();
    send(&mut sealing, 100..150);
    assert_eq!(sealing.flag(SeqNo::new(150)), KeyFlag::Even);
    let message = sealing.take_request(Instant::ORIGIN, Duration::ZERO).expect("due").to_vec();
    for wrong in [&message[..56], &[4, 0, 0, 0], &[]] {
        assert!(!sealing.handle_answer(wrong));
    }
    assert!(sealing.next_request().is_some());
    assert!(sealing.handle_answer(&message));
    assert_eq!(sealing.next_request(), None);
    send(&mut sealing, 150..151);
    assert_eq!(sealing.flag(SeqNo::new(150)), KeyFlag::Even);
    assert_eq!(sealing.flag(SeqNo::new(151)), KeyFlag::Odd);
    assert_eq!(sealing.refreshes(), 1);
}

#[test]
fn no_key_is_announced_as_long_as_the_peer_may_need_the_one_it_replaces() {
    let mut sealing = sealing();
    send(&mut sealing, 100..106);
    let message = sealing.take_request(Instant::ORIGIN, Duration::ZERO).expect("due").to_vec();
    assert!(sealing.handle_answer(&message));
    send(&mut sealing, 106..110);
    assert_eq!(sealing.flag(SeqNo::new(110)), KeyFlag::Odd);
    // Packet 105, under the even key, may still be retransmitted.
    for number in 110..130 {
        sealing.sent_original(Instant::ORIGIN, SeqNo::new(number), SeqNo::new(105));
    }
    assert!(!sealing.request_is_due());
    assert_eq!(sealing.flag(SeqNo::new(105)), KeyFlag::Even);
    send(&mut sealing, 130..131);
    assert!(sealing.request_is_due());
}
