//! The relay: hears clients, and gives each one its links.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use punctual_io::{Datagram, ReceiveBuffers, UdpSocket, now};
use punctual_netem::{LinkEnd, LinkProfile};
use punctual_units::Instant;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};

use crate::client::{Client, ClientLinks};
use crate::realtime::run_before_others;
use crate::report::EmulatorReport;
use crate::udp::bind;

/// The target of an [`Emulator`], and its links.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// Where clients are heard.
    pub listen: SocketAddr,
    /// Where their datagrams go to.
    pub target: SocketAddr,
    /// The link from each client to the target. Default perfect.
    pub up: LinkProfile,
    /// The link from the target to each client, likewise. Default perfect.
    pub down: LinkProfile,
    /// Whether timelines and traces begin anew with the first datagram of each client, so that each
    /// meets the same. Default false: they begin with the first datagram of all, so that a client
    /// that comes later, or comes again from another port, meets what happens at that time.
    pub each_client: bool,
    /// The seed of the links' decisions; each link of each client has a seed made from this one.
    /// Default 1.
    pub seed: u64,
    /// Clients at a time, at most. Default 1024.
    pub max_clients: usize,
    /// Silence, both ways, after which a client is forgotten. Default 60 s.
    pub client_timeout: Duration,
    /// Gets a note of each datagram that passes an end of a link, in the order of each client.
    /// Notes wait here until they are taken, however many there are. Default none.
    pub watch: Option<mpsc::UnboundedSender<PassedDatagram>>,
}

/// A datagram that passed an end of a link.
#[derive(Clone, Debug)]
pub struct PassedDatagram {
    /// When: at the entrance, as it came; at the exit, as it was really sent.
    pub at: Instant,
    /// Its direction.
    pub way: LinkDirection,
    /// The end of the link.
    pub gate: LinkEnd,
    /// The content of the datagram.
    pub content: Bytes,
}

/// The direction of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkDirection {
    /// From a client to the target.
    Up,
    /// From the target to a client.
    Down,
}

impl EmulatorConfig {
    /// A perfect network between `listen` and `target`.
    pub fn new(listen: SocketAddr, target: SocketAddr) -> Self {
        Self {
            listen,
            target,
            up: LinkProfile::default(),
            down: LinkProfile::default(),
            each_client: false,
            seed: 1,
            max_clients: 1_024,
            client_timeout: Duration::from_secs(60),
            watch: None,
        }
    }

    /// Notes datagrams that pass an end of a link, if somebody watches.
    pub(super) fn note(&self, at: Instant, way: LinkDirection, gate: LinkEnd, datagrams: &[Bytes]) {
        let Some(watch) = &self.watch else { return };
        for content in datagrams {
            // A watcher that is gone has seen enough.
            let _ = watch.send(PassedDatagram { at, way, gate, content: content.clone() });
        }
    }
}

/// A bad network between any two UDP programs, in real time.
///
/// Datagrams for its port go through a [`Link`](punctual_netem::Link) to the target, and the
/// target's answers through another link back. Each client has its own pair of links and its own
/// port towards the target, as behind a NAT. It runs until it is stopped or dropped.
///
/// It works in a separate thread, so that other work of the program does not delay packets.
#[derive(Debug)]
pub struct Emulator {
    local: SocketAddr,
    shared: Arc<Shared>,
    /// Ends the thread when it is dropped.
    running: oneshot::Sender<()>,
    /// Completes, with an error, when the thread has ended.
    ended: oneshot::Receiver<()>,
}

impl Emulator {
    /// Begins to relay.
    ///
    /// # Errors
    ///
    /// The port cannot be bound, or the system has no thread to give.
    pub async fn start(config: EmulatorConfig) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (running, dropped) = oneshot::channel::<()>();
        let (ending, ended) = oneshot::channel();
        let (ready, started) = oneshot::channel();
        thread::Builder::new().name("emulator".to_owned()).spawn(move || {
            run_before_others();
            runtime.block_on(async {
                match Shared::bind(config) {
                    Ok((shared, local)) => {
                        let task = tokio::spawn(hear(Arc::clone(&shared)));
                        let _ = ready.send(Ok((shared, local)));
                        // An error is the news that the emulator was dropped.
                        let _ = dropped.await;
                        task.abort();
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            });
            // The sockets are closed with the runtime, and only then is it said.
            drop(runtime);
            drop(ending);
        })?;
        let (shared, local) = started.await.map_err(io::Error::other)??;
        Ok(Self { local, shared, running, ended })
    }

    /// Where clients are heard.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The totals so far.
    pub fn report(&self) -> EmulatorReport {
        self.shared.report()
    }

    /// Ends it, waits until its port is free, and returns its totals. Packets in the links are
    /// lost.
    pub async fn stop(self) -> EmulatorReport {
        let report = self.report();
        let Self { shared, running, ended, .. } = self;
        drop((shared, running));
        let _ = ended.await;
        report
    }
}

/// The state that the tasks of an emulator share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: EmulatorConfig,
    /// Where clients are heard, and from where answers are sent to them.
    pub(super) socket: UdpSocket,
    start: Instant,
    /// The time of the first datagram.
    first: OnceLock<Instant>,
    clients: Mutex<HashMap<SocketAddr, ClientHandle>>,
    /// The totals without the present clients' links.
    gone: Mutex<EmulatorReport>,
}

/// A client as it is seen from outside its task.
#[derive(Debug)]
struct ClientHandle {
    inbox: mpsc::Sender<Arrivals>,
    links: Arc<Mutex<ClientLinks>>,
}

/// Datagrams of one client, and when they came.
pub(super) type Arrivals = (Instant, Vec<Bytes>);

impl Shared {
    fn bind(config: EmulatorConfig) -> io::Result<(Arc<Self>, SocketAddr)> {
        let socket = bind(config.listen)?;
        let local = socket.local_addr();
        let (clients, gone) = (Mutex::default(), Mutex::default());
        let first = OnceLock::new();
        Ok((Arc::new(Self { config, socket, start: now(), first, clients, gone }), local))
    }

    fn report(&self) -> EmulatorReport {
        let mut report = lock(&self.gone).clone();
        for client in lock(&self.clients).values() {
            lock(&client.links).add_to(&mut report);
        }
        report.elapsed = now() - self.start;
        report
    }

    /// Forgets a client, but not what its links did.
    pub(super) fn forget(&self, client: SocketAddr) {
        let handle = lock(&self.clients).remove(&client);
        if let Some(handle) = handle {
            lock(&handle.links).add_to(&mut lock(&self.gone));
        }
    }

    /// Hands datagrams to the task of their client; a new client gets one.
    fn hand_over(self: &Arc<Self>, from: SocketAddr, mut arrivals: Arrivals) -> io::Result<()> {
        let mut clients = lock(&self.clients);
        if let Some(handle) = clients.get(&from) {
            match handle.inbox.try_send(arrivals) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::TrySendError::Full((_, datagrams))) => {
                    lock(&self.gone).overruns += datagrams.len() as u64;
                    return Ok(());
                }
                // Its task is just ending. The client begins anew.
                Err(mpsc::error::TrySendError::Closed(unsent)) => arrivals = unsent,
            }
        }
        if clients.len() >= self.config.max_clients {
            lock(&self.gone).refused += arrivals.1.len() as u64;
            return Ok(());
        }
        let mut gone = lock(&self.gone);
        let zero = match self.config.each_client {
            true => arrivals.0,
            false => *self.first.get_or_init(|| arrivals.0),
        };
        let links = Arc::new(Mutex::new(ClientLinks::new(&self.config, gone.clients, zero)));
        gone.clients += 1;
        drop(gone);
        let (inbox, from_inbox) = mpsc::channel(INBOX);
        // A new channel has room.
        let _ = inbox.try_send(arrivals);
        let client = Client::new(Arc::clone(self), from, Arc::clone(&links), from_inbox)?;
        if let Some(ended) = clients.insert(from, ClientHandle { inbox, links }) {
            lock(&ended.links).add_to(&mut lock(&self.gone));
        }
        drop(clients);
        tracing::info!("client {from}");
        tokio::spawn(client.run());
        Ok(())
    }
}

/// Hears clients until it is aborted.
async fn hear(shared: Arc<Shared>) {
    let mut buffers = ReceiveBuffers::default();
    let mut arrived: Vec<(SocketAddr, Vec<Bytes>)> = Vec::new();
    loop {
        let take = |Datagram { from, payload, .. }: Datagram| match arrived
            .last_mut()
            .filter(|(client, _)| *client == from)
        {
            Some((_, datagrams)) => datagrams.push(payload),
            None => arrived.push((from, vec![payload])),
        };
        let report = |error: &io::Error| tracing::debug!("receiving: {error}");
        buffers.wait(&shared.socket, take, report).await;
        let at = now();
        for (from, datagrams) in arrived.drain(..) {
            if let Err(error) = shared.hand_over(from, (at, datagrams)) {
                tracing::warn!("client {from} cannot be served: {error}");
            }
        }
    }
}

/// Locks. A holder that panicked left consistent data, as nothing here spans two calls.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Batches of a client that wait for its task.
const INBOX: usize = 1_024;
