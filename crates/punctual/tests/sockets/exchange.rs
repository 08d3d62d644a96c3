//! Messages, both ways.

use std::collections::VecDeque;
use std::time::Duration;

use crate::common::{config, local, message, pair, prompt, until, within};
use bytes::Bytes;
use punctual::{
    Bitrate, BufferSize, Error, Listener, MaxBandwidth, Outgoing, PortStatistics, SendOptions,
    Socket, now,
};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::timeout;

#[tokio::test]
async fn all_messages_arrive_in_order_both_ways() {
    let (a, b) = pair(prompt()).await;
    let send = async |socket: &Socket| {
        for n in 0..2_000 {
            socket.send(message(n)).await.unwrap();
        }
    };
    let receive = async |socket: &Socket| {
        for n in 0..2_000 {
            let received = socket.recv().await.unwrap();
            assert_eq!(received.payload, message(n));
            assert_eq!(received.lost_before, 0);
        }
    };
    within(async { tokio::join!(send(&a), send(&b), receive(&a), receive(&b)) }).await;
}

#[tokio::test]
async fn batches_arrive_in_order() {
    let (a, b) = pair(prompt()).await;
    let mut queue: VecDeque<Bytes> = (0..5_000).map(message).collect();
    let send = async {
        let mut sent = 0;
        while !queue.is_empty() {
            sent += a.send_many(&mut queue).await.unwrap();
        }
        assert_eq!(sent, 5_000);
    };
    let receive = async {
        let mut received = Vec::new();
        while received.len() < 5_000 {
            let before = received.len();
            let count = b.recv_many(&mut received, 100).await.unwrap();
            assert!((1..=100).contains(&count));
            assert_eq!(received.len(), before + count);
        }
        received
    };
    let ((), received) = within(async { tokio::join!(send, receive) }).await;
    for (n, received) in (0..).zip(received) {
        assert_eq!(received.payload, message(n));
    }
}

#[tokio::test]
async fn empty_batches_do_not_wait() {
    let (a, _b) = pair(config()).await;
    assert_eq!(within(a.send_many(&mut VecDeque::<Bytes>::new())).await.unwrap(), 0);
    assert_eq!(within(a.recv_many(&mut Vec::new(), 0)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_message_comes_when_it_is_due() {
    let (a, b) = pair(config()).await;
    for n in 0..20 {
        a.send(message(n)).await.unwrap();
        let received = within(b.recv()).await.unwrap();
        assert!(received.due <= now());
        assert_eq!(received.due - received.origin, Duration::from_millis(20));
    }
}

#[tokio::test]
async fn each_message_of_a_batch_keeps_its_origin_time() {
    let (a, b) = pair(config()).await;
    let start = now();
    let outgoing = |n: u32| {
        let origin = Some(start - (9 - n) * Duration::from_millis(1));
        let options = SendOptions { origin, ..SendOptions::default() };
        Outgoing { payload: message(n), options }
    };
    let mut batch: VecDeque<Outgoing> = (0..10).map(outgoing).collect();
    assert_eq!(within(a.send_many(&mut batch)).await.unwrap(), 10);
    let first = within(b.recv()).await.unwrap().origin;
    for n in 1..10 {
        let apart = within(b.recv()).await.unwrap().origin - first;
        // On the wire it is in whole microseconds.
        assert!(apart.abs_diff(Duration::from_millis(n)) <= Duration::from_micros(1), "{apart:?}");
    }
}

#[tokio::test]
async fn the_origin_travels_with_the_message() {
    let (a, b) = pair(config()).await;
    let start = now();
    let options = |age| SendOptions { origin: Some(start - age), ..SendOptions::default() };
    a.send_with(message(1), options(Duration::from_millis(10))).await.unwrap();
    a.send_with(message(2), options(Duration::ZERO)).await.unwrap();
    let first = within(b.recv()).await.unwrap();
    let second = within(b.recv()).await.unwrap();
    // On the wire it is in whole microseconds.
    let apart = second.origin - first.origin;
    assert!(apart.abs_diff(Duration::from_millis(10)) <= Duration::from_micros(1), "{apart:?}");
}

#[tokio::test]
async fn errors_name_sizes_that_do_not_fit() {
    let (a, b) = pair(config()).await;
    let max = a.info().max_payload;
    for size in [0, max + 1] {
        let error = a.send(vec![0; size].into()).await.unwrap_err();
        assert!(
            matches!(error, Error::Size { size: s, max: m } if s == size && m == max),
            "{error}"
        );
    }
    a.send(vec![1; max].into()).await.unwrap();
    assert_eq!(within(b.recv()).await.unwrap().payload.len(), max);
}

#[tokio::test]
async fn a_wrong_size_in_a_batch_stops_it_there() {
    let (a, _b) = pair(config()).await;
    let mut queue = VecDeque::from([message(1), Bytes::new(), message(2)]);
    assert_eq!(within(a.send_many(&mut queue)).await.unwrap(), 1);
    let error = within(a.send_many(&mut queue)).await.unwrap_err();
    assert!(matches!(error, Error::Size { size: 0, .. }), "{error}");
    queue.pop_front();
    assert_eq!(within(a.send_many(&mut queue)).await.unwrap(), 1);
}

#[tokio::test]
async fn attempts_do_not_wait() {
    let (a, b) = pair(config()).await;
    assert_eq!(b.try_recv().unwrap(), None);
    assert!(a.try_send(&message(1)).unwrap());
    until(|| b.readiness().readable).await;
    let received = b.try_recv().unwrap().expect("a message waits");
    assert_eq!(received.payload, message(1));
}

#[tokio::test]
async fn a_full_buffer_makes_the_sender_wait_and_loses_nothing() {
    let small = prompt().with_send_buffer(BufferSize::Packets(32));
    let (a, b) = pair(small).await;
    let send = async {
        let mut refused = 0;
        for n in 0..1_000 {
            refused += u32::from(
                !a.try_send(&message(n)).unwrap() && {
                    a.send(message(n)).await.unwrap();
                    true
                },
            );
        }
        refused
    };
    let receive = async {
        for n in 0..1_000 {
            assert_eq!(b.recv().await.unwrap().payload, message(n));
        }
    };
    let (refused, ()) = within(async { tokio::join!(send, receive) }).await;
    assert!(refused > 0, "the buffer was never full");
}

/// A wake-up that gets lost between a call and the driver on another thread ends in a hang.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_between_threads() {
    let (a, b) = pair(prompt()).await;
    let echo = tokio::spawn(async move {
        while let Ok(message) = b.recv().await {
            b.send(message.payload).await.unwrap();
        }
    });
    within(async {
        for n in 0..3_000 {
            a.send(message(n)).await.unwrap();
            assert_eq!(a.recv().await.unwrap().payload, message(n));
        }
    })
    .await;
    drop(a);
    within(echo).await.unwrap();
}

#[tokio::test]
async fn a_single_message_does_not_need_the_drivers_thread() {
    let listener = Listener::bind(local(), prompt()).await.unwrap();
    let remote = listener.local_addr();
    let other = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let other = other.unwrap();
    let call = other.spawn(Socket::connect(remote, prompt()));
    let (a, b) = within(async { tokio::join!(call, listener.accept()) }).await;
    let (a, b) = (a.unwrap().unwrap(), b.unwrap());
    let (is_busy, busy) = oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    other.spawn(async move {
        is_busy.send(()).unwrap();
        released.recv()
    });
    within(busy).await.unwrap();
    let turns = a.port_statistics().turns;
    within(async {
        // The first message comes perhaps too soon after a turn, so that it is left to the driver.
        loop {
            assert!(a.try_send(&message(7)).unwrap());
            if let Ok(received) = timeout(Duration::from_millis(5), b.recv()).await {
                assert_eq!(received.unwrap().payload, message(7));
                break;
            }
        }
    })
    .await;
    assert_eq!(a.port_statistics().turns, turns);
    drop(release);
    other.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_share_a_socket() {
    let (a, b) = pair(prompt()).await;
    let senders: Vec<_> = (0..4)
        .map(|part| {
            let a = a.clone();
            tokio::spawn(async move {
                for n in part * 500..(part + 1) * 500 {
                    a.send(message(n)).await.unwrap();
                }
            })
        })
        .collect();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let receivers: Vec<_> = (0..4)
        .map(|_| {
            let (b, tell) = (b.clone(), tell.clone());
            tokio::spawn(async move {
                while let Ok(message) = b.recv().await {
                    tell.send(message.payload).unwrap();
                }
            })
        })
        .collect();
    let mut received = Vec::new();
    within(async {
        while received.len() < 2_000 {
            received.push(told.recv().await.unwrap());
        }
    })
    .await;
    received.sort_unstable();
    let mut expected: Vec<_> = (0..2_000).map(message).collect();
    expected.sort_unstable();
    assert_eq!(received, expected);
    for sender in senders {
        sender.await.unwrap();
    }
    a.close().await;
    for receiver in receivers {
        within(receiver).await.unwrap();
    }
}

#[tokio::test]
async fn both_ends_count_the_same() {
    let (a, b) = pair(prompt()).await;
    for n in 0..100 {
        a.send(message(n)).await.unwrap();
    }
    for _ in 0..100 {
        within(b.recv()).await.unwrap();
    }
    let (sent, received) = (a.statistics(), b.statistics());
    assert_eq!(sent.packets_sent_unique, 100);
    assert_eq!(received.packets_received_unique, 100);
    assert_eq!(received.packets_receive_dropped, 0);
    assert_eq!(sent.bytes_sent_unique, received.bytes_received_unique);
    let port = a.port_statistics();
    assert!(port.datagrams_sent >= 100 && port.datagrams_received > 0, "{port:?}");
    assert_eq!(port.send_errors + port.receive_errors, 0, "{port:?}");
}

#[tokio::test]
async fn datagrams_of_a_batch_leave_in_common_calls() {
    let listener = Listener::bind(local(), prompt()).await.unwrap();
    let call = Socket::connect(listener.local_addr(), prompt());
    let (a, b) = within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    let mut queue: VecDeque<Bytes> = (0..400).map(|_| vec![7; 1_316].into()).collect();
    while !queue.is_empty() {
        within(a.send_many(&mut queue)).await.unwrap();
    }
    for _ in 0..400 {
        within(b.recv()).await.unwrap();
    }
    let port = a.port_statistics();
    if cfg!(target_os = "linux") {
        assert!(port.send_calls < port.datagrams_sent / 2, "{port:?}");
    }
}

#[tokio::test]
async fn an_idle_pair_sleeps() {
    let (a, b) = pair(config()).await;
    a.send(message(1)).await.unwrap();
    within(b.recv()).await.unwrap();
    until(|| a.statistics().flight_size == 0).await;
    let before = [&a, &b].map(Socket::port_statistics);
    // A keepalive a second from each end; the first datagram may still belong to the message.
    let heard = |socket: &Socket| socket.port_statistics().datagrams_received;
    until(|| {
        let hear = |(socket, before): (&Socket, &PortStatistics)| {
            heard(socket) >= before.datagrams_received + 3
        };
        [&a, &b].into_iter().zip(&before).all(hear)
    })
    .await;
    for (socket, before) in [&a, &b].into_iter().zip(&before) {
        let turns = socket.port_statistics().turns - before.turns;
        assert!(turns <= 20, "{turns} turns for a few keepalives");
    }
}

#[tokio::test]
async fn readiness_of_a_socket_can_be_read_at_any_time() {
    let (caller, accepted) = pair(config()).await;
    assert!(caller.readiness().writable && !accepted.readiness().readable);
    caller.send(message(1)).await.unwrap();
    until(|| accepted.readiness().readable).await;
    assert!(accepted.readiness().readable, "it can be asked again");
    assert_eq!(within(accepted.recv()).await.unwrap().payload, message(1));
    assert!(!accepted.readiness().readable);
    within(caller.close()).await;
    until(|| accepted.readiness().broken).await;
    assert!(caller.readiness().broken && !accepted.readiness().writable);
}

#[tokio::test]
async fn only_options_of_any_time_change_on_an_established_connection() {
    let (caller, accepted) = pair(config()).await;
    let limit = MaxBandwidth::Absolute(Bitrate::from_mbps(8));
    caller.configure(|config| Ok(config.with_max_bandwidth(limit))).unwrap();
    assert_eq!(caller.config().max_bandwidth(), limit);
    assert_eq!(caller.statistics().max_bandwidth, Bitrate::from_mbps(8));
    accepted.configure(|config| config.with_option("lossmaxttl", 20)).unwrap();
    assert_eq!(accepted.config().reorder_tolerance(), 20);
    let error = caller.configure(|config| config.with_option("latency", 300)).unwrap_err();
    assert_eq!(error.option, "latency");
    assert_eq!(caller.config().receive_latency(), config().receive_latency());
    caller.close().await;
}
