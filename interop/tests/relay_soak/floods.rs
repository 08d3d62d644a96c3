//! An honest stream beside callers and clients that are not.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use interop::{Folder, Relay, retry_if_stalled};
use punctual::{CloseReason, Error, Socket};
use punctual_testbed::Random;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::TURNS;
use crate::caller::{call, name, options, publish, view};
use crate::judge::{Got, Judge};

#[test]
fn a_viewer_loses_nothing_beside_calls_to_absent_streams() {
    beside("absent_streams", |place| {
        let answers = place.call_without_end(&["read:nobody/here"], None);
        assert!(answers >= 100, "{answers} calls were answered");
    });
}

#[test]
fn a_viewer_loses_nothing_beside_callers_that_are_refused() {
    beside("refused_callers", |place| {
        let ids = ["read:secret", "publish:secret", "publish:other:nobody:wrong", "nonsense"];
        let answers = place.call_without_end(&ids, Some("a wrong passphrase"));
        assert!(answers >= 100, "{answers} calls were answered");
    });
}

#[test]
fn a_viewer_loses_nothing_beside_slow_and_hostile_viewers() {
    beside("hostile_viewers", |place| {
        let slow = place.runtime.spawn(take_nothing(place.relay, place.stop.clone()));
        send_datagrams(place.relay, &place.stop);
        let connected = place.runtime.block_on(slow).expect("no caller panics");
        assert_eq!(connected, SLOW, "slow viewers are admitted");
    });
}

#[test]
fn a_viewer_loses_nothing_beside_hostile_http() {
    beside("hostile_http", |place| {
        let (http, stop) = (place.http, &place.stop);
        thread::scope(|scope| {
            scope.spawn(|| hold_idle(http, stop));
            scope.spawn(|| send_heads_slowly(http, stop));
            scope.spawn(|| send_large_bodies(http, stop));
            scope.spawn(|| ask_by_another_name(http, stop));
        });
    });
}

/// The place of a flood.
struct Place {
    runtime: Runtime,
    relay: SocketAddr,
    http: SocketAddr,
    /// Whether the flood is to end.
    stop: Arc<AtomicBool>,
}

/// An honest publisher and an honest viewer beside a flood: the viewer gets each message, and the
/// operator gets answers when the flood is over.
fn beside(flood: &str, begin: impl Fn(&Place)) {
    retry_if_stalled(|| {
        let _turn = TURNS.take(1);
        let folder = Folder::of(&format!("beside_{flood}"));
        let lines = "[stream.secret]\npublish-passphrase = \"the right passphrase\"\n\
                     read-passphrase = \"the right passphrase\"\n";
        let relay = Relay::start(&folder, lines);
        let url = relay.url("");
        let http = url.trim_start_matches("http://").parse().expect("an address");
        let place = Place {
            runtime: Runtime::new().expect("threads can be started"),
            relay: SocketAddr::from((Ipv4Addr::LOCALHOST, relay.port)),
            http,
            stop: Arc::default(),
        };
        let honest = Runtime::new().expect("threads can be started");
        let sockets = honest.block_on(Honest::connect(place.relay));
        let before = relay.json("/v1/connections").as_array().map(Vec::len);
        let stop = Arc::clone(&place.stop);
        let watch = thread::spawn(move || {
            thread::sleep(TIME);
            stop.store(true, Ordering::Relaxed);
        });
        let viewing = honest.spawn(sockets.run(Arc::clone(&place.stop)));
        begin(&place);
        watch.join().expect("it only sleeps");
        let got = honest.block_on(viewing).expect("honest callers do not panic");
        // The first picture comes after both latencies.
        let least = u128::from(PICTURES) * (TIME - 3 * LATENCY).as_millis() / 1_000;
        assert!(u128::from(got.messages) >= least, "{got:?}");
        assert_eq!(got, Got { messages: got.messages, ..Got::default() });
        relay.wait_for("/v1/connections", |it| it.as_array().map(Vec::len) <= before);
        drop(place);
    });
}

/// The honest publisher and its viewer.
struct Honest {
    publisher: Socket,
    viewer: Socket,
}

impl Honest {
    async fn connect(relay: SocketAddr) -> Self {
        let id = |action: &str| format!("{action}:{}", name(0));
        let publisher =
            call(relay, &id("publish"), LATENCY).await.expect("a publisher is admitted");
        let viewer = call(relay, &id("read"), LATENCY).await.expect("a viewer is admitted");
        Self { publisher, viewer }
    }

    /// Publishes and views until the flood is over. Returns what the viewer got.
    async fn run(self, stop: Arc<AtomicBool>) -> Got {
        let mut judge = Judge::new(0);
        let error = tokio::select! {
            error = publish(&self.publisher, 0, PICTURES) => Some(error),
            error = view(&self.viewer, |message| judge.push(message)) => Some(error),
            () = told(&stop) => None,
        };
        assert!(error.is_none(), "an honest connection has ended: {error:?}");
        judge.finish()
    }
}

async fn told(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(10)).await;
    }
}

impl Place {
    /// Callers that call again as soon as they are refused. Returns the number of answers.
    fn call_without_end(&self, ids: &[&'static str], passphrase: Option<&'static str>) -> u64 {
        let answers = Arc::new(AtomicU64::new(0));
        let callers: Vec<_> = (0..CALLERS)
            .zip(ids.iter().copied().cycle())
            .map(|(_, id)| {
                let (relay, stop, answers) = (self.relay, self.stop.clone(), answers.clone());
                self.runtime.spawn(async move {
                    let mut options = options(id, LATENCY);
                    if let Some(passphrase) = passphrase {
                        options = options.with_passphrase(passphrase).expect("a passphrase");
                    }
                    while !stop.load(Ordering::Relaxed) {
                        match Socket::connect(relay, options.clone()).await {
                            Err(Error::Closed(CloseReason::Rejected(_))) => {
                                answers.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(_) => {}
                            Ok(_) => panic!("`{id}` was admitted"),
                        }
                    }
                })
            })
            .collect();
        for caller in callers {
            self.runtime.block_on(caller).expect("all are refused");
        }
        answers.load(Ordering::Relaxed)
    }
}

/// Viewers that are admitted and read nothing. Returns their number.
async fn take_nothing(relay: SocketAddr, stop: Arc<AtomicBool>) -> usize {
    let mut sockets = Vec::new();
    for _ in 0..SLOW {
        let latency = Duration::from_millis(20);
        sockets.extend(call(relay, &format!("read:{}", name(0)), latency).await.ok());
    }
    told(&stop).await;
    sockets.len()
}

/// Noise, inductions that nobody concludes, conclusions with invented cookies, and packets for
/// connections that are not there.
fn send_datagrams(relay: SocketAddr, stop: &AtomicBool) {
    let mut random = Random(1);
    while !stop.load(Ordering::Relaxed) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        for kind in 0..40 {
            let mut datagram = handshake(&mut random, kind % 2 == 0);
            match kind % 4 {
                0 | 1 => {}
                2 => {
                    let first = random.below(200) as usize;
                    datagram.truncate(first);
                }
                _ => {
                    datagram.iter_mut().for_each(|byte| *byte = random.next_u32().to_be_bytes()[0]);
                }
            }
            // The system may have no room for it at present.
            let _ = socket.send_to(&datagram, relay);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// A handshake of a caller: the induction, or a conclusion with an invented cookie.
fn handshake(random: &mut Random, is_induction: bool) -> Vec<u8> {
    let (version, field, kind) = if is_induction { (4, 2, 1) } else { (5, 1, u32::MAX) };
    let cookie = if is_induction { 0 } else { random.next_u32() };
    let (first, id) = (random.next_u32() >> 1, random.next_u32() >> 2);
    let header = [0x8000_0000, 0, 0, 0];
    let body = [version, field, first, 1_500, 8_192, kind, id, cookie, 0x0100_007F, 0, 0, 0];
    let extension = [0x0001_0003, 0x0001_0500, 0xBF, 0x0078_0078];
    let words = [&header[..], &body, if is_induction { &[] } else { &extension }].concat();
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Connections without a request, as many as one address may have and more.
fn hold_idle(http: SocketAddr, stop: &AtomicBool) {
    let held: Vec<_> = (0..300).filter_map(|_| TcpStream::connect(http).ok()).collect();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
    drop(held);
}

/// Heads that come byte by byte.
fn send_heads_slowly(http: SocketAddr, stop: &AtomicBool) {
    let head = b"GET /v1/streams HTTP/1.1\r\nHost: localhost\r\nX: ";
    let mut slow: Vec<_> = (0..30).filter_map(|_| TcpStream::connect(http).ok()).collect();
    let bytes = head.iter().chain(std::iter::repeat(&b'a'));
    for byte in bytes.take_while(|_| !stop.load(Ordering::Relaxed)) {
        slow.retain_mut(|stream| stream.write_all(&[*byte]).is_ok());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Bodies without end.
fn send_large_bodies(http: SocketAddr, stop: &AtomicBool) {
    let head =
        "POST /v1/config:check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n";
    let part = [b'#'; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(http) else { continue };
        let _ = stream.set_write_timeout(Some(Duration::from_millis(500)));
        let _ = stream.write_all(head.as_bytes());
        let begin = Instant::now();
        let goes_on = || !stop.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_secs(1);
        while goes_on() && stream.write_all(&part).is_ok() {}
    }
}

/// Requests by a name that is not the relay's, as a page of another site sends them.
fn ask_by_another_name(http: SocketAddr, stop: &AtomicBool) {
    let request = "GET /v1/streams HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(http) else { continue };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        // One that comes while the address has too many connections is closed without an answer.
        let _ = stream.read_to_string(&mut answer);
        let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 421 ");
        assert!(is_refused, "{answer}");
    }
}

/// The time of a flood.
const TIME: Duration = Duration::from_secs(4);
/// Pictures of the honest stream in a second.
const PICTURES: u32 = 50;
/// Callers at a time that are refused.
const CALLERS: usize = 16;
/// Viewers that read nothing.
const SLOW: usize = 20;
const LATENCY: Duration = Duration::from_millis(500);
