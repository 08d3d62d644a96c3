//! Clients that send nonsense, too much, or nothing, and clients that take nothing.

use std::sync::Arc;
use std::time::Duration;

use punctual_relay_http::{Limits, Settings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

use crate::client::{PATIENCE, Service, read_reply};
use crate::stand_in::Open;

async fn impatient() -> Service {
    let settings = Settings { body_timeout: Duration::from_millis(300), ..Settings::default() };
    let limits = Limits {
        connections: 20,
        head_timeout: Duration::from_millis(300),
        write_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    Service::start(Arc::new(Open), settings, limits, None).await
}

/// Fails unless the service answers others.
async fn assert_serves(service: &Service) {
    assert_eq!(service.get("/v1/streams").await.status, 200);
}

#[tokio::test]
async fn nonsense_ends_its_own_connection_only() {
    let service = Service::open().await;
    let long_line = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(5_000));
    for (bytes, statuses) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00"[..], &[400, 0][..]),
        (b"GET\r\n\r\n", &[400]),
        (b"GET / HTTP/9.9\r\n\r\n", &[400, 505]),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", &[400]),
        (b"POST /v1/drain HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", &[400, 413]),
        (b"GET /%00%ff/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", &[404]),
        (b"GET http://evil.example/v1/streams HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", &[421]),
        (b"CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", &[404, 405]),
        (long_line.as_bytes(), &[414, 431, 0]),
        (many.as_bytes(), &[431, 0]),
    ] {
        let mut stream = service.connect().await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let reply = read_reply(&mut stream).await;
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]);
        assert!(statuses.contains(&reply.status), "{shown}: {reply:?}");
    }
    assert!(service.relay.done().is_empty());
    assert_serves(&service).await;
}

#[tokio::test]
async fn a_head_that_does_not_end_is_given_up() {
    let service = impatient().await;
    for begun in ["", "GET / HTTP/1.1\r\nHost: loc"] {
        let mut stream = service.connect().await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        let begin = Instant::now();
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is ended");
        assert!(begin.elapsed() >= Duration::from_millis(250), "{begun}");
    }
    assert_serves(&service).await;
}

#[tokio::test]
async fn a_body_is_bounded_in_size_and_in_time() {
    let service = impatient().await;
    let large = "x".repeat((256 << 10) + 1);
    assert_eq!(service.request("POST", "/v1/config:check", "", &large).await.status, 413);
    let slow =
        b"POST /v1/config:check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n[def";
    let reply = service.exchange(slow).await;
    assert!(reply.status == 408 && reply.head.contains("connection: close"), "{reply:?}");
    assert_serves(&service).await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_loses_its_connection() {
    let service = impatient().await;
    let mut streams = Vec::new();
    for _ in 0..19 {
        let mut stream = service.connect().await;
        let request = b"GET /live/live/studio.ts HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        streams.push(stream);
    }
    // Their places are free once they are given up: until then the port has only one more.
    let free = async {
        loop {
            let mut taken = Vec::new();
            for _ in 0..15 {
                let mut stream = service.connect().await;
                let request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
                let _ = stream.write_all(request).await;
                let mut byte = [0];
                if matches!(stream.read(&mut byte).await, Ok(1)) {
                    taken.push(stream);
                }
            }
            if taken.len() == 15 {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, free).await.expect("the places are free again");
    drop(streams);
}

#[tokio::test]
async fn a_client_that_takes_the_stream_keeps_it() {
    let service = impatient().await;
    let mut stream = service.connect().await;
    let request = b"GET /live/live/studio.ts HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let end = Instant::now() + Duration::from_secs(1);
    let mut bytes = vec![0; 1 << 16];
    while Instant::now() < end {
        let count = timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
        assert!(count > 0, "the stream ended");
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_and_the_others_serve() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let service = Service::start(Arc::new(Open), Settings::default(), limits, None).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = service.connect().await;
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut byte = [0];
        timeout(PATIENCE, stream.read(&mut byte)).await.unwrap().unwrap();
        held.push(stream);
    }
    let mut more = service.connect().await;
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, more.read_to_end(&mut rest)).await.expect("it is closed");
    assert!(rest.is_empty());
    drop(held);
    let served = async {
        while service.exchange(b"GET /livez HTTP/1.0\r\n\r\n").await.status != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, served).await.expect("there are places again");
}

#[tokio::test]
async fn players_keep_their_places_among_the_connections() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let service = Service::start(Arc::new(Open), Settings::default(), limits, None).await;
    let mut players = Vec::new();
    for _ in 0..3 {
        let url = format!("ws://{}/v1/play/tower", service.address);
        players.push(tokio_tungstenite::connect_async(url).await.unwrap().0);
    }
    let health = b"GET /livez HTTP/1.0\r\n\r\n";
    assert_eq!(service.exchange(health).await.status, 0, "all places are taken");
    players.pop();
    let served = async {
        while service.exchange(health).await.status != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, served).await.expect("there is a place again");
}
