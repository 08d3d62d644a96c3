//! Futures that are dropped before they complete have done nothing.

use std::cell::Cell;
use std::collections::VecDeque;

use crate::common::{config, local, message, pair, prompt, until, within};
use punctual::{BufferSize, Listener, Port, PortConfig, Socket};

/// Polls `future` once, and again after each of `yields`, as a `select!` with a short other branch
/// does.
async fn polled<F: Future>(future: F, yields: u32) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async {
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
        } => None,
    }
}

#[tokio::test]
async fn abandoned_receives_lose_nothing() {
    let (a, b) = pair(prompt()).await;
    // After each ten messages the sender waits for the receiver, which then has to wait, too.
    let taken = Cell::new(0);
    let send = async {
        for n in 0..500 {
            a.send(message(n)).await.unwrap();
            if n % 10 == 9 {
                until(|| taken.get() > n).await;
            }
        }
    };
    let receive = async {
        let (mut received, mut abandoned) = (Vec::new(), 0);
        while received.len() < 500 {
            taken.set(u32::try_from(received.len()).unwrap());
            let yields = abandoned % 3;
            if abandoned % 2 == 0 {
                match polled(b.recv(), yields).await {
                    Some(message) => received.push(message.unwrap()),
                    None => abandoned += 1,
                }
            } else if polled(b.recv_many(&mut received, 7), yields).await.is_none() {
                abandoned += 1;
            }
            // The other futures of this task must run as well.
            tokio::task::yield_now().await;
        }
        taken.set(500);
        (received, abandoned)
    };
    let ((), (received, abandoned)) = within(async { tokio::join!(send, receive) }).await;
    assert!(abandoned > 0);
    for (n, received) in (0..).zip(received) {
        assert_eq!(received.payload, message(n));
    }
}

#[tokio::test]
async fn abandoned_sends_send_nothing_and_completed_ones_once() {
    let (a, b) = pair(prompt().with_send_buffer(BufferSize::Packets(32))).await;
    let send = async {
        let (mut n, mut abandoned) = (0, 0);
        while n < 1_000 {
            match polled(a.send(message(n)), abandoned % 3).await {
                Some(result) => {
                    result.unwrap();
                    n += 1;
                }
                None => abandoned += 1,
            }
            tokio::task::yield_now().await;
        }
        abandoned
    };
    let receive = async {
        for n in 0..1_000 {
            assert_eq!(b.recv().await.unwrap().payload, message(n));
        }
    };
    let (abandoned, ()) = within(async { tokio::join!(send, receive) }).await;
    assert!(abandoned > 0, "no send had to wait");
}

#[tokio::test]
async fn an_abandoned_batch_keeps_the_messages_that_were_not_sent() {
    let (a, b) = pair(prompt().with_send_buffer(BufferSize::Packets(32))).await;
    let mut queue: VecDeque<_> = (0..1_000).map(message).collect();
    let send = async {
        while !queue.is_empty() {
            if let Some(result) = polled(a.send_many(&mut queue), 1).await {
                result.unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    let receive = async {
        for n in 0..1_000 {
            assert_eq!(b.recv().await.unwrap().payload, message(n));
        }
    };
    within(async { tokio::join!(send, receive) }).await;
}

#[tokio::test]
async fn an_abandoned_call_is_taken_back() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let port = Port::bind(PortConfig { local: Some(local()), ..PortConfig::default() });
    let port = port.await.unwrap();
    for yields in [0, 1, 5] {
        let call = port.connect(listener.local_addr(), config());
        assert!(polled(call, yields).await.is_none(), "nobody has answered yet");
    }
    // Calls that may have come through are answered and closed.
    let call = port.connect(listener.local_addr(), config().with_stream_id("last").unwrap());
    let serve = async {
        loop {
            let accepted = listener.accept().await.unwrap();
            if accepted.stream_id() == "last" {
                return accepted;
            }
        }
    };
    let (caller, accepted) = within(async { tokio::join!(call, serve) }).await;
    caller.unwrap().send(message(3)).await.unwrap();
    assert_eq!(within(accepted.recv()).await.unwrap().payload, message(3));
}

#[tokio::test]
async fn an_abandoned_accept_loses_no_caller() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(Socket::connect(address, config()))).collect();
    let mut accepted = Vec::new();
    within(async {
        while accepted.len() < 10 {
            if let Some(socket) = polled(listener.accept(), 1).await {
                accepted.push(socket.unwrap());
            }
            tokio::task::yield_now().await;
        }
        for call in calls {
            call.await.unwrap().unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn an_abandoned_close_closes() {
    let (a, b) = pair(prompt()).await;
    a.send(message(1)).await.unwrap();
    let _ = polled(a.close(), 0).await;
    assert_eq!(within(b.recv()).await.unwrap().payload, message(1));
    within(b.closed()).await;
    within(a.closed()).await;
}
