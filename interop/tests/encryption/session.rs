//! A stream between us and a peer, through a relay that sees the encryption and loses some packets.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use bytes::Bytes;
use interop::{Direction, End, Folder, Process, Program, Role, Tap, free_port, wait_until_bound};
use punctual::{Config, Error, Listener, Socket};
use tokio::time::{sleep, timeout};

/// A peer to be started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer<'a> {
    pub(crate) program: Program,
    pub(crate) role: Role,
    /// Which way the stream is to go.
    pub(crate) direction: Direction,
    pub(crate) passphrase: Option<&'a str>,
    /// More options, as the program writes them.
    pub(crate) options: &'a str,
}

/// We and a peer, connected.
pub(crate) struct Session {
    pub(crate) socket: Socket,
    program: Program,
    process: Process,
    /// Kept, for a program that reads its end stops.
    input: Option<ChildStdin>,
    /// The key that each original names, in the order of sending.
    keys: Arc<Mutex<Vec<&'static str>>>,
    /// The file that the peer received, or a copy of the one that it sent.
    file: PathBuf,
    _tap: Tap,
}

impl Peer<'_> {
    /// Starts it: it calls `port`, or listens there.
    pub(crate) fn start(&self, port: u16, folder: &Folder) -> Process {
        let mut end = End::new(self.role, port).with_options(self.options);
        end.passphrase = self.passphrase;
        let file = folder.file("file");
        match self.direction {
            Direction::ToUs => Process::start("peer", self.program.sender(&end, &file), folder),
            Direction::FromUs => {
                let (command, to_stdout) = self.program.receiver(&end, &file);
                let output = to_stdout.then_some(file.as_path());
                Process::start_with_output("peer", command, folder, output)
            }
        }
    }

    /// Meets it, over a link without losses.
    pub(crate) async fn meet(&self, ours: Config, folder: &Folder) -> Result<Session, Error> {
        self.meet_losing(ours, u32::MAX, folder).await
    }

    /// Meets it, over a link that loses every `each`th original.
    pub(crate) async fn meet_losing(
        &self,
        ours: Config,
        each: u32,
        folder: &Folder,
    ) -> Result<Session, Error> {
        let capture = folder.file("session.pcap");
        let keys = Arc::<Mutex<Vec<&'static str>>>::default();
        let seen = Arc::clone(&keys);
        let lose = move |count: u32, datagram: &[u8]| {
            let Some(flags) = datagram.get(4) else { return false };
            if flags & RETRANSMITTED != 0 {
                return false;
            }
            let key = KEYS[usize::from(flags >> 3 & 3)];
            seen.lock().expect("no thread panics with it").push(key);
            count.is_multiple_of(each)
        };
        let (process, socket, tap) = match self.role {
            Role::Listener => {
                let port = free_port();
                let process = self.start(port, folder);
                wait_until_bound(port);
                let tap = Tap::start_losing(port, &capture, lose);
                let socket = Socket::connect(local(tap.port()), ours).await?;
                (process, socket, tap)
            }
            Role::Caller => {
                let listener = listener(ours).await;
                let tap = Tap::start_losing(listener.local_addr().port(), &capture, lose);
                let process = self.start(tap.port(), folder);
                (process, call_for(&listener).await?, tap)
            }
        };
        let mut session = Session {
            socket,
            program: self.program,
            process,
            input: None,
            keys,
            file: folder.file("file"),
            _tap: tap,
        };
        let sends = self.direction == Direction::ToUs;
        if let Some(line) = self.program.says_when_connected(self.role, sends).filter(|_| sends) {
            session.process.wait_for_line(line);
        }
        Ok(session)
    }
}

impl Session {
    /// Streams this number of messages, which must arrive as they were sent.
    pub(crate) async fn stream(&mut self, direction: Direction, messages: u32) {
        match direction {
            Direction::ToUs => self.take(messages).await,
            Direction::FromUs => self.give(messages).await,
        }
    }

    /// Sends this number of messages and some more, whether or not anybody can read them.
    pub(crate) async fn offer(&mut self, direction: Direction, messages: u32) {
        if direction == Direction::ToUs {
            let feeder = feed(self.process.stdin(), messages + PADDING);
            self.input = Some(feeder.join().expect("it does not panic"));
        } else {
            for i in 0..messages {
                self.socket.send(message(i)).await.expect("the connection is established");
                sleep(INTERVAL).await;
            }
        }
    }

    /// Waits until this number of packets has come, or has been acknowledged.
    pub(crate) async fn wait_for_packets(&self, direction: Direction, packets: u64) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let statistics = self.socket.statistics();
            let done = match direction {
                Direction::ToUs => statistics.packets_received >= packets,
                Direction::FromUs => {
                    statistics.packets_sent >= packets && statistics.flight_size == 0
                }
            };
            if done {
                return;
            }
            assert!(Instant::now() < deadline, "{statistics:?}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the peer has written a line with `text` in it.
    pub(crate) fn wait_for_line(&mut self, text: &str) {
        self.process.wait_for_line(text);
    }

    /// The keys of the originals that came by, one after the other.
    pub(crate) fn keys_seen(&self) -> Vec<&'static str> {
        let mut keys = self.keys.lock().expect("no thread panics with it").clone();
        keys.dedup();
        keys
    }

    /// Receives the peer's messages.
    async fn take(&mut self, messages: u32) {
        self.take_keys(messages, 0).await;
    }

    /// Receives this number of messages; from a peer that sends its own clip, more of them until it
    /// has used this number of keys one after the other: libsrt 1.5.1 changes keys late when a
    /// program writes in bursts (250 to 450 packets under one key were seen, where 200 were
    /// configured).
    pub(crate) async fn take_keys(&mut self, messages: u32, keys: usize) {
        let size = size_of(messages);
        let reads = self.program.reads_standard_input();
        let feeder = reads.then(|| feed(self.process.stdin(), messages + PADDING));
        let (mut received, mut total) = (Vec::new(), 0);
        while total < size || (!reads && self.keys_seen().len() < keys) {
            let next = timeout(TIMEOUT, self.socket.recv()).await.expect("the stream goes on");
            let payload = next.expect("the connection is established").payload;
            total += payload.len();
            received.push(payload);
        }
        if let Some(feeder) = feeder {
            self.check(&received, &all(messages + PADDING));
            self.input = Some(feeder.join().expect("it does not panic"));
        } else {
            wait_for_size(&self.file, total);
            self.check(&received, &fs::read(&self.file).expect("the peer wrote its messages"));
        }
    }

    /// The messages are the ones that were sent, except those for which the peer named a wrong key.
    ///
    /// libsrt 1.5.1 reads which key is in use and encrypts in two steps, and its other thread may
    /// change keys between them: the last packet under an old flag is then encrypted with the new
    /// key, which no receiver can know. Only that packet may differ.
    fn check(&self, received: &[Bytes], sent: &[u8]) {
        let keys = self.keys.lock().expect("no thread panics with it").clone();
        let mut at = 0;
        for (i, message) in received.iter().enumerate() {
            let original = &sent[at..at + message.len()];
            at += message.len();
            if original != message {
                assert_ne!(keys[i], keys[i + 1], "message {i} arrived changed");
                println!("libsrt named the old key for packet {i}, the first under a new one");
            }
        }
    }

    /// Sends, with padding after it, because programs hold back the last data that they get.
    async fn give(&mut self, messages: u32) {
        let size = size_of(messages);
        let deadline = Instant::now() + TIMEOUT;
        for i in 0.. {
            if i >= messages && (written(&self.file) >= size || Instant::now() > deadline) {
                break;
            }
            self.socket.send(message(i)).await.expect("the connection is established");
            sleep(INTERVAL).await;
        }
        let received = fs::read(&self.file).expect("something was received");
        let same = received.iter().zip(all(messages)).take_while(|(a, b)| **a == *b).count();
        assert!(same >= size, "{same} bytes as sent of {size}; {} received", received.len());
    }
}

/// A listener at a free port.
pub(crate) async fn listener(config: Config) -> Listener {
    Listener::bind(local(0), config).await.expect("a port is free")
}

/// The next caller, let in if it fits.
pub(crate) async fn call_for(listener: &Listener) -> Result<Socket, Error> {
    let call = timeout(TIMEOUT, listener.incoming()).await.expect("the peer calls");
    call.expect("the listener is open").accept().await
}

/// Our program, which listens at a port with this passphrase and writes to `received`.
pub(crate) fn our_program(passphrase: &str, received: &Path, folder: &Folder) -> (Process, u16) {
    let port = free_port();
    let end = End::new(Role::Listener, port).with_passphrase(passphrase);
    let (command, _) = Program::Punctual.receiver(&end, received);
    let process = Process::start("punctual", command, folder);
    wait_until_bound(port);
    (process, port)
}

/// Feeds this number of messages to a program, and waits until they are in the file.
pub(crate) fn feed_until_received(process: &mut Process, received: &Path, messages: u32) {
    let input = feed(process.stdin(), messages + PADDING).join().expect("it does not panic");
    wait_for_size(received, size_of(messages));
    assert!(fs::read(received).expect("it was written").starts_with(&all(messages)));
    drop(input);
}

/// The options of an end with this passphrase.
pub(crate) fn secret(passphrase: &str) -> Config {
    let config = Config::default().with_latency(LATENCY).expect("in range");
    config.with_passphrase(passphrase).expect("a legal length")
}

/// The options of an end with this passphrase or without one.
pub(crate) fn config(passphrase: Option<&str>) -> Config {
    secret(passphrase.unwrap_or_default())
}

/// Writes messages into a program at the pace of a stream.
fn feed(mut input: ChildStdin, messages: u32) -> thread::JoinHandle<ChildStdin> {
    thread::spawn(move || {
        for i in 0..messages {
            // A test that is over takes its program with it.
            if input.write_all(&message(i)).is_err() {
                break;
            }
            thread::sleep(INTERVAL);
        }
        input
    })
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A message that says which one it is.
fn message(i: u32) -> Bytes {
    let number = i.to_be_bytes();
    (0..SIZE)
        .map(|at| number[at % 4].wrapping_add(u8::try_from(at / 4 % 251).expect("small")))
        .collect()
}

fn all(messages: u32) -> Vec<u8> {
    (0..messages).flat_map(message).collect()
}

fn size_of(messages: u32) -> usize {
    usize::try_from(messages).expect("it is small") * SIZE
}

fn written(path: &Path) -> usize {
    fs::metadata(path).map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX))
}

fn wait_for_size(path: &Path, size: usize) {
    let deadline = Instant::now() + TIMEOUT;
    while written(path) < size {
        assert!(Instant::now() < deadline, "only {} bytes of {size}", written(path));
        thread::sleep(Duration::from_millis(10));
    }
}

/// The place of the retransmission flag in a data packet's header, in its fifth byte; and the two
/// bits that name the key, read as a number.
const RETRANSMITTED: u8 = 0x04;
const KEYS: [&str; 4] = ["clear", "even", "odd", "both"];

const SIZE: usize = 1_316;
const INTERVAL: Duration = Duration::from_millis(1);
const LATENCY: Duration = Duration::from_millis(250);
const TIMEOUT: Duration = Duration::from_secs(20);
/// Messages after the ones that are checked.
const PADDING: u32 = 60;
