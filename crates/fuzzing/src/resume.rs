//! The records by which two ends resume a stream.

use bytes::{Bytes, BytesMut};
use punctual_resume::{MemorySpool, Peer, PeerFormat, Receiver, Sender, StreamSecret};

/// Any bytes for a sender and for a receiver, over several connections, and then a sound connection
/// between both: whatever came before, each ends with the same stream.
pub(crate) fn run(input: &[u8]) {
    let Some(stream) = StreamSecret::new([1; 16]) else { return };
    let mut sender = Sender::new(stream, MemorySpool::new(1_000));
    let mut receiver = Receiver::default();
    let message = Bytes::from_static(b"a message");
    assert!(sender.push(message.clone()).is_ok());
    for (number, part) in input.chunks(64).enumerate() {
        let peer = if number % 2 == 0 { Peer::Anybody } else { Peer::Chosen };
        assert!(sender.connected(PeerFormat::Resumable([2; 16]), peer).is_ok());
        let _ = sender.receive(part);
        while let Ok(Some(_)) = sender.next_bytes() {}
        assert!(sender.kept().first <= sender.kept().end);
        receiver.connected([3; 16], peer);
        while receiver.next_bytes().is_some() {}
        let mut messages = Vec::new();
        let _ = receiver.receive(part, &mut messages);
        receiver.written(receiver.taken());
        let taken: usize = messages.iter().map(Bytes::len).sum();
        assert!(taken <= part.len());
        while receiver.next_bytes().is_some() {}
    }
    deliver(&mut sender);
}

/// A receiver that knows nothing gets all that the sender still has.
fn deliver(sender: &mut Sender<MemorySpool>) {
    let mut receiver = Receiver::default();
    sender.end();
    assert!(sender.connected(PeerFormat::Resumable([2; 16]), Peer::Chosen).is_ok());
    receiver.connected([3; 16], Peer::Chosen);
    let kept = sender.kept().len();
    let mut messages = Vec::new();
    while !sender.is_complete() {
        let mut to_sender = BytesMut::new();
        while let Some(bytes) = receiver.next_bytes() {
            to_sender.extend_from_slice(&bytes);
        }
        sender.receive(&to_sender).expect("a sound receiver");
        while let Some(bytes) = sender.next_bytes().expect("a spool in memory") {
            receiver.receive(&bytes, &mut messages).expect("a sound sender");
        }
        receiver.written(receiver.taken());
    }
    assert_eq!(receiver.taken(), kept);
}
