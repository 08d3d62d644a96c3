//! Streams that outlive their connections, over real sockets.

use std::net::SocketAddr;

use bytes::Bytes;
use punctual::resume::{
    Carried, CarryError, MemorySpool, Received, ResumableReceiver, ResumableSender, StreamIdentity,
};
use punctual::{Config, Error, Listener, Socket};

fn config() -> Config {
    Config::file().with_framing(true).with_resume(true)
}

async fn listener(config: Config) -> Listener {
    Listener::bind("127.0.0.1:0".parse().unwrap(), config).await.unwrap()
}

fn message(number: u32) -> Bytes {
    [&number.to_be_bytes()[..], &[7; 1_312]].concat().into()
}

/// Sends `count` messages over one connection after the other.
async fn send(stream: ResumableSender, remote: SocketAddr, count: u32) -> u32 {
    let source = async {
        for number in 0..count {
            stream.send(message(number)).await.unwrap();
        }
        stream.end();
    };
    let carry = async {
        for connections in 1.. {
            let socket = Socket::connect(remote, config()).await.unwrap();
            match stream.carry(&socket, |_| ()).await {
                Ok(()) => {
                    socket.close().await;
                    return connections;
                }
                Err(CarryError::Connection(Error::Closed(_))) => {}
                Err(error) => panic!("{error}"),
            }
        }
        unreachable!("connections are not counted to their end")
    };
    tokio::join!(source, carry).1
}

#[tokio::test]
async fn every_message_comes_once_over_connections_that_break() {
    let listener = listener(config()).await;
    let stream = ResumableSender::in_memory(1 << 20).unwrap();
    let sent = tokio::spawn(send(stream.clone(), listener.local_addr(), 20_000));
    let mut receiver = ResumableReceiver::default();
    let (written, mut next) = (receiver.written_bytes(), 0);
    let mut has_ended = false;
    while !has_ended {
        let socket = listener.accept().await.unwrap();
        assert!(socket.info().resumable);
        receiver.connected();
        let (mut messages, until) = (Vec::new(), next + 3_000);
        while next < until && !has_ended {
            has_ended = receiver.recv(&socket, &mut messages).await.unwrap() == Received::End;
            for got in messages.drain(..) {
                assert_eq!(got, message(next));
                next += 1;
            }
            written.advance_to(receiver.taken());
        }
        if has_ended {
            socket.close().await;
        } else {
            socket.abort().await;
        }
    }
    assert_eq!(next, 20_000);
    assert!(sent.await.unwrap() >= 7);
    assert!(stream.kept().is_empty());
}

#[tokio::test]
async fn messages_are_kept_until_they_are_written() {
    let listener = listener(config()).await;
    let stream = ResumableSender::in_memory(1 << 20).unwrap();
    let sent = tokio::spawn(send(stream.clone(), listener.local_addr(), 100));
    let socket = listener.accept().await.unwrap();
    let mut first = ResumableReceiver::default();
    first.connected();
    let mut messages = Vec::new();
    while messages.len() < 100 {
        first.recv(&socket, &mut messages).await.unwrap();
    }
    assert_eq!(stream.kept().len(), 131_600);
    // This receiver is gone before it has written anything.
    socket.abort().await;
    let socket = listener.accept().await.unwrap();
    let mut second = ResumableReceiver::default();
    second.connected();
    messages.clear();
    while second.recv(&socket, &mut messages).await.unwrap() != Received::End {
        second.written_bytes().advance_to(second.taken());
    }
    socket.close().await;
    assert_eq!(messages.len(), 100);
    sent.await.unwrap();
}

#[tokio::test]
async fn a_peer_that_cannot_resume_gets_the_bytes() {
    let listener = listener(Config::file()).await;
    let stream = ResumableSender::in_memory(1 << 20).unwrap();
    let sent = tokio::spawn(send(stream, listener.local_addr(), 1_000));
    let socket = listener.accept().await.unwrap();
    let mut bytes = Vec::new();
    while let Ok(piece) = socket.recv().await {
        bytes.extend_from_slice(&piece.payload);
    }
    assert_eq!(bytes, (0..1_000).flat_map(message).collect::<Vec<u8>>());
    assert_eq!(sent.await.unwrap(), 1);
}

#[tokio::test]
async fn the_sender_tells_where_the_stream_goes_on() {
    let listener = listener(config()).await;
    let identity = StreamIdentity::new([7; 16]).unwrap();
    let stream = ResumableSender::new(identity, MemorySpool::new(1_000));
    stream.try_send("a message".into()).unwrap();
    stream.end();
    let call = Socket::connect(listener.local_addr(), config());
    let (caller, accepted) = tokio::join!(call, listener.accept());
    let (caller, accepted) = (caller.unwrap(), accepted.unwrap());
    let mut receiver = ResumableReceiver::resuming(identity, 2);
    receiver.connected();
    let receive = async {
        let mut messages = Vec::new();
        while receiver.recv(&accepted, &mut messages).await.unwrap() != Received::End {
            receiver.written_bytes().advance_to(receiver.taken());
        }
        messages
    };
    let mut seen = Vec::new();
    let (carried, messages) =
        tokio::join!(stream.carry(&caller, |event| seen.push(event)), receive);
    carried.unwrap();
    assert_eq!(messages, ["message"]);
    let Carried::Resumed(resumption) = seen[0] else { panic!("{seen:?}") };
    assert!(resumption.is_known && resumption.offset == 2 && resumption.missing == 0);
}

#[tokio::test(start_paused = true)]
async fn two_senders_are_told_that_none_of_them_receives() {
    let listener = listener(config()).await;
    let call = Socket::connect(listener.local_addr(), config());
    let (caller, accepted) = tokio::join!(call, listener.accept());
    let (one, two) = (caller.unwrap(), accepted.unwrap());
    let streams = [(); 2].map(|()| ResumableSender::in_memory(1_000).unwrap());
    let (first, second) =
        tokio::join!(streams[0].carry(&one, |_| ()), streams[1].carry(&two, |_| ()));
    for ended in [first, second] {
        assert!(matches!(ended, Err(CarryError::NoPosition)), "{ended:?}");
    }
}
