//! Watchers: programs without tasks hear of the changes of a connection or a group.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use punctual::{Accepted, Group, GroupKind, GroupLink, Listener, Phase, Socket, Wakes, Watcher};

use crate::common::{config, local, message, pair, until, within};

/// Asks for the phase and the readiness whenever it hears of something, as a program does.
#[derive(Debug, Default)]
struct Curious {
    asks: OnceLock<Asked>,
    heard: AtomicUsize,
    has_ended: AtomicBool,
}

#[derive(Clone, Debug)]
enum Asked {
    Group(Group),
    Socket(Socket),
}

impl Curious {
    fn of(asked: Asked) -> Arc<Self> {
        let watcher = Arc::new(Self::default());
        let this: Weak<dyn Watcher> = Arc::<Self>::downgrade(&watcher);
        match &asked {
            Asked::Group(group) => group.watch(this),
            Asked::Socket(socket) => socket.watch(this),
        }
        watcher.asks.set(asked).unwrap();
        watcher
    }

    fn ask(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        let (phase, _) = match self.asks.get() {
            Some(Asked::Group(group)) => (group.phase(), group.readiness()),
            Some(Asked::Socket(socket)) => (socket.phase(), socket.readiness()),
            None => return,
        };
        if matches!(phase, Phase::Closed(_)) {
            self.has_ended.store(true, Ordering::Relaxed);
        }
    }

    fn heard(&self) -> usize {
        self.heard.load(Ordering::Relaxed)
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

impl Watcher for Curious {
    fn readable(&self, _: &mut Wakes) {
        self.ask();
    }

    fn writable(&self) {
        self.ask();
    }

    fn phase_changed(&self) {
        self.ask();
    }
}

/// Both ends of a group of one link.
async fn group() -> (Group, Group) {
    let config = config().with_latency(Duration::ZERO).unwrap();
    let accepting = config.clone().with_group_connect(true);
    let listener = Listener::bind(local(), accepting).await.unwrap();
    let links = vec![GroupLink::to(listener.local_addr())];
    let call = within(Group::connect(GroupKind::Broadcast, links, config));
    let (sender, accepted) = tokio::join!(call, within(listener.accept_any()));
    match accepted.unwrap() {
        Accepted::Group(receiver) => (sender.unwrap(), receiver),
        Accepted::Socket(_) => panic!("a group called"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_message_nobody_takes_is_silent() {
    let (sender, receiver) = group().await;
    let watcher = Curious::of(Asked::Group(receiver.clone()));
    sender.send(message(1)).await.unwrap();
    until(|| receiver.readiness().readable).await;
    let before = watcher.heard();
    // Meanwhile another connection delivers ten messages, each after its latency.
    let (other, peer) = pair(config()).await;
    for n in 0..10 {
        other.send(message(n)).await.unwrap();
        within(peer.recv()).await.unwrap();
    }
    let heard = watcher.heard() - before;
    assert!(heard < 100, "the watcher heard of something {heard} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_hears_of_the_end_of_a_groups_last_link() {
    let (sender, receiver) = group().await;
    let watcher = Curious::of(Asked::Group(receiver));
    sender.close().await;
    until(|| watcher.has_ended()).await;
}

#[test]
fn a_watcher_can_ask_for_the_phase_when_the_runtime_ends() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (watcher, _ends) = runtime.block_on(async {
        let listener = Listener::bind(local(), config()).await.unwrap();
        let port = punctual::Port::bind(punctual::PortConfig::default()).await.unwrap();
        let call = port.connect(listener.local_addr(), config());
        let (caller, accepted) = tokio::try_join!(call, listener.accept()).unwrap();
        (Curious::of(Asked::Socket(caller.clone())), (caller, accepted))
    });
    runtime.shutdown_timeout(Duration::from_secs(20));
    assert!(watcher.has_ended());
}
