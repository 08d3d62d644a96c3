//! Links of a group that end and come back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual::{Accepted, Config, Group, GroupKind, GroupLink, LinkReport, Listener, RejectReason};
use tokio::net::UdpSocket;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tracing::Level;

use crate::common::{config, local, message, until, within};
use crate::log::Log;

const KINDS: [GroupKind; 3] = [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance];

/// The shortest safe timeouts: a standby link sends a keepalive once a second.
fn options() -> Config {
    let config = config().with_latency(Duration::from_millis(500)).unwrap();
    config.with_peer_idle_timeout(Duration::from_millis(1_600)).unwrap()
}

/// A path to `target` through a relay that can be stopped and started again. Its port stays bound
/// meanwhile, so that no other test takes it.
struct Path {
    front: Arc<UdpSocket>,
    address: SocketAddr,
    target: SocketAddr,
    relay: JoinHandle<()>,
}

impl Path {
    async fn to(target: SocketAddr) -> Self {
        let front = Arc::new(UdpSocket::bind(local()).await.unwrap());
        let address = front.local_addr().unwrap();
        let relay = tokio::spawn(relay(Arc::clone(&front), target));
        Self { front, address, target, relay }
    }

    async fn kill(&mut self) {
        self.relay.abort();
        let _ = (&mut self.relay).await;
    }

    fn start_again(&mut self) {
        // Datagrams that arrived while there was no relay are lost.
        while self.front.try_recv(&mut [0; 2_048]).is_ok() {}
        self.relay = tokio::spawn(relay(Arc::clone(&self.front), self.target));
    }
}

/// Passes datagrams on to `target`, from its own port.
async fn relay(front: Arc<UdpSocket>, target: SocketAddr) {
    let back = UdpSocket::bind(local()).await.unwrap();
    back.connect(target).await.unwrap();
    let (mut there, mut here) = (vec![0; 2_048], vec![0; 2_048]);
    let mut caller = None;
    loop {
        tokio::select! {
            Ok((len, from)) = front.recv_from(&mut there) => {
                caller = Some(from);
                let _ = back.send(&there[..len]).await;
            }
            Ok(len) = back.recv(&mut here) => {
                let Some(caller) = caller else { continue };
                let _ = front.send_to(&here[..len], caller).await;
            }
        }
    }
}

/// A stream over a group of two links, the first of them by a path, until this is dropped.
struct Stream {
    sender: Group,
    receiver: Group,
    path: Path,
    _listener: Listener,
    _tasks: JoinSet<()>,
}

impl Stream {
    async fn start(kind: GroupKind, config: Config) -> Self {
        let accepts_groups = config.clone().with_group_connect(true);
        let listener = Listener::bind(local(), accepts_groups).await.unwrap();
        let path = Path::to(listener.local_addr()).await;
        let links = vec![
            GroupLink::to(path.address).with_weight(2),
            GroupLink::to(listener.local_addr()).with_weight(1),
        ];
        let call = within(Group::connect(kind, links, config));
        let (sender, accepted) = tokio::join!(call, within(listener.accept_any()));
        let (sender, Accepted::Group(receiver)) = (sender.unwrap(), accepted.unwrap()) else {
            panic!("a group called");
        };
        let mut tasks = JoinSet::new();
        let (sends, receives) = (sender.clone(), receiver.clone());
        tasks.spawn(async move {
            for n in 0.. {
                if sends.send(message(n)).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        tasks.spawn(async move { while receives.recv().await.is_ok() {} });
        let stream = Self { sender, receiver, path, _listener: listener, _tasks: tasks };
        stream.links_up(2).await;
        stream
    }

    /// Waits until `count` links are established at both ends.
    async fn links_up(&self, count: usize) {
        let up = |group: &Group| group.links().iter().filter(|it| it.state.is_up()).count();
        until(|| up(&self.sender) == count && up(&self.receiver) == count).await;
    }

    /// Kills the path, waits for the end of the link and then for `longer`, and starts the path
    /// again. Returns how long after that the link was established again.
    async fn outage(&mut self, longer: Duration) -> Duration {
        self.path.kill().await;
        self.links_up(1).await;
        tokio::time::sleep(longer).await;
        self.path.start_again();
        let start = Instant::now();
        self.links_up(2).await;
        start.elapsed()
    }

    fn first_link(&self) -> Option<LinkReport> {
        self.sender.links().into_iter().find(|link| link.remote == self.path.address)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_returns_with_its_path_in_every_kind_of_group() {
    let mut outages = JoinSet::new();
    // The task that updates a group and the one that calls race for the end of a link: tested with
    // several groups of each kind, and at any phase of a call.
    for (number, kind) in (0..).zip(KINDS.into_iter().cycle().take(15)) {
        outages.spawn(async move {
            let mut stream = Stream::start(kind, options()).await;
            let first = stream.first_link().unwrap().id;
            let before = stream.first_link().unwrap().statistics.packets_sent;
            let took = stream.outage(Duration::from_millis(97 * number)).await;
            assert_ne!(stream.first_link().unwrap().id, first);
            // The counts of the link before it ended are still there.
            assert!(stream.sender.report().ended.packets_sent >= before.max(1));
            (kind, took)
        });
    }
    let all = outages.join_all().await;
    assert_eq!(all.len(), 15);
    // It is called once a second, for up to three seconds; a machine may stall for longer.
    let slow = all.iter().filter(|(_, took)| *took > Duration::from_secs(3)).count();
    assert!(slow <= 5, "not called once a second: {all:?}");
}

#[tokio::test]
async fn a_removed_link_is_not_called_again_under_any_of_its_ids() {
    let mut stream = Stream::start(GroupKind::Broadcast, options()).await;
    let first = stream.first_link().unwrap().id;
    stream.outage(Duration::ZERO).await;
    // The ID that it had before the outage.
    stream.sender.remove_link(first);
    stream.links_up(1).await;
    assert!(stream.first_link().is_none());
    // Links that the peer closes are called again in that time, this one is not.
    let added = stream.sender.add_link(GroupLink::to(stream.path.target)).await.unwrap().unwrap();
    stream.links_up(2).await;
    for _ in 0..2 {
        let newest = stream.receiver.links().into_iter().max_by_key(|link| link.id).unwrap();
        stream.receiver.remove_link(newest.id);
        stream.links_up(1).await;
        stream.links_up(2).await;
        assert!(stream.first_link().is_none());
    }
    stream.sender.remove_link(added);
    stream.links_up(1).await;
}

#[tokio::test]
async fn each_loss_and_each_return_of_a_link_is_in_the_log() {
    let log = Log::of_this_test();
    let mut stream = Stream::start(GroupKind::Backup, options()).await;
    let theirs = stream.receiver.links().into_iter().find(|link| link.weight == 2).unwrap().remote;
    let ours = stream.path.address;
    stream.outage(Duration::ZERO).await;
    let theirs_again = stream.receiver.links().into_iter().find(|it| it.weight == 2).unwrap();
    for (level, what, address, count) in [
        (Level::WARN, "a link of the group ended", ours, 1),
        (Level::WARN, "a link of the group ended", theirs, 1),
        (Level::INFO, "a link joined its group", ours, 2),
        (Level::INFO, "a link joined its group", theirs_again.remote, 1),
    ] {
        let found = log.count(level, &[what, &address.to_string()]);
        assert_eq!(found, count, "{what} {address}");
    }
    // The end of a stream causes no warning.
    within(stream.sender.close()).await;
    stream.links_up(0).await;
    assert_eq!(log.count(Level::WARN, &[]), 2);
}

#[tokio::test]
async fn a_link_that_fails_before_any_is_established_is_called_again() {
    let log = Log::of_this_test();
    let config = options().with_connect_timeout(Duration::from_secs(30)).unwrap();
    let accepts_groups = config.clone().with_group_connect(true);
    let listener = Listener::bind(local(), accepts_groups).await.unwrap();
    let address = listener.local_addr();
    let links = vec![GroupLink::to(address).with_weight(2), GroupLink::to(address)];
    let call = within(Group::connect(GroupKind::Broadcast, links, config));
    let accept = within(async {
        let mut waits = None;
        let mut refused = 0;
        loop {
            let call = listener.incoming().await.unwrap();
            match call.group().unwrap().weight {
                2 if refused == 0 => {
                    refused += 1;
                    call.reject(RejectReason::OVERLOAD);
                }
                2 => return (call.accept_group().unwrap().unwrap(), waits),
                _ => waits = Some(call),
            }
        }
    });
    let (sender, (receiver, waits)) = tokio::join!(call, accept);
    let failed = ["yet; calling again", &address.to_string()];
    assert_eq!(log.count(Level::WARN, &failed), 1);
    assert!(waits.unwrap().accept_group().unwrap().is_none());
    let sender = sender.unwrap();
    until(|| sender.links().len() == 2).await;
    assert_eq!(receiver.links().len(), 2);
}
