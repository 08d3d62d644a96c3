//! Publishers and viewers that come and go by chance.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual::{CloseReason, Error, RejectReason, Socket};
use punctual_testbed::Random;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::caller::{call, name, publish, view};
use crate::judge::Judge;
use crate::ledger::Ledger;

/// The size of a crowd, and its habits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Publishers, one for each stream.
    pub(crate) publishers: u16,
    pub(crate) viewers: u16,
    /// Pictures of each stream in a second: each is a message of 1,316 bytes.
    pub(crate) pictures_per_second: u32,
    /// The longest stay of a caller.
    pub(crate) longest_stay: Duration,
    /// The longest time for which a caller is away.
    pub(crate) longest_pause: Duration,
}

/// A crowd on several hosts, each with a share of the callers.
pub(crate) struct Crowd {
    hosts: Vec<Option<Runtime>>,
    common: Arc<Common>,
    seed: u64,
}

/// The knowledge that all callers share.
struct Common {
    relay: SocketAddr,
    habits: Habits,
    ledger: Arc<Ledger>,
    order: watch::Sender<Order>,
}

/// An order to all callers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    /// Come and go.
    Churn,
    /// Stay, or stay away.
    Hold,
    /// Leave, and do not come back.
    Leave,
}

impl Crowd {
    /// Sends a crowd to the relay.
    pub(crate) fn start(
        relay: SocketAddr,
        habits: Habits,
        ledger: &Arc<Ledger>,
        seed: u64,
    ) -> Self {
        let order = watch::Sender::new(Order::Churn);
        let common = Arc::new(Common { relay, habits, ledger: Arc::clone(ledger), order });
        let mut crowd = Self { hosts: (0..HOSTS).map(|_| None).collect(), common, seed };
        for host in 0..HOSTS {
            crowd.switch_on(host);
        }
        crowd
    }

    /// Takes the power from a host of its choice: its callers are gone without a word.
    pub(crate) fn cut_power(&mut self, random: &mut Random) -> u16 {
        let host = u16::try_from(random.below(HOSTS.into())).expect("there are few hosts");
        if let Some(runtime) = self.hosts[usize::from(host)].take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
        host
    }

    /// Starts the callers of a host.
    pub(crate) fn switch_on(&mut self, host: u16) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread can be started");
        let Habits { publishers, viewers, .. } = self.common.habits;
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut random = Random(self.seed);
        let mut next = || Random(u64::from(random.next_u32()) << 32 | u64::from(random.next_u32()));
        for number in (host..publishers).step_by(HOSTS.into()) {
            runtime.spawn(keep_publishing(Arc::clone(&self.common), number, next()));
        }
        for _ in (host..viewers).step_by(HOSTS.into()) {
            runtime.spawn(keep_viewing(Arc::clone(&self.common), next()));
        }
        self.hosts[usize::from(host)] = Some(runtime);
    }

    /// Lets nobody come or go any more.
    pub(crate) fn hold(&self) {
        self.common.order.send_replace(Order::Hold);
    }

    /// Lets all leave, and waits until they have.
    ///
    /// # Panics
    ///
    /// If somebody does not end within ten seconds.
    pub(crate) fn leave(self) {
        self.common.order.send_replace(Order::Leave);
        let deadline = Instant::now() + Duration::from_secs(10);
        while Arc::strong_count(&self.common) > 1 {
            assert!(Instant::now() < deadline, "a caller does not end its connection");
            std::thread::sleep(Duration::from_millis(20));
        }
        for host in self.hosts.into_iter().flatten() {
            host.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

impl Common {
    /// Waits for a time, and as long as nobody may come or go. Returns whether callers go on.
    async fn wait(&self, time: Duration) -> bool {
        let mut order = self.order.subscribe();
        tokio::select! {
            () = sleep(time) => {}
            _ = order.wait_for(|it| *it == Order::Leave) => return false,
        }
        let order = order.wait_for(|it| *it != Order::Hold).await;
        order.is_ok_and(|it| *it == Order::Churn)
    }

    /// Calls the relay. An answer other than that the stream is absent is a fault.
    async fn call(&self, stream: u16, action: &str, latency: Duration) -> Option<Socket> {
        let called = Instant::now();
        self.ledger.calls();
        match call(self.relay, &format!("{action}:{}", name(stream)), latency).await {
            Ok(socket) => return Some(socket),
            Err(Error::Closed(CloseReason::Rejected(RejectReason::NOT_FOUND)))
                if action == "read" =>
            {
                self.ledger.refused(stream, called);
            }
            Err(Error::Closed(
                CloseReason::ConnectTimeout(_) | CloseReason::ConclusionTimeout(_),
            )) => self.ledger.unanswered(),
            Err(Error::Stopped) => {}
            Err(error) => self.ledger.fault(format!("{action} of stream {stream}: {error}")),
        }
        None
    }
}

async fn keep_publishing(common: Arc<Common>, number: u16, mut random: Random) {
    let Habits { longest_stay, longest_pause, pictures_per_second, .. } = common.habits;
    let mut pause = ARRIVAL;
    while common.wait(random.millis(millis(pause))).await {
        pause = longest_pause;
        let Some(socket) = common.call(number, "publish", PUBLISHER_LATENCY).await else {
            continue;
        };
        let publishing = Publishing::begin(&common.ledger, number);
        tokio::select! {
            _ = common.wait(random.millis(millis(longest_stay))) => {}
            // A host without power drops its tasks one after another.
            error = publish(&socket, number, pictures_per_second) => if !is_powerless(&error) {
                common.ledger.fault(format!("the publisher of stream {number} was cut: {error}"));
            }
        }
        drop(publishing);
        socket.close().await;
    }
}

async fn keep_viewing(common: Arc<Common>, mut random: Random) {
    let Habits { publishers, longest_stay, longest_pause, .. } = common.habits;
    let mut pause = ARRIVAL;
    while common.wait(random.millis(millis(pause))).await {
        pause = longest_pause / 2;
        let number = u16::try_from(random.below(publishers.into())).expect("few streams");
        let latency = random.pick(&VIEWER_LATENCIES);
        let Some(socket) = common.call(number, "read", latency).await else { continue };
        let mut viewing = Viewing::begin(&common.ledger, number);
        tokio::select! {
            _ = common.wait(random.millis(millis(longest_stay))) => {
                common.ledger.silent(number, viewing.latest);
            }
            error = view(&socket, |message| viewing.push(message)) => if !is_powerless(&error) {
                common.ledger.cut(number, &error.to_string());
            }
        }
        drop(viewing);
        // Half of them leave at once, the others when all is acknowledged.
        match random.one_in(2) {
            true => socket.abort().await,
            false => socket.close().await,
        }
    }
}

fn is_powerless(error: &Error) -> bool {
    matches!(error, Error::Stopped)
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).expect("seconds or minutes")
}

/// A publisher in the ledger, until it is dropped: with its connection, or with its host.
struct Publishing {
    ledger: Arc<Ledger>,
    stream: u16,
}

impl Publishing {
    fn begin(ledger: &Arc<Ledger>, stream: u16) -> Self {
        ledger.publishes(stream);
        Self { ledger: Arc::clone(ledger), stream }
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.ledger.leaves(self.stream);
    }
}

/// The same of a viewer.
struct Viewing {
    ledger: Arc<Ledger>,
    stream: u16,
    judge: Judge,
    /// When it got its latest message; at first when it was admitted.
    latest: Instant,
}

impl Viewing {
    fn begin(ledger: &Arc<Ledger>, stream: u16) -> Self {
        ledger.views(stream);
        let (judge, latest) = (Judge::new(stream), Instant::now());
        Self { ledger: Arc::clone(ledger), stream, judge, latest }
    }

    fn push(&mut self, message: &punctual::Message) {
        self.judge.push(message);
        self.latest = Instant::now();
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        let judge = std::mem::replace(&mut self.judge, Judge::new(self.stream));
        self.ledger.unviews(self.stream, judge.finish());
    }
}

/// Hosts of callers.
const HOSTS: u16 = 5;
/// All callers come within this time at first: the relay takes 200 calls a second.
const ARRIVAL: Duration = Duration::from_secs(5);
/// At a round trip of 300 ms a packet is repeated six times within this time, so that the relay
/// gets nearly all.
const PUBLISHER_LATENCY: Duration = Duration::from_secs(2);
/// A packet is repeated once, twice or four times.
const VIEWER_LATENCIES: [Duration; 3] =
    [Duration::from_millis(600), Duration::from_millis(900), Duration::from_millis(1_500)];
