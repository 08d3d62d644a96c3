//! Futures that are dropped before they complete have done nothing.

use std::collections::VecDeque;
use std::time::Duration;

use crate::common::{config, local, message, pair, prompt, within};
use punctual::{BufferSize, Listener, Port, PortConfig, Socket};

/// Polls `future` at most a few times, as a `select!` with an impatient other branch does.
async fn impatiently<F: Future>(future: F, patience: u32) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async {
            for _ in 0..patience {
                tokio::task::yield_now().await;
            }
        } => None,
    }
}

#[tokio::test]
async fn abandoned_receives_lose_nothing() {
    let (a, b) = pair(prompt()).await;
    let send = async {
        for n in 0..500 {
            a.send(message(n)).await.unwrap();
            if n % 10 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    let receive = async {
        let (mut received, mut abandoned) = (Vec::new(), 0);
        while received.len() < 500 {
            let patience = abandoned % 3;
            if abandoned % 2 == 0 {
                match impatiently(b.recv(), patience).await {
                    Some(message) => received.push(message.unwrap()),
                    None => abandoned += 1,
                }
            } else if impatiently(b.recv_many(&mut received, 7), patience).await.is_none() {
                abandoned += 1;
            }
            // The other futures of this task must have their turn as well.
            tokio::task::yield_now().await;
        }
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
            match impatiently(a.send(message(n)), abandoned % 3).await {
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
async fn an_abandoned_batch_leaves_what_was_not_taken() {
    let (a, b) = pair(prompt().with_send_buffer(BufferSize::Packets(32))).await;
    let mut queue: VecDeque<_> = (0..1_000).map(message).collect();
    let send = async {
        while !queue.is_empty() {
            if let Some(result) = impatiently(a.send_many(&mut queue), 1).await {
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
    for patience in [0, 1, 5] {
        let call = port.connect(listener.local_addr(), config());
        assert!(impatiently(call, patience).await.is_none(), "nobody has answered yet");
    }
    // What may have come through of them is answered and closes.
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
            if let Some(socket) = impatiently(listener.accept(), 1).await {
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
    let _ = impatiently(a.close(), 0).await;
    assert_eq!(within(b.recv()).await.unwrap().payload, message(1));
    within(b.closed()).await;
    within(a.closed()).await;
}
