//! Hooks that send requests, to a server of the tests.
#![expect(clippy::disallowed_methods, reason = "a call must not wait")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use punctual_relay_access::Secret;
use punctual_relay_hooks::{Hook, HookEvent, HookEventKind, HookResult, Hooks};
use punctual_units::UtcTime;
use serde_json::Value;
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

use HookEventKind::{Available, Unavailable};

/// A request as it came.
#[derive(Debug)]
struct Request {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    async fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(": ") {
                headers.push((name.to_lowercase(), value.trim().to_owned()));
            }
        }
        let mut request = Self { headers, body: Vec::new() };
        request.body = vec![0; request.header("content-length")?.parse().ok()?];
        stream.read_exact(&mut request.body).await.ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A server that gives these answers one after the other, and then the last one.
async fn server(answers: &'static [u16]) -> (String, UnboundedReceiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://ann:hush@{}/hook?key=hush", listener.local_addr().unwrap());
    let (sender, requests) = unbounded_channel();
    tokio::spawn(async move {
        let mut count = 0;
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            while let Some(request) = Request::read(&mut stream).await {
                let _ = sender.send(request);
                let Some(status) = answers.get(count).or(answers.last()) else {
                    std::future::pending().await
                };
                count += 1;
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 2\r\n\r\nok");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    (url, requests)
}

fn hooks(url: &str, key: Option<Secret>) -> Hooks {
    let all = Hooks::new(UtcTime::from_micros(5), Handle::current());
    let hook = Hook::post(&[Available, Unavailable], url.parse().unwrap(), key).unwrap();
    all.change(&[hook]).unwrap();
    all
}

fn event(kind: HookEventKind) -> HookEvent {
    HookEvent::new(kind, UtcTime::default()).of_stream("live/cam")
}

async fn next(requests: &mut UnboundedReceiver<Request>) -> Request {
    timeout(Duration::from_secs(60), requests.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn requests_come_in_order_with_the_event_and_its_signature() {
    let (url, mut requests) = server(&[204]).await;
    let hooks = hooks(&url, Some("key".into()));
    hooks.tell(&event(Available));
    hooks.tell(&event(Unavailable));
    for (number, name) in [(1, "available"), (2, "unavailable")] {
        let request = next(&mut requests).await;
        let json = request.json();
        assert_eq!((&json["event"], &json["stream"]), (&name.into(), &"live/cam".into()));
        assert_eq!(json["id"], format!("5-{number}"));
        assert_eq!(request.header("x-punctual-event-id"), json["id"].as_str());
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert!(request.header("authorization").unwrap().starts_with("Basic "));
        let mut hash = Hmac::<Sha256>::new_from_slice(b"key").unwrap();
        let timestamp = request.header("x-punctual-timestamp").unwrap();
        hash.update(format!("{timestamp}.").as_bytes());
        hash.update(&request.body);
        let hash: String =
            hash.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(request.header("x-punctual-signature"), Some(&*format!("sha256={hash}")));
    }
    assert!(!format!("{hooks:?}").contains("hush"), "{hooks:?}");
    hooks.end(Duration::from_secs(30)).await;
}

#[tokio::test]
async fn a_server_that_fails_is_asked_again_with_the_same_event() {
    let (url, mut requests) = server(&[500, 200]).await;
    let hooks = hooks(&url, None);
    hooks.tell(&event(Available));
    let [first, second] = [next(&mut requests).await, next(&mut requests).await];
    assert_eq!(first.body, second.body);
    assert_eq!(counts(&hooks, 1).await, [(Available, HookResult::Done, 1)]);
}

#[tokio::test]
async fn a_request_that_a_server_refuses_is_not_repeated() {
    let (url, mut requests) = server(&[400, 200]).await;
    let hooks = hooks(&url, None);
    hooks.tell(&event(Available));
    hooks.tell(&event(Unavailable));
    assert_eq!(next(&mut requests).await.json()["event"], "available");
    assert_eq!(next(&mut requests).await.json()["event"], "unavailable");
    let expected = [(Available, HookResult::Failed, 1), (Unavailable, HookResult::Done, 1)];
    assert_eq!(counts(&hooks, 2).await, expected);
}

#[tokio::test]
async fn a_server_that_does_not_answer_delays_nobody_and_loses_the_newest() {
    let (url, mut requests) = server(&[]).await;
    let hooks = hooks(&url, None);
    hooks.tell(&event(Available));
    next(&mut requests).await;
    let start = std::time::Instant::now();
    (0..300).for_each(|_| hooks.tell(&event(Available)));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(hooks.counts(), [(Available, HookResult::LeftOut, 300 - 256)]);
    // The end does not wait for ever either.
    timeout(Duration::from_secs(20), hooks.end(Duration::from_millis(100))).await.unwrap();
}

/// The counts once this number of events was sent or given up.
async fn counts(hooks: &Hooks, count: u64) -> Vec<(HookEventKind, HookResult, u64)> {
    let there = async {
        while hooks.counts().iter().map(|it| it.2).sum::<u64>() < count {
            sleep(Duration::from_millis(10)).await;
        }
        hooks.counts()
    };
    timeout(Duration::from_secs(60), there).await.unwrap()
}
