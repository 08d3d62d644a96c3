//! Files: streams of bytes, and messages of any size. Nothing is lost, duplicated or changed, and
//! nothing is delivered after a gap.

use std::cell::Cell;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use punctual_netem::{LinkConfig, Loss, Reorder};
use punctual_proto::{
    BufferSize, CloseReason, Config, CryptoMode, RecvError, RejectReason, SendError, SendOptions,
    Transmission,
};
use punctual_units::Bitrate;
use punctual_wire::{Control, DropRequest, Extension, HsFlags, MsgNo, SeqNo, Timestamp};

use crate::datagram::{Kind, edit_handshake, forged, kind, noise};
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, link, lossy};

fn messages() -> Config {
    Config::file().with_transmission(Transmission::Messages)
}

/// Random contents of a file.
pub(crate) fn contents(len: usize, seed: u64) -> Bytes {
    Bytes::from(noise(&mut Random(seed), len))
}

pub(crate) fn connected(seed: u64, link: LinkConfig, config: &Config) -> Pair {
    let mut pair = Pair::symmetric(seed, link);
    pair.connect(config.clone(), config.clone());
    pair
}

/// Submits all of `data` in pieces of up to `piece` bytes, and waits for room in between.
pub(crate) fn write_all(pair: &mut Pair, data: &Bytes, mut piece: impl FnMut() -> usize) {
    let mut rest = data.clone();
    while !rest.is_empty() {
        let mut next = rest.split_to(piece().clamp(1, rest.len()));
        while !next.is_empty() {
            if pair.write(Side::Caller, &mut next) == Err(SendError::Full) {
                let before = pair.caller.writable;
                let has_room = pair.run_while(SECS(600), |pair| pair.caller.writable == before);
                assert!(has_room, "there is no room in ten minutes");
            }
        }
    }
}

/// All bytes that the listener has read.
pub(crate) fn read(pair: &Pair) -> Bytes {
    let mut whole = BytesMut::new();
    for delivery in &pair.listener.received {
        whole.extend_from_slice(&delivery.message.payload);
    }
    whole.freeze()
}

/// Runs until the listener has read `len` bytes.
pub(crate) fn run_until_read(pair: &mut Pair, len: usize) {
    let (counted, bytes) = (Cell::new(0), Cell::new(0));
    let whole = pair.run_while(SECS(600), |pair| {
        let received = &pair.listener.received;
        let new = received[counted.replace(received.len())..].iter();
        bytes.set(bytes.get() + new.map(|it| it.message.payload.len()).sum::<usize>());
        bytes.get() < len
    });
    assert!(whole, "only {} of {len} bytes arrived in ten minutes", bytes.get());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_byte_stream_arrives_unchanged_over_any_link(
        seed in any::<u64>(),
        len in 1usize..400_000,
        pieces in 1u32..30_000,
        loss in 0.0..0.1,
        late in 0.0..0.1,
        double in 0.0..0.05,
    ) {
        let link = link()
            .with_loss(Loss::Random(loss)).expect("a share")
            .with_reorder(Reorder::Late { share: late, by: MS(7) }).expect("a share")
            .with_duplicate(double).expect("a share");
        let mut pair = connected(seed, link, &Config::file());
        let data = contents(len, seed);
        let mut chance = Random(seed);
        write_all(&mut pair, &data, || 1 + chance.below(pieces) as usize);
        pair.close(Side::Caller);
        prop_assert!(pair.run_while(SECS(300), |pair| pair.listener.closed().is_none()
            || pair.caller.closed().is_none()));
        prop_assert!(read(&pair) == data, "{} bytes of {len}", read(&pair).len());
        prop_assert_eq!(pair.caller.closed(), Some(&CloseReason::Local));
    }

    #[test]
    fn messages_of_any_size_arrive_complete_and_in_order(
        seed in any::<u64>(),
        sizes in prop::collection::vec(1usize..60_000, 1..20),
        loss in 0.0..0.1,
    ) {
        let mut pair = connected(seed, lossy(loss), &messages());
        let sent: Vec<Bytes> =
            sizes.iter().zip(seed..).map(|(&len, seed)| contents(len, seed)).collect();
        for message in &sent {
            let options = SendOptions { in_order: true, ..SendOptions::default() };
            prop_assert_eq!(pair.send(Side::Caller, message.clone(), options), Ok(()));
        }
        pair.close(Side::Caller);
        prop_assert!(pair.run_while(SECS(300), |pair| pair.listener.closed().is_none()));
        let received: Vec<Bytes> =
            pair.listener.received.iter().map(|it| it.message.payload.clone()).collect();
        prop_assert!(received == sent, "{} messages", received.len());
    }
}

#[test]
fn a_message_without_the_in_order_flag_overtakes_an_incomplete_one() {
    for (in_order, overtaking, first) in [(true, true, 0), (false, true, 1), (false, false, 0)] {
        let mut pair = connected(1, link(), &messages().with_overtaking(overtaking));
        let mut packets = 0;
        pair.drop_where(move |side, datagram| {
            packets += u32::from(side == Side::Caller && kind(datagram) == Kind::Data);
            packets == 2 && kind(datagram) == Kind::Data
        });
        let sent = [contents(5_000, 1), contents(5_000, 2)];
        for message in &sent {
            let options = SendOptions { in_order, ..SendOptions::default() };
            pair.send(Side::Caller, message.clone(), options).expect("room");
        }
        pair.run_for(SECS(1));
        let received: Vec<&Bytes> =
            pair.listener.received.iter().map(|it| &it.message.payload).collect();
        assert!(received == [&sent[first], &sent[1 - first]], "{in_order} {overtaking}");
    }
}

/// The drop requests are lost too. The next messages are beyond the peer's buffer.
#[test]
fn more_messages_than_the_buffer_holds_may_expire_in_an_outage() {
    for expired in [10, 40, 100] {
        let small = messages().with_receive_buffer(BufferSize::Packets(64));
        let mut pair = connected(1, link(), &small);
        let ttl = SendOptions { ttl: Some(MS(120)), in_order: true, ..SendOptions::default() };
        let first = contents(10_000, 1);
        pair.send(Side::Caller, first.clone(), ttl).expect("room");
        pair.run_for(MS(100));
        pair.drop_where(|side, _| side == Side::Caller);
        for seed in 0..expired {
            pair.send(Side::Caller, contents(10_000, seed), ttl).expect("room");
            pair.run_for(MS(40));
        }
        pair.run_for(MS(200));
        pair.untap();
        let last = contents(10_000, 2);
        pair.send(Side::Caller, last.clone(), SendOptions::default()).expect("room");
        pair.run_for(SECS(5));
        let received: Vec<&Bytes> =
            pair.listener.received.iter().map(|it| &it.message.payload).collect();
        assert!(received == [&first, &last], "{expired} expired, {} received", received.len());
    }
}

#[test]
fn an_expired_message_is_discarded_and_the_next_ones_are_delivered() {
    for seed in 0..4 {
        let mut pair = connected(seed, link(), &messages());
        // The first message expires when half of it is sent.
        let slow = link().with_rate(Some(Bitrate::from_mbps(1)));
        pair.set_link(Side::Caller, slow);
        let ttl = SendOptions { ttl: Some(MS(120)), in_order: true, ..SendOptions::default() };
        pair.send(Side::Caller, contents(400_000, 1), ttl).expect("room");
        let rest = [contents(30_000, 2), contents(10, 3)];
        for message in &rest {
            let options = SendOptions { in_order: true, ..SendOptions::default() };
            pair.send(Side::Caller, message.clone(), options).expect("room");
        }
        pair.run_for(SECS(20));
        let received: Vec<&Bytes> =
            pair.listener.received.iter().map(|it| &it.message.payload).collect();
        assert!(received == [&rest[0], &rest[1]], "{} messages", received.len());
        assert!(pair.statistics(Side::Caller).packets_send_dropped > 0);
        let listener = pair.statistics(Side::Listener);
        assert!(listener.packets_receive_dropped > 0);
        assert_eq!(listener.receive_buffer_packets, 0);
    }
}

/// Found by a fuzzed session: the peer acknowledges sequence numbers that were announced as dropped
/// and never sent. Its ACKs were ignored as invalid, the window stayed closed, and everything that
/// had arrived was retransmitted endlessly.
#[test]
fn a_message_that_expires_in_a_full_window_delays_no_later_one() {
    let mut pair = connected(1, link(), &messages());
    let mut acks = 0;
    pair.drop_where(move |side, datagram| {
        let is_ack = side == Side::Listener && kind(datagram) == Kind::Ack;
        acks += u32::from(is_ack);
        // The ACKs before the drop request.
        is_ack && acks <= 2
    });
    let ordered = SendOptions { in_order: true, ..SendOptions::default() };
    let ttl = SendOptions { ttl: Some(MS(5)), ..ordered };
    let sent = [contents(16 * 1_456, 1), contents(20 * 1_456, 2), contents(10, 3)];
    // The first message fills the congestion window of 16 packets for a round trip.
    for (message, options) in sent.iter().zip([ordered, ttl, ordered]) {
        pair.send(Side::Caller, message.clone(), options).expect("room");
    }
    pair.run_for(SECS(2));
    let received: Vec<&Bytes> =
        pair.listener.received.iter().map(|it| &it.message.payload).collect();
    assert!(received == [&sent[0], &sent[2]], "{} messages", received.len());
    let sender = pair.statistics(Side::Caller);
    assert_eq!((sender.packets_send_dropped, sender.packets_ignored), (20, 0));
    assert_eq!((sender.packets_sent, sender.packets_retransmitted), (17, 0));
}

#[test]
fn a_reader_that_stops_holds_the_sender_back_and_can_continue() {
    for seed in 0..4 {
        let config = Config::file()
            .with_receive_buffer(BufferSize::Packets(64))
            .with_send_buffer(BufferSize::Packets(128));
        let mut pair = connected(seed, lossy(0.01), &config);
        pair.listener.reads = false;
        let data = contents(1_000_000, seed);
        let mut rest = data.clone();
        while pair.write(Side::Caller, &mut rest).is_ok() {}
        pair.run_for(SECS(30));
        while pair.write(Side::Caller, &mut rest).is_ok() {}
        assert_eq!(pair.statistics(Side::Listener).receive_buffer_packets, 64);
        assert_eq!(pair.write(Side::Caller, &mut rest), Err(SendError::Full));
        let taken = data.len() - rest.len();
        assert_eq!(taken, (64 + 128) * 1_456, "64 packets there, 128 here");
        let sent = pair.statistics(Side::Caller).packets_sent;
        pair.run_for(SECS(60));
        let sent = pair.statistics(Side::Caller).packets_sent - sent;
        assert!(sent < 20, "{sent} packets sent into a full buffer in a minute");
        assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
        pair.read(Side::Listener);
        write_all(&mut pair, &rest, || usize::MAX);
        run_until_read(&mut pair, data.len());
        assert!(read(&pair) == data, "not the same bytes");
    }
}

#[test]
fn closing_waits_until_everything_has_arrived() {
    let slow = lossy(0.01).with_rate(Some(Bitrate::from_mbps(2)));
    let mut pair = connected(1, slow, &Config::file());
    let data = contents(4_000_000, 1);
    write_all(&mut pair, &data, || usize::MAX);
    pair.close(Side::Caller);
    assert_eq!(
        pair.write(Side::Caller, &mut data.clone()),
        Err(SendError::Closed(CloseReason::Local))
    );
    assert!(pair.run_while(SECS(180), |pair| pair.listener.closed().is_none()));
    assert!(pair.elapsed() > SECS(15), "2 Mb/s carry 4 MB in 16 s");
    assert!(read(&pair) == data, "not the same bytes");
    assert_eq!(pair.listener.closed(), Some(&CloseReason::Peer));
}

#[test]
fn the_end_of_the_linger_cuts_the_stream_off() {
    let slow = link().with_rate(Some(Bitrate::from_mbps(2)));
    let mut pair = connected(1, slow, &Config::file().with_linger(SECS(5)));
    let data = contents(4_000_000, 1);
    write_all(&mut pair, &data, || usize::MAX);
    let start = pair.elapsed();
    pair.close(Side::Caller);
    assert!(pair.run_while(SECS(180), |pair| pair.caller.closed().is_none()));
    assert_eq!(pair.elapsed() - start, SECS(5));
    pair.run_for(SECS(1));
    let received = read(&pair);
    assert!(received.len() > 900_000 && received.len() < 1_500_000, "{}", received.len());
    assert!(received == data.slice(..received.len()), "not the same bytes");
}

#[test]
fn an_abort_sends_a_shutdown_at_once_despite_buffered_data() {
    for closes_first in [false, true] {
        let slow = link().with_rate(Some(Bitrate::from_mbps(2)));
        let mut pair = connected(1, slow, &Config::file());
        write_all(&mut pair, &contents(4_000_000, 1), || usize::MAX);
        if closes_first {
            pair.close(Side::Caller);
            pair.run_for(SECS(1));
        }
        assert_eq!(pair.caller.closed(), None);
        pair.abort(Side::Caller);
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Local));
        // Packets in the queue of the link arrive first.
        let heard = pair.run_while(SECS(2), |pair| pair.listener.closed().is_none());
        assert!(heard && pair.listener.closed() == Some(&CloseReason::Peer));
        assert!(read(&pair).len() < 1_500_000);
    }
}

#[test]
fn nothing_is_delivered_after_a_gap_and_the_reader_gets_an_error() {
    for config in [Config::file(), messages()] {
        let mut pair = connected(1, link(), &config);
        let mut packets = 0;
        pair.drop_where(move |side, datagram| {
            packets += u32::from(side == Side::Caller && kind(datagram) == Kind::Data);
            side == Side::Caller && (packets == 21 || kind(datagram) == Kind::Retransmission)
        });
        let data = contents(40 * 1_456, 1);
        let mut rest = data.clone();
        for _ in 0..20 {
            let options = SendOptions { in_order: true, ..SendOptions::default() };
            let piece = rest.split_to(2 * 1_456);
            pair.send(Side::Caller, piece, options).expect("room");
        }
        pair.run_for(MS(100));
        pair.release(Side::Caller);
        pair.run_for(SECS(1));
        assert!(read(&pair) == data.slice(..20 * 1_456), "{} bytes", read(&pair).len());
        assert_eq!(pair.listener.closed(), Some(&CloseReason::Peer));
        let now = pair.listener.local(pair.now);
        let id = pair.listener.connection.expect("a connection");
        let mut connection = pair.listener.endpoint.connection(now, id).expect("not released");
        assert_eq!(connection.recv(), Err(RecvError::Truncated));
    }
}

#[test]
fn a_drop_request_makes_no_gap_in_a_byte_stream() {
    let mut pair = connected(1, link(), &Config::file());
    let data = contents(200_000, 1);
    let dest = pair.info(Side::Listener).socket_id;
    let remote = pair.caller.address;
    let mut first = None;
    pair.drop_where(move |side, datagram| {
        let is_data = side == Side::Caller && kind(datagram) == Kind::Data;
        is_data && *first.get_or_insert(true) && {
            first = Some(false);
            true
        }
    });
    write_all(&mut pair, &data, || usize::MAX);
    pair.run_for(MS(11));
    for msgno in [MsgNo::CONTROL, MsgNo::FIRST] {
        for offset in 0..100 {
            let isn = pair.listener.received.first().map_or(SeqNo::new(0), |it| it.message.seq);
            let request = DropRequest { msgno, first: isn, last: isn.plus(offset) };
            let datagram = forged(dest, Timestamp::from_micros(1), Control::DropRequest(request));
            pair.inject(Side::Listener, remote, datagram);
        }
    }
    run_until_read(&mut pair, data.len());
    assert!(read(&pair) == data, "not the same bytes");
}

#[test]
fn ends_with_different_transmission_modes_refuse_each_other() {
    use Transmission::{Live, Messages, Stream};
    let config = |kind| match kind {
        Live => Config::default(),
        other => Config::file().with_transmission(other),
    };
    for (caller, listener, reason) in [
        (Stream, Live, RejectReason::MESSAGE_API),
        (Live, Stream, RejectReason::MESSAGE_API),
        (Stream, Messages, RejectReason::MESSAGE_API),
        (Messages, Stream, RejectReason::MESSAGE_API),
        (Messages, Live, RejectReason::CONGESTION),
        (Live, Messages, RejectReason::CONGESTION),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.call(config(caller), config(listener));
        pair.run_for(SECS(1));
        let closed = pair.caller.closed();
        assert_eq!(closed, Some(&CloseReason::Rejected(reason)), "{caller:?} to {listener:?}");
    }
}

#[test]
fn a_listener_of_either_file_mode_adopts_the_callers_mode() {
    use Transmission::{Live, Messages, Stream};
    let either = |kind| Config::file().with_transmission(kind).with_either_file_mode(true);
    for (caller, listener) in
        [(Stream, Messages), (Messages, Stream), (Stream, Stream), (Messages, Messages)]
    {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(Config::file().with_transmission(caller), either(listener));
        for side in [Side::Caller, Side::Listener] {
            assert_eq!(pair.info(side).transmission, caller);
        }
        // Only a byte stream may be split anywhere.
        let mut data = contents(10_000, 1);
        assert_eq!(pair.write(Side::Caller, &mut data).is_ok(), caller == Stream);
    }
    // Live and file mode refuse each other.
    for (caller, listener) in [(Config::default(), either(Messages)), (messages(), either(Live))] {
        let mut pair = Pair::symmetric(1, link());
        pair.call(caller, listener);
        pair.run_for(SECS(1));
        let refused = CloseReason::Rejected(RejectReason::CONGESTION);
        assert_eq!(pair.caller.closed(), Some(&refused));
    }
}

#[test]
fn both_ends_must_want_frames_in_a_stream_of_bytes() {
    use Transmission::{Messages, Stream};
    let config = |kind, framing| Config::file().with_transmission(kind).with_framing(framing);
    for (kind, [caller, listener], agreed) in [
        (Stream, [true, true], true),
        (Stream, [true, false], false),
        (Stream, [false, true], false),
        (Messages, [true, true], false),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(config(kind, caller), config(kind, listener));
        for side in [Side::Caller, Side::Listener] {
            assert_eq!(pair.info(side).framing, agreed, "{kind:?}, {caller} and {listener}");
        }
    }
}

#[test]
fn both_ends_must_want_to_resume_a_stream_with_frames() {
    let config = |framing, resume| Config::file().with_framing(framing).with_resume(resume);
    for (caller, listener, agreed) in [
        ([true, true], [true, true], true),
        ([true, true], [true, false], false),
        ([true, false], [true, true], false),
        ([true, true], [false, true], false),
        ([false, true], [true, true], false),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(config(caller[0], caller[1]), config(listener[0], listener[1]));
        for side in [Side::Caller, Side::Listener] {
            assert_eq!(pair.info(side).resumable, agreed, "{caller:?} and {listener:?}");
        }
    }
}

#[test]
fn an_answer_may_omit_the_stream_flag() {
    let mut pair = Pair::symmetric(1, link());
    pair.tap(|_, _, datagram| {
        vec![edit_handshake(datagram, |handshake| {
            for extension in &mut handshake.extensions {
                if let Extension::HsRsp(hs) = extension {
                    hs.flags = HsFlags::from_bits(hs.flags.bits() & !HsFlags::STREAM.bits());
                }
            }
        })]
    });
    pair.connect(Config::file(), Config::file());
    let data = contents(10_000, 1);
    write_all(&mut pair, &data, || usize::MAX);
    run_until_read(&mut pair, data.len());
}

/// A file's options with a passphrase.
fn secret(config: Config, passphrase: &str, mode: CryptoMode) -> Config {
    config.with_passphrase(passphrase).expect("a legal length").with_crypto_mode(mode)
}

#[test]
fn encrypted_files_arrive_complete_over_a_lossy_link() {
    for mode in [CryptoMode::Ctr, CryptoMode::Gcm] {
        let config = secret(Config::file(), "correct horse", mode);
        let mut pair = connected(3, lossy(0.03), &config);
        let data = contents(1_000_000, 3);
        write_all(&mut pair, &data, || usize::MAX);
        run_until_read(&mut pair, data.len());
        assert!(read(&pair) == data, "{mode:?}: not the same bytes");
        let config = secret(messages(), "correct horse", mode);
        let mut pair = connected(4, lossy(0.03), &config);
        let sent = [contents(300_000, 4), contents(1, 5), contents(1_456, 6)];
        for message in &sent {
            let options = SendOptions { in_order: true, ..SendOptions::default() };
            pair.send(Side::Caller, message.to_vec(), options).expect("room");
        }
        run_until_read(&mut pair, 301_457);
        let read: Vec<_> = pair.listener.received.iter().map(|it| &it.message.payload).collect();
        assert!(read.iter().copied().eq(&sent), "{mode:?}: not the same messages");
    }
}

#[test]
fn a_byte_stream_without_common_keys_is_always_refused() {
    let lax = |passphrase| {
        secret(Config::file(), passphrase, CryptoMode::Auto).with_enforced_encryption(false)
    };
    for (caller, listener, reason) in [
        (lax("correct horse"), lax("battery staple"), RejectReason::BAD_SECRET),
        (lax("correct horse"), lax(""), RejectReason::UNSECURE),
        (lax(""), lax("correct horse"), RejectReason::UNSECURE),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.call(caller, listener);
        pair.run_for(SECS(1));
        assert_eq!(pair.caller.closed(), Some(&CloseReason::Rejected(reason)));
    }
}

#[test]
fn a_packet_filter_works_for_byte_streams_but_not_for_long_messages() {
    let filtered = |config: Config| config.with_packet_filter("fec,cols:10").expect("a filter");
    let mut pair = connected(9, lossy(0.02), &filtered(Config::file()));
    let data = contents(1_000_000, 9);
    write_all(&mut pair, &data, || usize::MAX);
    run_until_read(&mut pair, data.len());
    assert!(read(&pair) == data, "not the same bytes");
    let statistics = pair.statistics(Side::Listener);
    assert!(statistics.packets_filter_supplied > 0, "{statistics:?}");

    let mut pair = Pair::symmetric(1, link());
    pair.call(filtered(messages()), messages());
    pair.run_for(SECS(1));
    assert_eq!(pair.caller.closed(), None, "the caller's own filter is ignored");
    let mut pair = Pair::symmetric(1, link());
    pair.call(filtered(Config::default()), messages().with_tsbpd(false));
    pair.run_for(SECS(1));
    assert_eq!(
        pair.caller.closed(),
        Some(&CloseReason::Rejected(RejectReason::CONGESTION)),
        "live and file mode are compared first"
    );
}

#[test]
fn messages_of_a_wrong_size_or_mode_are_refused() {
    let small = messages().with_send_buffer(BufferSize::Packets(32));
    let mut pair = connected(1, link(), &small);
    let max = pair.info(Side::Caller).max_payload;
    assert_eq!(max, 32 * 1_456);
    let refused = pair.send(Side::Caller, vec![0; max + 1], SendOptions::default());
    assert_eq!(refused, Err(SendError::Size { size: max + 1, max }));
    assert_eq!(pair.write(Side::Caller, &mut Bytes::from("x")), Err(SendError::NoStream));
    assert_eq!(pair.send(Side::Caller, vec![7; max], SendOptions::default()), Ok(()));
    pair.run_for(SECS(1));
    assert_eq!(pair.listener.received[0].message.payload.len(), max);
    // The peer's buffer limits the size of a message too, since a longer one would never be
    // complete. At libsrt it is one packet less than its window.
    let mut pair = Pair::symmetric(1, link());
    pair.connect(messages(), messages().with_receive_buffer(BufferSize::Packets(40)));
    assert_eq!(pair.info(Side::Caller).max_payload, 39 * 1_456);
}

#[test]
fn the_end_of_a_piece_is_acknowledged_at_once() {
    let mut pair = connected(1, link(), &Config::file());
    pair.run_for(MS(500));
    for len in [10, 1_456 + 10, 5 * 1_456 + 1] {
        let mut data = contents(len, 1);
        pair.write(Side::Caller, &mut data).expect("room");
        pair.run_for(MS(21));
        assert_eq!(pair.statistics(Side::Caller).send_buffer_packets, 0, "{len} bytes");
        pair.run_for(MS(100));
    }
}

#[test]
fn lost_packets_at_the_end_are_retransmitted_after_a_timeout() {
    let mut pair = connected(1, link(), &Config::file());
    write_all(&mut pair, &contents(50_000, 1), || usize::MAX);
    run_until_read(&mut pair, 50_000);
    pair.run_for(SECS(1));
    let mut data = contents(3_000, 2);
    pair.drop_where(|side, datagram| side == Side::Caller && kind(datagram) == Kind::Data);
    pair.write(Side::Caller, &mut data).expect("room");
    pair.run_for(MS(400));
    assert_eq!(read(&pair).len(), 53_000);
    assert_eq!(pair.statistics(Side::Caller).packets_retransmitted, 3);
}
