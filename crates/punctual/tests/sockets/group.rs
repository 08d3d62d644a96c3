//! Groups: one stream over several links.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use punctual::{
    Accepted, Bitrate, BufferSize, CloseReason, Config, Group, GroupKind, GroupLink, LinkState,
    Listener, ListenerConfig, PortConfig, RejectReason, Socket,
};
use tokio::net::UdpSocket;

use crate::common::{config, local, message, until, within};

/// A latency long enough for a slow machine.
fn long_latency() -> Config {
    config().with_latency(Duration::from_millis(500)).unwrap()
}

fn accepts_groups() -> Config {
    long_latency().with_group_connect(true)
}

async fn accept_group(listener: &Listener) -> Group {
    match within(listener.accept_any()).await.unwrap() {
        Accepted::Group(group) => group,
        Accepted::Socket(_) => panic!("a group called"),
    }
}

/// Calls `listener` over `links`. Returns the calling group and the accepted one.
async fn called(
    listener: &Listener,
    kind: GroupKind,
    links: Vec<GroupLink>,
    config: Config,
) -> (Group, Group) {
    let call = within(Group::connect(kind, links, config));
    let (sender, receiver) = tokio::join!(call, accept_group(listener));
    (sender.unwrap(), receiver)
}

/// Waits until `count` links of `group` are established.
async fn links_up(group: &Group, count: usize) {
    until(|| group.links().iter().filter(|link| link.state.is_up()).count() == count).await;
}

/// A relay in front of `target` that passes nothing while it is cut.
async fn relay(target: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let front = UdpSocket::bind(local()).await.unwrap();
    let back = UdpSocket::bind(local()).await.unwrap();
    back.connect(target).await.unwrap();
    let (address, cut) = (front.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let is_cut = Arc::clone(&cut);
    tokio::spawn(async move {
        let (mut there, mut here) = (vec![0; 2_048], vec![0; 2_048]);
        let mut caller = None;
        loop {
            let passes = tokio::select! {
                Ok((len, from)) = front.recv_from(&mut there) => {
                    caller = Some(from);
                    (!is_cut.load(Ordering::Relaxed)).then_some((true, len))
                }
                Ok(len) = back.recv(&mut here) => {
                    (!is_cut.load(Ordering::Relaxed)).then_some((false, len))
                }
            };
            let _ = match (passes, caller) {
                (Some((true, len)), _) => back.send(&there[..len]).await,
                (Some((false, len)), Some(caller)) => front.send_to(&here[..len], caller).await,
                _ => Ok(0),
            };
        }
    });
    (address, cut)
}

#[tokio::test]
async fn a_broadcast_over_two_links_is_accepted_and_delivered_once() {
    let listener = Listener::bind(local(), accepts_groups()).await.unwrap();
    let links = vec![GroupLink::to(listener.local_addr()); 2];
    let (sender, receiver) = called(&listener, GroupKind::Broadcast, links, long_latency()).await;
    links_up(&sender, 2).await;
    links_up(&receiver, 2).await;
    for n in 0..300 {
        sender.send(message(n)).await.unwrap();
    }
    for n in 0..300 {
        assert_eq!(within(receiver.recv()).await.unwrap().payload, message(n));
    }
    for link in sender.links() {
        assert_eq!(link.statistics.packets_sent_unique, 300);
    }
    let counted = receiver.statistics();
    assert_eq!((counted.packets_received_unique, counted.packets_receive_dropped), (300, 0));
    // And back.
    receiver.send(message(7)).await.unwrap();
    assert_eq!(within(sender.recv()).await.unwrap().payload, message(7));

    within(sender.close()).await;
    let error = within(receiver.recv()).await.unwrap_err();
    assert_eq!(error.close_reason(), Some(&CloseReason::Peer));
    let error = within(sender.send(message(1))).await.unwrap_err();
    assert!(error.close_reason().is_some());
}

#[tokio::test]
async fn links_of_one_group_come_in_at_several_ports() {
    let port = || ListenerConfig {
        port: PortConfig { local: Some(local()), ..PortConfig::default() },
        connection: accepts_groups(),
        ..ListenerConfig::default()
    };
    // The second port is known only when it is bound: two listeners find two free ports.
    let free = Listener::bind(local(), config()).await.unwrap();
    let mut second = port();
    second.port.local = Some(free.local_addr());
    drop(free);
    let listener = loop {
        match Listener::bind_all(vec![port(), second.clone()]).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let links = vec![
        GroupLink::to(listener.local_addr()),
        GroupLink::to(second.port.local.unwrap()).with_weight(3),
    ];
    let (sender, receiver) = called(&listener, GroupKind::Broadcast, links, long_latency()).await;
    links_up(&receiver, 2).await;
    let mut weights: Vec<u16> = receiver.links().iter().map(|link| link.weight).collect();
    weights.sort_unstable();
    assert_eq!(weights, [0, 3]);
    sender.send(message(1)).await.unwrap();
    assert_eq!(within(receiver.recv()).await.unwrap().payload, message(1));
}

#[tokio::test]
async fn a_backup_takes_over_and_nothing_is_lost() {
    let longer = |config: Config| config.with_latency(Duration::from_secs(2)).unwrap();
    let listener = Listener::bind(local(), longer(accepts_groups())).await.unwrap();
    let (main, cut) = relay(listener.local_addr()).await;
    let links = vec![
        GroupLink::to(main).with_weight(10),
        GroupLink::to(listener.local_addr()).with_weight(5),
    ];
    let (sender, receiver) = called(&listener, GroupKind::Backup, links, longer(config())).await;
    links_up(&sender, 2).await;
    let receive = tokio::spawn(async move {
        for n in 0..1_000 {
            assert_eq!(within(receiver.recv()).await.unwrap().payload, message(n));
        }
        receiver.statistics()
    });
    for n in 0..1_000 {
        if n == 300 {
            cut.store(true, Ordering::Relaxed);
        }
        sender.send(message(n)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let states = |weight| sender.links().iter().find(|it| it.weight == weight).map(|it| it.state);
    // Absent, or a call that failed, if this took so long that the link ended.
    assert!(states(10).is_none_or(|state| state == LinkState::Unstable), "{:?}", states(10));
    assert!(states(5).is_some_and(LinkState::is_active));
    assert!(sender.switches() >= 1);
    assert_eq!(within(receive).await.unwrap().packets_receive_dropped, 0);
}

#[tokio::test]
async fn a_link_that_ended_is_called_again() {
    let listener = Listener::bind(local(), accepts_groups()).await.unwrap();
    let links = vec![GroupLink::to(listener.local_addr()); 2];
    let (sender, receiver) = called(&listener, GroupKind::Broadcast, links, long_latency()).await;
    links_up(&receiver, 2).await;
    // The receiver closes one of the links; the sender calls again, and the link joins without an
    // answer.
    let first = receiver.links()[0].id;
    receiver.remove_link(first);
    links_up(&receiver, 1).await;
    sender.send(message(1)).await.unwrap();
    assert_eq!(within(receiver.recv()).await.unwrap().payload, message(1));
    links_up(&receiver, 2).await;
    assert!(receiver.links().iter().all(|link| link.id != first));
}

#[tokio::test]
async fn a_listener_without_groups_rejects_them_with_the_reason() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let links = vec![GroupLink::to(listener.local_addr())];
    let error = within(Group::connect(GroupKind::Backup, links, long_latency())).await.unwrap_err();
    assert_eq!(error.reject_reason(), Some(RejectReason::GROUP));
}

#[tokio::test]
async fn groups_and_single_connections_are_distinguished() {
    let listener = Listener::bind(local(), accepts_groups()).await.unwrap();
    let (socket, accepted) =
        tokio::join!(Socket::connect(listener.local_addr(), config()), listener.accept_any());
    assert!(matches!(accepted.unwrap(), Accepted::Socket(_)));
    drop(socket);
}

/// A full group waits for its links without polling them.
#[tokio::test]
async fn a_sender_waits_for_room_in_a_link() {
    // A machine that stalls for long must not make a message late.
    let very_patient = |config: Config| config.with_latency(Duration::from_secs(3)).unwrap();
    let listener = Listener::bind(local(), very_patient(accepts_groups())).await.unwrap();
    let links = vec![GroupLink::to(listener.local_addr()); 2];
    let narrow = very_patient(config()).with_send_buffer(BufferSize::Packets(32));
    let (sender, receiver) = called(&listener, GroupKind::Backup, links, narrow).await;
    links_up(&sender, 2).await;
    let mut refused = 0;
    let receive = tokio::spawn(async move {
        for n in 0..2_000 {
            assert_eq!(within(receiver.recv()).await.unwrap().payload, message(n));
        }
    });
    for n in 0..2_000 {
        if !sender.try_send(&message(n)).unwrap() {
            refused += 1;
            within(sender.send(message(n))).await.unwrap();
        }
    }
    assert!(refused > 0, "nothing to wait for");
    within(receive).await.unwrap();
}

#[tokio::test]
async fn a_gate_decides_on_every_link_and_gives_the_group_its_options() {
    let listener = Listener::bind(local(), accepts_groups()).await.unwrap();
    let address = listener.local_addr();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let mut gate = listener.gate(move |caller| {
        let turn = count.fetch_add(1, Ordering::Relaxed);
        async move {
            assert!(caller.group.is_some());
            // The third link is rejected.
            let config = long_latency().with_passphrase("correct horse").unwrap();
            if turn < 2 { Ok(config) } else { Err(RejectReason::FORBIDDEN) }
        }
    });
    let config = long_latency().with_passphrase("correct horse").unwrap();
    let call = Group::connect(GroupKind::Broadcast, vec![GroupLink::to(address); 2], config);
    let accept = async {
        let Accepted::Group(group) = within(gate.accept_any()).await.unwrap() else {
            panic!("a group called");
        };
        group
    };
    let (sender, receiver) = tokio::join!(within(call), accept);
    let sender = sender.unwrap();
    let serve = tokio::spawn(async move { gate.accept_any().await });
    links_up(&receiver, 2).await;
    let error = within(sender.add_link(GroupLink::to(address))).await.unwrap().unwrap_err();
    assert_eq!(error.reject_reason(), Some(RejectReason::FORBIDDEN));
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    sender.send(message(1)).await.unwrap();
    assert_eq!(within(receiver.recv()).await.unwrap().payload, message(1));
    serve.abort();
}

#[tokio::test]
async fn a_balance_spreads_a_stream_and_loses_nothing_when_a_link_is_cut() {
    let longer = |config: Config| config.with_latency(Duration::from_secs(2)).unwrap();
    let listener = Listener::bind(local(), longer(accepts_groups())).await.unwrap();
    let (first, cut) = relay(listener.local_addr()).await;
    let links = vec![GroupLink::to(first), GroupLink::to(listener.local_addr())];
    let (sender, receiver) = called(&listener, GroupKind::Balance, links, longer(config())).await;
    links_up(&sender, 2).await;
    let receive = tokio::spawn(async move {
        for n in 0..1_000 {
            assert_eq!(within(receiver.recv()).await.unwrap().payload, message(n));
        }
        receiver
    });
    for n in 0..1_000 {
        if n == 500 {
            for link in sender.links() {
                assert!(link.statistics.packets_sent_unique > 50, "{link:?}");
            }
            cut.store(true, Ordering::Relaxed);
        }
        sender.send(message(n)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let receiver = within(receive).await.unwrap();
    assert_eq!(receiver.statistics().packets_receive_dropped, 0);
    assert!(sender.statistics().packets_retransmitted > 0);
    // And back.
    receiver.send(message(7)).await.unwrap();
    assert_eq!(within(sender.recv()).await.unwrap().payload, message(7));
    within(sender.close()).await;
    assert!(within(receiver.recv()).await.is_err());
}

#[tokio::test]
async fn readiness_of_a_group_can_be_read_at_any_time() {
    let listener = Listener::bind(local(), accepts_groups()).await.unwrap();
    let links = vec![GroupLink::to(listener.local_addr()); 2];
    let (sender, receiver) = called(&listener, GroupKind::Broadcast, links, long_latency()).await;
    assert!(sender.readiness().writable && !receiver.readiness().readable);
    sender.send(message(1)).await.unwrap();
    until(|| receiver.readiness().readable).await;
    assert!(receiver.readiness().readable, "it can be asked again");
    assert_eq!(receiver.try_recv().unwrap().unwrap().payload, message(1));
    until(|| !receiver.readiness().readable).await;
    assert!(!receiver.readiness().broken);
    within(sender.close()).await;
    assert!(sender.readiness().broken && !sender.readiness().writable);
    until(|| receiver.readiness().broken).await;
    assert!(!receiver.readiness().writable);
}

#[tokio::test]
async fn a_closed_group_gives_up_the_links_that_are_still_being_called() {
    let listener = Listener::bind(local(), accepts_groups()).await.unwrap();
    let silent = UdpSocket::bind(local()).await.unwrap();
    let long_latency = long_latency().with_connect_timeout(Duration::from_secs(600)).unwrap();
    let links = vec![GroupLink::to(listener.local_addr())];
    let (sender, receiver) = called(&listener, GroupKind::Broadcast, links, long_latency).await;
    let call = sender.add_link(GroupLink::to(silent.local_addr().unwrap()));
    within(silent.recv(&mut [0; 2_048])).await.unwrap();
    within(sender.close()).await;
    let error = within(call).await.unwrap().unwrap_err();
    assert_eq!(error.close_reason(), Some(&CloseReason::Local));
    let late = within(sender.add_link(GroupLink::to(listener.local_addr()))).await.unwrap();
    assert!(late.is_err(), "a closed group takes no link");
    until(|| receiver.readiness().broken).await;
}

#[tokio::test]
async fn a_group_accepted_with_options_has_them_on_all_its_links() {
    let listener = Listener::bind(local(), accepts_groups()).await.unwrap();
    let secret = long_latency().with_passphrase("only of this stream").unwrap();
    let links = vec![GroupLink::to(listener.local_addr()); 2];
    let call = Group::connect(GroupKind::Broadcast, links, secret.clone());
    let accept = async {
        let call = listener.incoming().await?;
        assert!(call.group().is_some());
        call.accept_group_with(secret.with_group_connect(true))
    };
    let (sender, receiver) = within(async { tokio::try_join!(call, accept) }).await.unwrap();
    let receiver = receiver.expect("the first link");
    // The second link joins without an answer.
    links_up(&receiver, 2).await;
    sender.send(message(3)).await.unwrap();
    assert_eq!(within(receiver.recv()).await.unwrap().payload, message(3));
}

#[tokio::test]
async fn options_of_any_time_change_on_all_links_and_on_later_ones() {
    let listener = Listener::bind(local(), accepts_groups()).await.unwrap();
    let link = || GroupLink::to(listener.local_addr());
    let links = vec![link(), link()];
    let (sender, receiver) = called(&listener, GroupKind::Broadcast, links, long_latency()).await;
    links_up(&receiver, 2).await;
    sender.configure(|config| config.with_option("maxbw", 1_000_000)).unwrap();
    let refused = sender.configure(|config| config.with_option("latency", 300)).unwrap_err();
    assert_eq!(refused.option, "latency");
    within(sender.add_link(link())).await.unwrap().unwrap();
    let limits = sender.links().into_iter().map(|link| link.statistics.max_bandwidth);
    assert_eq!(limits.collect::<Vec<_>>(), [Bitrate::from_mbps(8); 3]);
}
