//! Streams that outlive their connections, over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual::resume::{
    Carried, CarryError, MemorySpool, Received, ResumableReceiver, ResumableSender, ResumeError,
    StreamSecret,
};
use punctual::{Config, Error, Listener, Socket};
use tokio::time::timeout;

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
        receiver.connected(&socket).unwrap();
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
    first.connected(&socket).unwrap();
    let mut messages = Vec::new();
    while messages.len() < 100 {
        first.recv(&socket, &mut messages).await.unwrap();
    }
    assert_eq!(stream.kept().len(), 131_600);
    // This receiver is gone before it has written anything.
    socket.abort().await;
    let socket = listener.accept().await.unwrap();
    let mut second = ResumableReceiver::default();
    second.connected(&socket).unwrap();
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
    let secret = StreamSecret::new([7; 16]).unwrap();
    let stream = ResumableSender::new(secret, MemorySpool::new(1_000));
    stream.try_send("a message".into()).unwrap();
    stream.end();
    let call = Socket::connect(listener.local_addr(), config());
    let (caller, accepted) = tokio::join!(call, listener.accept());
    let (caller, accepted) = (caller.unwrap(), accepted.unwrap());
    let mut receiver = ResumableReceiver::resuming(secret, 2);
    receiver.connected(&accepted).unwrap();
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

/// A caller and the listener's connection to it.
async fn connect(listener: &Listener, config: Config) -> (Socket, Socket) {
    let call = Socket::connect(listener.local_addr(), config);
    let (caller, accepted) = tokio::join!(call, listener.accept());
    (caller.unwrap(), accepted.unwrap())
}

/// Receives over `socket` until `count` messages are there, or the stream has ended.
async fn receive(
    receiver: &mut ResumableReceiver,
    socket: &Socket,
    count: usize,
) -> Result<Vec<Bytes>, CarryError> {
    receiver.connected(socket)?;
    let mut messages = Vec::new();
    while messages.len() < count {
        if receiver.recv(socket, &mut messages).await? == Received::End {
            break;
        }
        receiver.written_bytes().advance_to(receiver.taken());
    }
    Ok(messages)
}

/// A stream of 100 messages, of which the first 10 can be sent at present.
fn stream_of_ten() -> ResumableSender {
    let stream = ResumableSender::in_memory(1 << 20).unwrap();
    (0..10).for_each(|number| stream.try_send(message(number)).unwrap());
    stream
}

fn complete(stream: &ResumableSender) {
    (10..100).for_each(|number| stream.try_send(message(number)).unwrap());
    stream.end();
}

#[tokio::test]
async fn a_listening_receiver_goes_on_with_its_sender_alone() {
    let listener = listener(config()).await;
    let (stream, mut receiver) = (stream_of_ten(), ResumableReceiver::default());
    let (caller, accepted) = connect(&listener, config()).await;
    let first = tokio::select! {
        first = receive(&mut receiver, &accepted, 10) => first.unwrap(),
        carried = stream.carry(&caller, |_| ()) => panic!("{carried:?}"),
    };
    assert_eq!(first, (0..10).map(message).collect::<Vec<_>>());
    caller.abort().await;
    accepted.abort().await;

    // A stranger that begins a stream of its own, and one that says nothing.
    let stranger = stream_of_ten();
    let (caller, accepted) = connect(&listener, config()).await;
    let (carried, received) =
        tokio::join!(stranger.carry(&caller, |_| ()), receive(&mut receiver, &accepted, 10));
    let refused = matches!(received, Err(CarryError::Protocol(ResumeError::OtherSender)));
    assert!(refused, "{received:?}");
    let told = matches!(carried, Err(CarryError::Protocol(ResumeError::Refused)));
    assert!(told, "{carried:?}");
    let (_silent, accepted) = connect(&listener, config()).await;
    let received = receive(&mut receiver, &accepted, 10).await;
    assert!(matches!(received, Err(CarryError::NoBeginning)), "{received:?}");

    complete(&stream);
    let (caller, accepted) = connect(&listener, config()).await;
    let (carried, rest) =
        tokio::join!(stream.carry(&caller, |_| ()), receive(&mut receiver, &accepted, usize::MAX));
    carried.unwrap();
    assert_eq!(rest.unwrap(), (10..100).map(message).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_listening_sender_gives_the_rest_to_its_receiver_alone() {
    let listener = listener(config()).await;
    let (stream, mut receiver) = (stream_of_ten(), ResumableReceiver::default());
    let (caller, accepted) = connect(&listener, config()).await;
    let confirm = async {
        assert_eq!(receive(&mut receiver, &caller, 10).await.unwrap().len(), 10);
        let mut none = Vec::new();
        while stream.kept().first == 0 {
            let _ = timeout(Duration::from_millis(20), receiver.recv(&caller, &mut none)).await;
        }
    };
    tokio::select! {
        () = confirm => {}
        carried = stream.carry(&accepted, |_| ()) => panic!("{carried:?}"),
    }
    caller.abort().await;
    accepted.abort().await;
    let kept = stream.kept();

    // Strangers that resume streams, take frames, and take bytes.
    for config in [config(), Config::file().with_framing(true), Config::file()] {
        let (caller, accepted) = connect(&listener, config.clone()).await;
        let mut stranger = ResumableReceiver::default();
        let take = async {
            match config.resume() {
                true => receive(&mut stranger, &caller, 1).await.map(drop),
                false => Ok(caller.recv().await.map(drop)?),
            }
        };
        let carry = async {
            let carried = stream.carry(&accepted, |_| ()).await;
            accepted.abort().await;
            carried
        };
        let (carried, taken) = tokio::join!(carry, take);
        let refused = matches!(carried, Err(CarryError::Protocol(ResumeError::OtherReceiver)));
        assert!(refused, "{carried:?}");
        assert!(taken.is_err(), "{taken:?}");
        assert_eq!(stream.kept(), kept);
    }

    complete(&stream);
    let (caller, accepted) = connect(&listener, config()).await;
    let (carried, rest) =
        tokio::join!(stream.carry(&accepted, |_| ()), receive(&mut receiver, &caller, usize::MAX));
    carried.unwrap();
    assert_eq!(rest.unwrap(), (10..100).map(message).collect::<Vec<_>>());
}

#[tokio::test]
async fn with_a_passphrase_another_receiver_gets_all_that_is_kept() {
    let secured = || config().with_passphrase("correct horse").unwrap();
    let listener = listener(secured()).await;
    let stream = stream_of_ten();
    complete(&stream);
    let (caller, accepted) = connect(&listener, secured()).await;
    let mut first = ResumableReceiver::default();
    tokio::select! {
        first = receive(&mut first, &caller, 10) => drop(first.unwrap()),
        carried = stream.carry(&accepted, |_| ()) => panic!("{carried:?}"),
    }
    caller.abort().await;
    accepted.abort().await;
    let first = usize::try_from(stream.kept().first / 1_316).unwrap();
    let (caller, accepted) = connect(&listener, secured()).await;
    let mut second = ResumableReceiver::default();
    let (carried, rest) =
        tokio::join!(stream.carry(&accepted, |_| ()), receive(&mut second, &caller, usize::MAX));
    carried.unwrap();
    assert_eq!(rest.unwrap().len(), 100 - first);
}
