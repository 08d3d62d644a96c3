//! Files: streams of bytes and messages of any size. Nothing is lost, doubled or changed, and
//! nothing is delivered behind a gap.

use std::cell::Cell;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use punctual_netem::{LinkConfig, Loss, QueueLimit, Reorder};
use punctual_proto::{
    BufferSize, CloseReason, Config, CryptoMode, MaxBandwidth, RecvError, RejectReason, SendError,
    SendOptions, Transmission,
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

/// A file's contents: no part of it is like another.
fn contents(len: usize, seed: u64) -> Bytes {
    Bytes::from(noise(&mut Random(seed), len))
}

fn connected(seed: u64, link: LinkConfig, config: &Config) -> Pair {
    let mut pair = Pair::symmetric(seed, link);
    pair.connect(config.clone(), config.clone());
    pair
}

/// Submits all of `data` in pieces of up to `piece` bytes, as there is room for them.
fn write_all(pair: &mut Pair, data: &Bytes, mut piece: impl FnMut() -> usize) {
    let mut rest = data.clone();
    while !rest.is_empty() {
        let mut next = rest.split_to(piece().clamp(1, rest.len()));
        while !next.is_empty() {
            if pair.write(Side::Caller, &mut next) == Err(SendError::Full) {
                let before = pair.caller.writable;
                let told = pair.run_while(SECS(600), |pair| pair.caller.writable == before);
                assert!(told, "there is no room in ten minutes");
            }
        }
    }
}

/// Everything that the listener read, in one piece.
fn read(pair: &Pair) -> Bytes {
    let mut whole = BytesMut::new();
    for delivery in &pair.listener.received {
        whole.extend_from_slice(&delivery.message.payload);
    }
    whole.freeze()
}

/// Runs until the listener has read `len` bytes.
fn run_until_read(pair: &mut Pair, len: usize) {
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
    fn a_stream_arrives_byte_by_byte_whatever_the_link_does(
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
    fn messages_of_any_size_arrive_whole_and_in_order(
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
fn a_message_that_need_not_be_in_order_overtakes_one_that_lost_a_packet() {
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

/// The requests to forget them are lost with them. Those that follow go beyond the peer's buffer.
#[test]
fn more_messages_than_the_buffer_holds_may_expire_while_the_link_is_gone() {
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
fn a_message_whose_time_is_over_leaves_nothing_and_the_next_ones_come() {
    for seed in 0..4 {
        let mut pair = connected(seed, link(), &messages());
        // Half of the first message gets through before the link is cut, and it expires meanwhile.
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

/// A fuzzed session found it: the peer then acknowledges numbers that were announced as given up
/// and never sent. Its ACKs counted as nonsense, the window stayed closed, and all that had arrived
/// was sent again for ever.
#[test]
fn a_message_that_expires_behind_a_full_window_delays_no_later_one() {
    let mut pair = connected(1, link(), &messages());
    let mut acks = 0;
    pair.drop_where(move |side, datagram| {
        let is_ack = side == Side::Listener && kind(datagram) == Kind::Ack;
        acks += u32::from(is_ack);
        // Those before the drop request came.
        is_ack && acks <= 2
    });
    let ordered = SendOptions { in_order: true, ..SendOptions::default() };
    let ttl = SendOptions { ttl: Some(MS(5)), ..ordered };
    let sent = [contents(16 * 1_456, 1), contents(20 * 1_456, 2), contents(10, 3)];
    // What is sent first fills the congestion window of 16 packets for a round trip.
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
fn a_reader_that_stops_holds_the_sender_back_and_goes_on_where_it_was() {
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
fn closing_waits_until_all_has_arrived() {
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
fn a_linger_that_is_over_cuts_the_stream_off() {
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
fn an_abort_says_farewell_at_once_whatever_is_buffered() {
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
        // What is in the link's queue comes before it.
        let heard = pair.run_while(SECS(2), |pair| pair.listener.closed().is_none());
        assert!(heard && pair.listener.closed() == Some(&CloseReason::Peer));
        assert!(read(&pair).len() < 1_500_000);
    }
}

#[test]
fn behind_a_gap_nothing_is_delivered_and_the_reader_is_told() {
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
        assert_eq!(pair.listener.endpoint.recv(now, id), Err(RecvError::Truncated));
    }
}

#[test]
fn a_drop_request_makes_no_hole_in_a_stream() {
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
fn ends_that_do_not_send_alike_refuse_each_other() {
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
fn a_listener_of_either_file_mode_carries_files_as_the_caller_does() {
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
        // Only a stream may be cut anywhere.
        let mut data = contents(10_000, 1);
        assert_eq!(pair.write(Side::Caller, &mut data).is_ok(), caller == Stream);
    }
    // A live stream is no file, and a live listener takes none.
    for (caller, listener) in [(Config::default(), either(Messages)), (messages(), either(Live))] {
        let mut pair = Pair::symmetric(1, link());
        pair.call(caller, listener);
        pair.run_for(SECS(1));
        let refused = CloseReason::Rejected(RejectReason::CONGESTION);
        assert_eq!(pair.caller.closed(), Some(&refused));
    }
}

#[test]
fn an_answer_need_not_say_again_that_a_stream_is_meant() {
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
fn encrypted_streams_and_messages_arrive_whole_over_a_link_that_loses() {
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
fn a_packet_filter_serves_a_stream_but_not_long_messages() {
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
    assert_eq!(pair.caller.closed(), None, "its own wish is passed over");
    let mut pair = Pair::symmetric(1, link());
    pair.call(filtered(Config::default()), messages().with_tsbpd(false));
    pair.run_for(SECS(1));
    assert_eq!(
        pair.caller.closed(),
        Some(&CloseReason::Rejected(RejectReason::CONGESTION)),
        "live and file are told apart first"
    );
}

#[test]
fn sizes_and_kinds_that_do_not_fit_are_refused_in_words() {
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
    // What the peer can hold bounds a message as well: it would never be whole there. If it is
    // libsrt, that is a packet less than its window.
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
fn what_is_lost_without_anything_behind_it_is_sent_again_after_a_time() {
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

/// 100 Mb/s with a queue of 1,000 packets, in ms and as a share of packets that are lost.
fn line(round_trip: u64, loss: f64) -> LinkConfig {
    LinkConfig::default()
        .with_delay(MS(round_trip) / 2)
        .with_rate(Some(Bitrate::from_mbps(100)))
        .with_queue(QueueLimit::Packets(1_000))
        .with_overhead(28)
        .with_loss(Loss::Random(loss))
        .expect("a share")
}

/// How fast a file of `len` bytes gets over, payload only.
fn goodput(mut pair: Pair, seed: u64, len: usize) -> Bitrate {
    let data = contents(len, seed);
    let start = pair.elapsed();
    write_all(&mut pair, &data, || usize::MAX);
    run_until_read(&mut pair, len);
    let time = pair.elapsed() - start;
    assert!(read(&pair) == data, "not the same bytes");
    let statistics = pair.statistics(Side::Caller);
    let rate = Bitrate::of(len as u64, time);
    println!(
        "seed {seed}: {rate}, {} sent again of {}",
        statistics.packets_retransmitted, statistics.packets_sent
    );
    rate
}

/// 200 ms and 0.1 %: what an intercontinental line looks like.
#[test]
fn a_long_lossy_link_carries_as_much_as_with_libsrts_algorithm() {
    for seed in 0..2 {
        let pair = connected(seed, line(200, 0.001), &Config::file());
        let rate = goodput(pair, seed, 200_000_000);
        assert!(rate > Bitrate::from_mbps(50), "{rate}");
    }
}

/// Hosts that look at the network once in 200 µs get packets in batches of one time.
#[test]
fn a_link_that_loses_1_percent_carries_a_file_at_75_percent_of_its_rate() {
    for (grain, seed) in [(None, 0), (None, 1), (Some(MS(1) / 5), 2), (Some(MS(1) / 5), 3)] {
        let mut pair = connected(seed, line(30, 0.01), &Config::file());
        pair.grain = grain;
        let rate = goodput(pair, seed, 50_000_000);
        assert!(rate > Bitrate::from_mbps(75), "{rate} with looks each {grain:?}");
    }
}

/// What a window lets go there comes at one time, and so do both packets of a pair.
#[test]
fn a_line_without_a_limit_that_loses_packets_carries_a_small_file_soon() {
    for seed in 0..4 {
        let pair = connected(seed, line(30, 0.01).with_rate(None), &Config::file());
        let rate = goodput(pair, seed, 8_000_000);
        assert!(rate > Bitrate::from_mbps(40), "{rate}");
    }
}

#[test]
fn losses_before_the_peer_has_told_a_rate_do_not_make_a_file_slow() {
    for lost in [1, 2, 9, 20] {
        let mut pair = connected(lost, line(30, 0.0), &Config::file());
        let mut packets = 0;
        pair.drop_where(move |side, datagram| {
            let is_data = side == Side::Caller && kind(datagram) == Kind::Data;
            packets += u64::from(is_data);
            is_data && packets == lost
        });
        let rate = goodput(pair, lost, 50_000_000);
        assert!(rate > Bitrate::from_mbps(75), "{rate} when packet {lost} is lost");
    }
}

#[test]
fn the_reported_capacity_is_the_links_at_every_polling_interval() {
    for (grain, share) in [(None, 1), (Some(MS(1) / 10), 5), (Some(MS(1) / 2), 3)] {
        let mut pair = connected(7, line(30, 0.005), &Config::file());
        pair.grain = grain;
        let data = contents(20_000_000, 7);
        write_all(&mut pair, &data, || usize::MAX);
        run_until_read(&mut pair, data.len());
        for side in [Side::Caller, Side::Listener] {
            let capacity = pair.statistics(side).link_capacity;
            let within = Bitrate::from_mbps(100 * share / (share + 2))
                ..Bitrate::from_mbps(100 * (share + 2) / share);
            assert!(within.contains(&capacity), "{capacity} at {side:?}, looks each {grain:?}");
        }
    }
}

/// Where its receiver waited for its sender's timeout, all that was on its way would come twice.
#[test]
fn an_answer_that_is_lost_is_asked_for_again_and_little_else() {
    // Half of what the link carries, so that nothing else is lost.
    let limit = MaxBandwidth::Absolute(Bitrate::from_mbps(50));
    let mut pair = connected(1, line(30, 0.0), &Config::file().with_max_bandwidth(limit));
    let (mut packets, mut answers) = (0, 0);
    pair.drop_where(move |side, datagram| {
        let kind = if side == Side::Caller { kind(datagram) } else { Kind::Other };
        packets += u32::from(kind == Kind::Data);
        answers += u32::from(kind == Kind::Retransmission);
        kind == Kind::Data && packets == 2_000 || kind == Kind::Retransmission && answers <= 2
    });
    let data = contents(10_000_000, 1);
    write_all(&mut pair, &data, || usize::MAX);
    run_until_read(&mut pair, data.len());
    assert!(pair.statistics(Side::Listener).packets_requested_again >= 1);
    let again = pair.statistics(Side::Caller).packets_retransmitted;
    assert!((3..12).contains(&again), "{again} packets were sent again");
}
