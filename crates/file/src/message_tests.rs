//! Messages as srt-xtransmit writes them, and any others.

use proptest::prelude::*;

use super::*;

#[test]
fn segments_are_those_of_srt_xtransmit() {
    let first = Segment { path: Some("a/b.ts".into()), last: false, data: "xyz".into() };
    assert_eq!(first.to_bytes(), &b"\x01a/b.ts\0xyz"[..]);
    let last = Segment { path: None, last: true, data: "end".into() };
    assert_eq!(last.to_bytes(), &b"\x02end"[..]);
    let only = Segment { path: Some("empty".into()), last: true, data: Bytes::new() };
    assert_eq!(only.to_bytes(), &b"\x03empty\0"[..]);
    for segment in [first, last, only] {
        assert_eq!(FromSender::parse(segment.to_bytes()), Ok(FromSender::Segment(segment)));
    }
    assert_eq!(FromSender::parse("\x01no end of the path".into()), Err(MalformedMessage));
    assert_eq!(FromSender::parse(Bytes::new()), Err(MalformedMessage));
    assert_eq!(FromSender::parse("\x04more flags".into()), Err(MalformedMessage));
}

#[test]
fn text_of_the_other_end_cannot_command_a_terminal() {
    let message = FromReceiver::Done(Err("\u{1b}[2Jgone\n".to_owned()));
    let read = FromReceiver::parse(message.to_bytes());
    assert_eq!(read, Ok(FromReceiver::Done(Err("[2Jgone".to_owned()))));
}

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn from_sender() -> impl Strategy<Value = FromSender> {
    let path = prop::collection::vec(1u8.., 0..40).prop_map(Bytes::from);
    prop_oneof![
        (prop::option::of(path), any::<bool>(), bytes(100))
            .prop_map(|(path, last, data)| FromSender::Segment(Segment { path, last, data })),
        (any::<u64>(), any::<[u8; 8]>().prop_map(Fingerprint), bytes(40))
            .prop_map(|(size, fingerprint, path)| FromSender::Offer { size, fingerprint, path }),
        any::<(u32, Digest)>().prop_map(|(offer, digest)| FromSender::Claim { offer, digest }),
        any::<(u32, u64)>().prop_map(|(offer, offset)| FromSender::Start { offer, offset }),
        bytes(100).prop_map(FromSender::Data),
        any::<Digest>().prop_map(FromSender::End),
        (any::<u32>(), prop::sample::select(vec![SkipReason::Failed, SkipReason::Changed]))
            .prop_map(|(offer, reason)| FromSender::Skip { offer, reason }),
        "[a-z ]{0,40}".prop_map(FromSender::Unsent),
        Just(FromSender::Finish),
    ]
}

fn from_receiver() -> impl Strategy<Value = FromReceiver> {
    let answer = prop_oneof![
        any::<u64>().prop_map(Answer::Part),
        any::<bool>().prop_map(|replaces| Answer::Whole { replaces }),
        "[a-z ]{0,40}".prop_map(Answer::Refused),
    ];
    prop_oneof![
        Just(FromReceiver::Hello(Language::Segments)),
        Just(FromReceiver::Hello(Language::Punctual)),
        answer.prop_map(FromReceiver::Answer),
        any::<bool>().prop_map(FromReceiver::Verdict),
        Just(FromReceiver::Done(Ok(()))),
        "[a-z ]{0,40}".prop_map(|why| FromReceiver::Done(Err(why))),
        Just(FromReceiver::Bye),
    ]
}

proptest! {
    #[test]
    fn a_message_that_is_written_is_read_again(sender in from_sender(), receiver in from_receiver()) {
        prop_assert_eq!(FromSender::parse(sender.to_bytes()), Ok(sender));
        prop_assert_eq!(FromReceiver::parse(receiver.to_bytes()), Ok(receiver));
    }

    /// Any bytes may come: they are refused, or read and written again.
    #[test]
    fn any_bytes_are_read_or_refused(message in bytes(80), kind in 0u8..0x90) {
        let mut typed = vec![kind];
        typed.extend_from_slice(&message);
        for message in [message, typed.into()] {
            if let Ok(read) = FromSender::parse(message.clone()) {
                prop_assert_eq!(FromSender::parse(read.to_bytes()), Ok(read));
            }
            if let Ok(read) = FromReceiver::parse(message) {
                prop_assert_eq!(FromReceiver::parse(read.to_bytes()), Ok(read));
            }
        }
    }
}
