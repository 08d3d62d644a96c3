//! A live stream between the two sides of an emulator: over the TCP of this system's kernel, or a
//! stream of bytes of ours.

mod arrivals;
mod counters;

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use punctual::{Bitrate, Config, Instant, Listener, Socket, Timer, now};
use punctual_emulator::{Side, TunEmulator};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime;
use tokio::sync::oneshot;

pub use self::arrivals::Arrivals;
pub use self::counters::Counters;

/// A live stream from the left side to the right: a source writes bytes at a constant rate, all of
/// them however long it has to wait, and a sink reads what has arrived.
#[derive(Clone, Debug)]
pub struct LiveStream {
    /// The protocol that carries it.
    pub protocol: LiveProtocol,
    /// The bit rate of the source.
    pub rate: Bitrate,
    /// The bytes of each write of the source.
    pub chunk: usize,
    /// The stream goes on for this long at least, after its first byte.
    pub least: Duration,
    /// It goes on until this number of bytes has arrived.
    pub wanted: u64,
    /// It ends after this time in any case.
    pub most: Duration,
}

/// A protocol that carries a live stream.
#[derive(Clone, Debug)]
pub enum LiveProtocol {
    /// A TCP connection of the kernel, whose congestion control has this name: `cubic`, `bbr`,
    /// `reno`.
    KernelTcp(String),
    /// A connection of ours for a stream of bytes, with these options at both ends.
    Punctual(Box<Config>),
}

/// The outcome of a stream.
#[derive(Clone, Debug)]
pub struct StreamResult {
    /// The bytes that the sink read, by the time since the source's first byte.
    pub arrivals: Arrivals,
    /// The sender's segments, of TCP.
    pub counters: Counters,
}

impl LiveStream {
    /// Carries the stream between the sides of an emulator, on which there is nobody else, and
    /// waits for its end.
    ///
    /// # Errors
    ///
    /// A side cannot be entered, the kernel has no such congestion control, or the connection does
    /// not come about or breaks.
    pub fn carry(&self, emulator: &TunEmulator) -> Result<StreamResult, String> {
        let (listening, is_listening) = oneshot::channel();
        let (starting, started) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let (received, sent) = thread::scope(|scope| {
            let receiving = scope
                .spawn(|| on_side(emulator, Side::Right, self.receive(listening, started, ending)));
            let sent =
                on_a_thread(scope.spawn(|| {
                    on_side(emulator, Side::Left, self.send(is_listening, starting, ended))
                }));
            (on_a_thread(receiving), sent)
        });
        match (received, sent) {
            // The end that was left alone does not know why.
            (Err(reason), Err(_)) if reason != LEFT_ALONE => Err(reason),
            (_, Err(reason)) | (Err(reason), _) => Err(reason),
            (Ok(arrivals), Ok(counters)) => Ok(StreamResult { arrivals, counters }),
        }
    }

    /// Connects and writes at the source's rate, until the sink has seen enough.
    async fn send(
        &self,
        is_listening: oneshot::Receiver<()>,
        starting: oneshot::Sender<Instant>,
        ended: oneshot::Receiver<()>,
    ) -> Result<Counters, String> {
        is_listening.await.map_err(|_| LEFT_ALONE)?;
        let mut connection = self.protocol.connect().await?;
        let start = now();
        // A sink that is gone has said why.
        let _ = starting.send(start);
        tokio::select! {
            written = self.write(&mut connection, start) => written.map_err(|error| told(&error))?,
            // The sink is done, or has failed and says why.
            _ = ended => {}
        }
        Counters::of_this_thread().map_err(|error| told(&error))
    }

    /// Writes bytes as the source makes them, for as long as they are taken.
    async fn write(&self, to: &mut (impl AsyncWrite + Unpin), start: Instant) -> io::Result<()> {
        let mut timer = Timer::new()?;
        let chunk = vec![0; self.chunk];
        let step = self.rate.time_for(self.chunk as u64);
        let mut due = start;
        loop {
            due += step;
            timer.sleep_until(due).await;
            to.write_all(&chunk).await?;
        }
    }

    /// Takes the connection and reads until the stream has gone on for long enough.
    async fn receive(
        &self,
        listening: oneshot::Sender<()>,
        started: oneshot::Receiver<Instant>,
        ending: oneshot::Sender<()>,
    ) -> Result<Arrivals, String> {
        let listener = self.protocol.listen().await?;
        // A source that is gone has said why.
        let _ = listening.send(());
        // A call of ours needs both at once: it is answered when it is accepted.
        let started = async { started.await.map_err(|_| LEFT_ALONE.to_owned()) };
        let (start, mut connection) = tokio::try_join!(started, listener.accept())?;
        let mut timer = Timer::new().map_err(|error| told(&error))?;
        let mut arrivals = Arrivals::default();
        let mut buffer = vec![0; ROOM];
        let end = loop {
            let time = now().saturating_since(start);
            let is_enough = arrivals.bytes() >= self.wanted && time >= self.least;
            if is_enough || time >= self.most {
                break Ok(arrivals);
            }
            let next = if time < self.least { self.least } else { self.most };
            tokio::select! {
                read = connection.read(&mut buffer) => match read.map_err(|error| told(&error)) {
                    Ok(0) => break Err(LEFT_ALONE.to_owned()),
                    Ok(bytes) => arrivals.add(now().saturating_since(start), bytes as u64),
                    Err(error) => break Err(error),
                },
                () = timer.sleep_until(start + next) => {}
            }
        };
        // The source need not wait for news of the end over the link.
        let _ = ending.send(());
        end
    }
}

impl LiveProtocol {
    /// Connects from this thread's side to the sink.
    async fn connect(&self) -> Result<Box<dyn AsyncWrite + Unpin>, String> {
        match self {
            Self::KernelTcp(control) => {
                let socket = TcpSocket::new_v4().map_err(|error| told(&error))?;
                sockopt::set_tcp_congestion(&socket, control)
                    .map_err(|error| format!("TCP with `{control}`: {error}"))?;
                Ok(Box::new(socket.connect(address()).await.map_err(|error| told(&error))?))
            }
            Self::Punctual(config) => {
                let socket = Socket::connect(address(), Config::clone(config)).await;
                Ok(Box::new(socket.map_err(|error| told(&error))?.byte_stream()))
            }
        }
    }

    /// Listens on this thread's side.
    async fn listen(&self) -> Result<WaitingSink, String> {
        Ok(match self {
            Self::KernelTcp(_) => WaitingSink::ToTcp(
                TcpListener::bind(address()).await.map_err(|error| told(&error))?,
            ),
            Self::Punctual(config) => {
                let listener = Listener::bind(address(), Config::clone(config)).await;
                WaitingSink::ToUs(listener.map_err(|error| told(&error))?)
            }
        })
    }
}

/// A sink that waits for its source.
enum WaitingSink {
    ToTcp(TcpListener),
    ToUs(Listener),
}

impl WaitingSink {
    async fn accept(&self) -> Result<Box<dyn AsyncRead + Unpin>, String> {
        match self {
            Self::ToTcp(listener) => {
                Ok(Box::new(listener.accept().await.map_err(|error| told(&error))?.0))
            }
            Self::ToUs(listener) => {
                let socket = listener.accept().await.map_err(|error| told(&error))?;
                Ok(Box::new(socket.byte_stream()))
            }
        }
    }
}

/// Whether this process can carry a stream over TCP: it may make the two sides, and the kernel has
/// the congestion control.
///
/// # Errors
///
/// The error says what is missing.
pub fn check_tcp(control: &str) -> Result<(), String> {
    punctual_emulator::check_tun().map_err(|error| told(&error))?;
    let known =
        std::fs::read_to_string(AVAILABLE).map_err(|error| format!("{AVAILABLE}: {error}"))?;
    if known.split_whitespace().any(|known| known == control) {
        return Ok(());
    }
    let known = known.trim();
    Err(format!(
        "the kernel has no TCP with `{control}` (it has {known}): `modprobe tcp_{control}`"
    ))
}

/// Runs a future in this thread, whose sockets are on that side of the emulator from now on.
fn on_side<T>(
    emulator: &TunEmulator,
    side: Side,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let wrong = |error: io::Error| format!("the {side} side: {error}");
    emulator.enter(side).map_err(wrong)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(wrong)?;
    runtime.block_on(work)
}

fn on_a_thread<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn told(error: &dyn std::error::Error) -> String {
    error.to_string()
}

/// Where the sink listens.
fn address() -> SocketAddr {
    (Side::Right.ipv4(), PORT).into()
}

/// The names of the congestion controls that the kernel has loaded.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const LEFT_ALONE: &str = "the other end of the connection is gone";
const PORT: u16 = 4_200;
/// Bytes that are read at a time.
const ROOM: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use punctual_emulator::TunConfig;
    use punctual_netem::LinkConfig;

    use super::*;

    /// Whether this process may carry such streams. If not, says so past the test harness's
    /// capture, so that nobody takes a skipped test for a passed one.
    fn is_allowed(control: &str) -> bool {
        let Err(problem) = check_tcp(control) else { return true };
        assert!(std::env::var("PUNCTUAL_REQUIRE_PEERS").as_deref() != Ok("1"), "{problem}");
        // The harness may be in the middle of a line.
        let _ = writeln!(io::stdout(), "\nskipped: {problem}");
        false
    }

    fn emulator() -> TunEmulator {
        let link = LinkConfig::default().with_delay(Duration::from_millis(10));
        let config =
            TunConfig { up: link.clone().into(), down: link.into(), ..TunConfig::default() };
        TunEmulator::start(config).unwrap()
    }

    fn stream(protocol: LiveProtocol) -> LiveStream {
        LiveStream {
            protocol,
            rate: Bitrate::from_mbps(8),
            chunk: 1_000,
            least: Duration::from_millis(200),
            wanted: 300_000,
            most: Duration::from_secs(20),
        }
    }

    #[test]
    fn a_stream_arrives_at_its_rate_until_enough_is_there() {
        if !is_allowed("cubic") {
            return;
        }
        for protocol in [
            LiveProtocol::KernelTcp("cubic".to_owned()),
            LiveProtocol::Punctual(Box::new(Config::file())),
        ] {
            let is_tcp = matches!(protocol, LiveProtocol::KernelTcp(_));
            let StreamResult { arrivals, counters } = stream(protocol).carry(&emulator()).unwrap();
            assert!(arrivals.bytes() >= 300_000);
            // A megabyte a second, and the one-way delay.
            let there = arrivals.time_of(300_000).unwrap();
            assert!(there >= Duration::from_millis(310), "{there:?}");
            assert!(arrivals.bytes_at(Duration::from_millis(210)) <= 200_000);
            assert_eq!(counters.sent >= 300_000 / 1_448, is_tcp, "{counters:?}");
            assert!(counters.retransmitted <= counters.sent);
        }
    }

    #[test]
    fn a_control_that_the_kernel_does_not_have_is_named() {
        if !is_allowed("cubic") {
            return;
        }
        let qubic = LiveProtocol::KernelTcp("qubic".to_owned());
        let error = stream(qubic).carry(&emulator()).unwrap_err();
        assert!(error.contains("TCP with `qubic`"), "{error}");
        let missing = check_tcp("qubic").unwrap_err();
        assert!(missing.contains("cubic") && missing.contains("modprobe"), "{missing}");
    }
}
