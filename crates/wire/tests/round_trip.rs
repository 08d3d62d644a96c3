//! A packet that is written reads back the same; one that is read, from any bytes, can be written.

use std::net::IpAddr;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use punctual_wire::{
    Ack, AckArrivals, AckLink, AckNo, AckRates, Control, ControlPacket, DataHeader, DataPacket,
    DropRequest, Extension, GroupExtension, Handshake, HandshakeRequest, HsExtension, HsFlags,
    KeyFlag, LossList, LossListBuilder, MsgNo, NewestArrival, Packet, PeerIp, Position,
    RejectReason, SeqNo, SocketId, Timestamp, destination,
};

proptest! {
    #[test]
    fn data_reads_back(header in data_header(), payload in vec(any::<u8>(), 0..1500)) {
        let mut datagram = header.to_bytes().to_vec();
        datagram.extend_from_slice(&payload);
        let packet = DataPacket { header, payload: &payload };
        prop_assert_eq!(Packet::parse(&datagram), Ok(Packet::Data(packet)));
        prop_assert_eq!(destination(&datagram), Some(header.dest));
    }

    #[test]
    fn plain_control_reads_back(control in plain_control(), time: u32, dest: u32) {
        assert_reads_back(control, time, dest)?;
    }

    #[test]
    fn handshake_reads_back(handshake in handshake(), time: u32, dest: u32) {
        assert_reads_back(Control::Handshake(Box::new(handshake)), time, dest)?;
    }

    #[test]
    fn extension_reads_back(command: u16, words in vec(any::<[u8; 4]>(), 0..100), time: u32) {
        assert_reads_back(Control::Extension { command, body: words.as_flattened() }, time, 1)?;
    }

    #[test]
    fn loss_list_reads_back(ranges in vec((seq_no(), range_len()), 0..100), max_words in 0..150_usize) {
        let mut builder = LossListBuilder::new(max_words);
        let mut kept = Vec::new();
        for (first, len) in ranges {
            let last = first.plus(len);
            if builder.push(first, last) {
                kept.push((first, last));
            }
        }
        prop_assert!(builder.as_list().as_bytes().len() <= 4 * max_words);
        prop_assert_eq!(builder.as_list().ranges().collect::<Vec<_>>(), kept);
        assert_reads_back(Control::Nak(builder.as_list()), 0, 1)?;
        let bytes = builder.clone().into_bytes();
        prop_assert_eq!(LossList::parse(&bytes), Ok(builder.as_list()));
    }

    #[test]
    fn any_bytes_are_read_without_panic(datagram in vec(any::<u8>(), 0..200)) {
        assert_settles(&datagram)?;
    }

    #[test]
    fn any_control_body_is_read_without_panic(
        kind in prop_oneof![0..10_u16, Just(0x7FFF)],
        rest: [u8; 14],
        body in vec(prop_oneof![any::<u8>(), Just(0)], 0..80),
    ) {
        let mut datagram = (kind | 0x8000).to_be_bytes().to_vec();
        datagram.extend_from_slice(&rest);
        datagram.extend_from_slice(&body);
        assert_settles(&datagram)?;
    }

    #[test]
    fn any_extension_blocks_are_read_without_panic(
        handshake in handshake(),
        blocks in vec((0..10_u8, 0..20_u8, vec(any::<u8>(), 0..80)), 0..5),
    ) {
        let request = HandshakeRequest::Conclusion;
        let mut datagram = emit(Control::Handshake(Box::new(Handshake {
            version: 5,
            request,
            extensions: Vec::new(),
            ..handshake
        })));
        for (command, words, body) in blocks {
            datagram.extend_from_slice(&[0, command, 0, words]);
            datagram.extend_from_slice(&body);
        }
        assert_settles(&datagram)?;
    }

    #[test]
    fn damaged_packets_are_read_without_panic(
        handshake in handshake(),
        cut in any::<prop::sample::Index>(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut datagram = emit(Control::Handshake(Box::new(handshake)));
        for (index, byte) in damage {
            let at = index.index(datagram.len());
            datagram[at] = byte;
        }
        assert_settles(&datagram)?;
        assert_settles(&datagram[..cut.index(datagram.len())])?;
    }

    #[test]
    fn peer_ip_reads_back(ip: IpAddr, wire: [u8; 16]) {
        // An IPv6 address whose last twelve bytes are zero cannot be told from IPv4.
        prop_assume!(!matches!(ip, IpAddr::V6(ip) if ip.octets()[4..] == [0; 12]));
        prop_assert_eq!(PeerIp::from(ip).to_ip(), ip.to_canonical());
        let peer_ip = PeerIp::from_wire(wire);
        prop_assert_eq!(peer_ip.to_wire(), wire);
        prop_assert_eq!(PeerIp::from(peer_ip.to_ip()).to_ip(), peer_ip.to_ip());
    }
}

fn emit(control: Control<'_>) -> Vec<u8> {
    let mut datagram = Vec::new();
    let dest = SocketId::new(1);
    ControlPacket { timestamp: Timestamp::default(), dest, control }.emit(&mut datagram);
    datagram
}

fn assert_reads_back(control: Control<'_>, time: u32, dest: u32) -> Result<(), TestCaseError> {
    let (timestamp, dest) = (Timestamp::from_micros(time), SocketId::new(dest));
    let packet = ControlPacket { timestamp, dest, control };
    let mut datagram = Vec::new();
    packet.emit(&mut datagram);
    prop_assert_eq!(datagram.len(), packet.emitted_len());
    prop_assert_eq!(destination(&datagram), Some(dest));
    prop_assert_eq!(Packet::parse(&datagram), Ok(Packet::Control(packet)));
    Ok(())
}

/// Asserts that a packet that can be read from `datagram` reads the same after it was written.
fn assert_settles(datagram: &[u8]) -> Result<(), TestCaseError> {
    match Packet::parse(datagram) {
        Ok(Packet::Data(DataPacket { header, payload })) => {
            prop_assert_eq!([&header.to_bytes(), payload].concat(), datagram);
        }
        Ok(Packet::Control(packet)) => {
            let mut written = Vec::new();
            packet.emit(&mut written);
            prop_assert_eq!(written.len(), packet.emitted_len());
            prop_assert_eq!(Packet::parse(&written), Ok(Packet::Control(packet)));
        }
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

fn seq_no() -> impl Strategy<Value = SeqNo> {
    prop_oneof![any::<u32>(), 0x7FFF_FFF0..0x7FFF_FFFF_u32].prop_map(SeqNo::new)
}

/// Packets after the first in a range: mostly few, at most as many as have an order.
fn range_len() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 0..100_u32, 0..1_u32 << 30]
}

fn data_header() -> impl Strategy<Value = DataHeader> {
    let position = prop::sample::select(vec![
        Position::First,
        Position::Middle,
        Position::Last,
        Position::Solo,
    ]);
    let key = prop::sample::select(vec![KeyFlag::Clear, KeyFlag::Even, KeyFlag::Odd]);
    let bits = any::<(bool, bool)>();
    (seq_no(), position, key, bits, any::<(u32, u32, u32)>()).prop_map(
        |(seq, position, key, (in_order, retransmitted), (msgno, timestamp, dest))| DataHeader {
            seq,
            position,
            in_order,
            key,
            retransmitted,
            msgno: MsgNo::new(msgno),
            timestamp: Timestamp::from_micros(timestamp),
            dest: SocketId::new(dest),
        },
    )
}

/// All types but the handshake and those whose body is borrowed.
fn plain_control() -> impl Strategy<Value = Control<'static>> {
    let drop_request = (any::<u32>(), seq_no(), range_len()).prop_map(|(msgno, first, len)| {
        let last = first.plus(len);
        Control::DropRequest(DropRequest { msgno: MsgNo::new(msgno), first, last })
    });
    prop_oneof![
        Just(Control::KeepAlive),
        Just(Control::CongestionWarning),
        Just(Control::Shutdown),
        any::<u32>().prop_map(|number| Control::AckAck(AckNo::new(number))),
        any::<u32>().prop_map(Control::PeerError),
        ack().prop_map(Control::Ack),
        drop_request,
    ]
}

fn ack() -> impl Strategy<Value = Ack> {
    let link = any::<(u32, u32, u32)>().prop_map(|(rtt_us, rtt_var_us, free_buffer)| AckLink {
        rtt_us,
        rtt_var_us,
        free_buffer,
    });
    let rates = (any::<(u32, u32)>(), option::of(any::<u32>())).prop_map(
        |((packets_per_sec, capacity_pps), bytes_per_sec)| AckRates {
            packets_per_sec,
            capacity_pps,
            bytes_per_sec,
        },
    );
    let newest =
        (seq_no(), any::<u32>()).prop_map(|(seq, delay_us)| NewestArrival { seq, delay_us });
    let given_up = option::of((any::<u32>(), option::of(newest)));
    let arrivals =
        (any::<u32>(), any::<u32>(), given_up).prop_map(|(packets, latest_rtt_us, more)| {
            AckArrivals {
                packets,
                latest_rtt_us,
                given_up: more.map(|(given_up, _)| given_up),
                newest: more.and_then(|(_, newest)| newest),
            }
        });
    let number = any::<u32>().prop_map(AckNo::new);
    let report = (rates, option::of(arrivals));
    (seq_no(), number, option::of((link, option::of(report)))).prop_map(|(next, number, rest)| {
        match rest {
            None => Ack::Light { next },
            Some((link, None)) => Ack::Small { number, next, link },
            Some((link, Some((rates, arrivals)))) => {
                // Arrivals are reported behind all rates.
                let arrivals = arrivals.filter(|_| rates.bytes_per_sec.is_some());
                Ack::Full { number, next, link, rates, arrivals }
            }
        }
    })
}

fn handshake() -> impl Strategy<Value = Handshake> {
    // Other handshakes lose their extensions on the way.
    let with_extensions = (
        prop::sample::select(vec![HandshakeRequest::Conclusion, HandshakeRequest::Agreement]),
        Just(5),
        extensions(),
    );
    let without_extensions = (other_request(), 4..7_u32, Just(Vec::new()));
    let base = (
        any::<(u16, u16)>(),
        0..0x7FFF_FFFF_u32,
        32..=0x7FFF_FFFF_u32,
        2..=0x7FFF_FFFF_u32,
        any::<(u32, u32)>(),
        any::<[u8; 16]>(),
    );
    (base, prop_oneof![with_extensions, without_extensions]).prop_map(
        |((kind, isn, mss, flow_window, ids, peer_ip), (request, version, extensions))| Handshake {
            version,
            encryption: kind.0,
            extension_field: kind.1,
            isn: SeqNo::new(isn),
            mss,
            flow_window,
            request,
            socket_id: SocketId::new(ids.0),
            cookie: ids.1,
            peer_ip: PeerIp::from_wire(peer_ip),
            extensions,
        },
    )
}

fn other_request() -> impl Strategy<Value = HandshakeRequest> {
    prop_oneof![
        Just(HandshakeRequest::Induction),
        Just(HandshakeRequest::WaveAHand),
        (1000..0x8000_0000_u32).prop_map(|code| {
            HandshakeRequest::Rejection(RejectReason::from_wire(code).expect("1000 and up"))
        }),
        (2..1000_u32).prop_map(HandshakeRequest::Unknown),
    ]
}

/// Extensions of which congestion control and filter occur once at most.
fn extensions() -> impl Strategy<Value = Vec<Extension>> {
    (vec(extension(), 0..6), option::of("[a-zé]{0,8}"), option::of("[a-z:,]{0,64}")).prop_map(
        |(mut extensions, congestion, filter)| {
            extensions.extend(congestion.map(Extension::Congestion));
            extensions.extend(filter.map(Extension::Filter));
            extensions
        },
    )
}

/// The form in which strings of bytes arrive.
fn without_zeros_at_the_end(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.pop_if(|last| *last == 0).is_some() {}
    bytes
}

fn extension() -> impl Strategy<Value = Extension> {
    let words = || vec(any::<[u8; 4]>(), 0..20).prop_map(|words| words.as_flattened().to_vec());
    let hs = || {
        any::<(u32, u32, u16, u16)>().prop_map(|(version, flags, receive, send)| HsExtension {
            version,
            flags: HsFlags::from_bits(flags),
            receive_latency_ms: receive,
            send_latency_ms: send,
        })
    };
    let group = any::<(u32, u8, u8, u16)>().prop_map(|(group_id, kind, flags, weight)| {
        Extension::Group(GroupExtension { group_id, kind, flags, weight })
    });
    prop_oneof![
        hs().prop_map(Extension::HsReq),
        hs().prop_map(Extension::HsRsp),
        words().prop_map(Extension::KmReq),
        words().prop_map(Extension::KmRsp),
        vec(any::<u8>(), 0..=512).prop_map(without_zeros_at_the_end).prop_map(Extension::StreamId),
        group,
        (prop_oneof![Just(0), 9..=u16::MAX], words())
            .prop_map(|(command, body)| Extension::Unknown { command, body }),
    ]
}
