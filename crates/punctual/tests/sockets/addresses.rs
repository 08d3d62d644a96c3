//! A peer whose address changes in mid-stream: a relay between the ends takes another port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;

use crate::common::{config, local, message, until_free, within};
use punctual::{Config, Listener, ListenerConfig, PortConfig, Socket};

/// Carries datagrams between the sender and `listener`, from the port that `ports` has.
async fn relay(front: UdpSocket, listener: SocketAddr, ports: watch::Receiver<Arc<UdpSocket>>) {
    let mut ports = ports;
    let (mut up, mut down) = ([0; 2_048], [0; 2_048]);
    let mut caller = None;
    loop {
        let back = Arc::clone(&ports.borrow_and_update());
        tokio::select! {
            Ok((length, from)) = front.recv_from(&mut up) => {
                caller = Some(from);
                let _ = back.send_to(&up[..length], listener).await;
            }
            Ok((length, _)) = back.recv_from(&mut down) => {
                if let Some(caller) = caller {
                    let _ = front.send_to(&down[..length], caller).await;
                }
            }
            changed = ports.changed() => if changed.is_err() { return },
        }
    }
}

async fn new_port() -> Arc<UdpSocket> {
    Arc::new(UdpSocket::bind(local()).await.unwrap())
}

/// A latency long enough for any machine, so that nothing is dropped for being late.
fn long_latency() -> Config {
    config().with_latency(Duration::from_millis(2_000)).unwrap()
}

#[tokio::test]
async fn a_stream_continues_from_a_new_port_both_ways() {
    assert_continues(Listener::bind(local(), long_latency()).await.unwrap(), true).await;
}

/// The kernel distributes datagrams by address, so those from the new port go to another shard.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_continues_though_another_shard_gets_its_datagrams() {
    assert_continues(sharded().await, true).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_continues_through_a_shard_without_other_work() {
    assert_continues(sharded().await, false).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_port_of_all_shards_is_free_after_the_last_connection() {
    let listener = sharded().await;
    let address = listener.local_addr();
    let call = Socket::connect(address, long_latency());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    drop(listener);
    caller.send(message(1)).await.unwrap();
    assert_eq!(within(accepted.recv()).await.unwrap().payload, message(1));
    assert!(UdpSocket::bind(address).await.is_err(), "the connection needs its port");
    drop((caller, accepted));
    until_free(address).await;
}

#[cfg(unix)]
async fn sharded() -> Listener {
    let port = PortConfig { local: Some(local()), ..PortConfig::default() };
    let config =
        ListenerConfig { port, connection: long_latency(), shards: 8, ..ListenerConfig::default() };
    Listener::bind_with(config).await.unwrap()
}

/// Streams both ways through a relay that changes its port three times, with the listener or after
/// its end.
async fn assert_continues(listener: Listener, keep: bool) {
    let front = UdpSocket::bind(local()).await.unwrap();
    let address = front.local_addr().unwrap();
    let (switch, ports) = watch::channel(new_port().await);
    let relay = tokio::spawn(relay(front, listener.local_addr(), ports));
    let call = Socket::connect(address, long_latency());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();

    let _listener = keep.then_some(listener);

    let count = 600;
    let sends = |socket: Socket, switch: Option<watch::Sender<Arc<UdpSocket>>>| async move {
        let mut pace = tokio::time::interval(Duration::from_millis(2));
        for n in 0..count {
            pace.tick().await;
            socket.send(message(n)).await.unwrap();
            if n % 200 == 100
                && let Some(switch) = &switch
            {
                switch.send(new_port().await).unwrap();
            }
        }
        switch
    };
    let receives = |socket: Socket| async move {
        for n in 0..count {
            assert_eq!(socket.recv().await.unwrap().payload, message(n));
        }
    };
    let (switch, ..) = within(async {
        tokio::join!(
            sends(caller.clone(), Some(switch)),
            sends(accepted.clone(), None),
            receives(caller.clone()),
            receives(accepted.clone()),
        )
    })
    .await;

    let port = switch.expect("it was given").borrow().local_addr().unwrap();
    assert_eq!(accepted.peer_addr(), port);
    assert_eq!(accepted.info().path, port);
    assert_eq!(accepted.statistics().path_changes, 3);
    assert_eq!(caller.statistics().path_changes, 0);
    relay.abort();
}
