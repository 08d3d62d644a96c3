//! Streams of bytes and large messages.

use std::io::ErrorKind;

use bytes::Bytes;
use punctual::{
    BufferSize, CloseReason, Config, Error, Listener, RejectReason, Socket, Transmission,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use crate::common::{local, pair, until, within};

fn messages() -> Config {
    Config::file().with_transmission(Transmission::Messages)
}

/// Bytes of which no two parts are equal.
fn contents(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

#[tokio::test]
async fn bytes_go_both_ways_at_once_and_arrive_unchanged() {
    let (caller, accepted) = pair(Config::file()).await;
    let data = contents(5_000_000);
    let ends = [caller, accepted].map(|socket| {
        let data = data.clone();
        tokio::spawn(async move {
            let (mut read, mut write) = tokio::io::split(socket.byte_stream());
            let mut whole = vec![0; data.len()];
            let writing = async {
                for piece in data.chunks(70_000) {
                    write.write_all(piece).await.unwrap();
                }
            };
            let (_, read) = tokio::join!(writing, read.read_exact(&mut whole));
            read.unwrap();
            assert!(whole == data, "not the same bytes");
            socket
        })
    });
    let [caller, accepted] = ends;
    let done = within(async { tokio::try_join!(caller, accepted) }).await;
    done.unwrap();
}

#[tokio::test]
async fn a_reader_that_waits_holds_the_writer_back() {
    let config = Config::file()
        .with_send_buffer(BufferSize::Packets(64))
        .with_receive_buffer(BufferSize::Packets(64));
    let (caller, accepted) = pair(config).await;
    let data = contents(2_000_000);
    let mut rest = Bytes::from(data.clone());
    let full = async {
        loop {
            caller.write(&mut rest).await.unwrap();
        }
    };
    let stuck = until(|| {
        let (sent, received) = (caller.statistics(), accepted.statistics());
        let all_acknowledged = sent.flight_size == 0;
        all_acknowledged && sent.send_buffer_packets == 64 && received.receive_buffer_packets == 64
    });
    tokio::select! {
        () = full => unreachable!("it has no end"),
        () = stuck => {}
    }
    assert_eq!(data.len() - rest.len(), 128 * 1_456, "64 packets there, 64 here");
    let reading = async {
        let mut whole = Vec::new();
        accepted.byte_stream().read_to_end(&mut whole).await.unwrap();
        whole
    };
    let writing = async {
        caller.write_all(rest).await.unwrap();
        caller.close().await;
    };
    let (whole, ()) = within(async { tokio::join!(reading, writing) }).await;
    assert!(whole == data, "not the same bytes");
}

#[tokio::test]
async fn shutting_down_waits_until_all_has_arrived() {
    let (caller, accepted) = pair(Config::file()).await;
    let data = contents(3_000_000);
    let mut stream = caller.byte_stream();
    let (written, all_written) = oneshot::channel();
    let reading = tokio::spawn(async move {
        all_written.await.unwrap();
        let mut whole = Vec::new();
        accepted.byte_stream().read_to_end(&mut whole).await.unwrap();
        whole
    });
    within(stream.write_all(&data)).await.unwrap();
    written.send(()).unwrap();
    within(stream.shutdown()).await.unwrap();
    assert_eq!(caller.closed().await, CloseReason::Local);
    assert!(reading.await.unwrap() == data, "not the same bytes");
    let error = stream.write_all(b"more").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
}

#[tokio::test]
async fn messages_of_many_packets_arrive_whole() {
    let (caller, accepted) = pair(messages()).await;
    let sizes = [1, 1_456, 1_457, 200_000, 1_456_000];
    let sending = async {
        for size in sizes {
            caller.send(contents(size).into()).await.unwrap();
        }
        let max = caller.info().max_payload;
        let error = caller.send(vec![0; max + 1].into()).await.unwrap_err();
        assert!(matches!(error, Error::Size { size, .. } if size == max + 1), "{error}");
        let error = caller.write_all(Bytes::from("x")).await.unwrap_err();
        assert!(matches!(error, Error::NoStream), "{error}");
    };
    let receiving = async {
        for size in sizes {
            assert!(accepted.recv().await.unwrap().payload == contents(size), "{size} bytes");
        }
    };
    within(async { tokio::join!(sending, receiving) }).await;
}

#[tokio::test]
async fn a_listener_for_files_rejects_a_live_caller_with_a_reason() {
    let listener = Listener::bind(local(), Config::file()).await.unwrap();
    let error = Socket::connect(listener.local_addr(), Config::default()).await.unwrap_err();
    assert_eq!(error.reject_reason(), Some(RejectReason::MESSAGE_API));
}
