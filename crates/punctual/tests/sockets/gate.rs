//! Asynchronous hooks: concurrent decisions, and their ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{config, local, within};
use punctual::{AccessMode, Config, Listener, RejectReason, Socket};
use tokio::sync::Notify;

fn caller(stream_id: &str) -> Config {
    config().with_stream_id(stream_id).unwrap()
}

#[tokio::test]
async fn a_slow_decision_delays_no_other_caller() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let answer = Arc::new(Notify::new());
    let asked = Arc::clone(&answer);
    let mut gate = listener.gate(move |caller| {
        let asked = Arc::clone(&asked);
        async move {
            if caller.stream_id == "slow" {
                asked.notified().await;
            }
            Ok(config())
        }
    });
    let slow = tokio::spawn(Socket::connect(address, caller("slow")));
    let calls = async {
        let _quick = Socket::connect(address, caller("quick")).await.unwrap();
        answer.notify_one();
        slow.await.unwrap().unwrap()
    };
    let gate = async {
        let first = gate.accept().await.unwrap();
        let second = gate.accept().await.unwrap();
        [first, second].map(|socket| socket.stream_id().to_owned())
    };
    let (_, order) = within(async { tokio::join!(calls, gate) }).await;
    assert_eq!(order, ["quick", "slow"]);
}

#[tokio::test]
async fn each_caller_comes_with_the_value_that_the_hook_gave_for_it() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let mut gate = listener.gate_with_value(|caller| async move {
        match caller.stream_id.strip_prefix("token-") {
            Some(account) => Ok((config(), account.to_owned())),
            None => Err(RejectReason::UNAUTHORIZED),
        }
    });
    let calls = async {
        let refused = Socket::connect(address, caller("ann")).await.unwrap_err();
        assert_eq!(refused.reject_reason(), Some(RejectReason::UNAUTHORIZED));
        tokio::try_join!(
            Socket::connect(address, caller("token-ann")),
            Socket::connect(address, caller("token-bob"))
        )
    };
    let serve = async {
        for _ in 0..2 {
            let (socket, account) = gate.accept().await.unwrap();
            assert_eq!(socket.stream_id(), format!("token-{account}"));
        }
    };
    let (callers, ()) = within(async { tokio::join!(calls, serve) }).await;
    callers.unwrap();
}

#[tokio::test]
async fn each_caller_gets_its_own_options_or_its_own_reason() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let mut gate = listener.gate(|caller| async move {
        let stream = caller.parsed_stream_id().map_err(|error| error.reject_reason())?;
        match (stream.user(), stream.mode()) {
            (Some("ann"), AccessMode::Publish) => {
                Ok(config().with_latency(Duration::from_millis(400)).unwrap())
            }
            (Some("panic"), _) => panic!("a hook of a test"),
            (Some(_), _) => Err(RejectReason::CONFLICT),
            (None, _) => Err(RejectReason::from_api(2_345).unwrap()),
        }
    });
    let serve = tokio::spawn(async move { gate.accept().await.map(|socket| (socket, gate)) });
    for (id, reason) in [
        ("#!::u=bob,r=a", RejectReason::CONFLICT),
        ("#!::r=a", RejectReason::from_api(2_345).unwrap()),
        ("#!::m=steal", RejectReason::BAD_MODE),
        ("#!::u=panic", RejectReason::FALLBACK),
    ] {
        let error = within(Socket::connect(address, caller(id))).await.unwrap_err();
        assert_eq!(error.reject_reason(), Some(reason), "{id}: {error}");
    }
    let ann = within(Socket::connect(address, caller("#!::u=ann,r=a,m=publish"))).await.unwrap();
    assert_eq!(ann.info().peer_latency, Duration::from_millis(400));
    let (accepted, _gate) = within(serve).await.unwrap().unwrap();
    for socket in [accepted, ann] {
        let text: &str = socket.stream_id();
        assert_eq!(text, "#!::u=ann,r=a,m=publish");
        let parsed = socket.parsed_stream_id().unwrap();
        assert_eq!((parsed.user(), parsed.resource()), (Some("ann"), Some("a")));
    }
}

#[tokio::test]
async fn a_decision_that_takes_too_long_is_a_refusal() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let mut gate =
        listener.gate(|_| std::future::pending()).with_deadline(Duration::from_millis(20));
    let serve = tokio::spawn(async move { gate.accept().await.map(drop) });
    let error = within(Socket::connect(address, config())).await.unwrap_err();
    assert_eq!(error.reject_reason(), Some(RejectReason::GATEWAY_TIMEOUT), "{error}");
    serve.abort();
}

#[tokio::test]
async fn no_more_decisions_run_at_once_than_the_limit() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, top) = (Arc::clone(&running), Arc::clone(&most));
    let mut gate = listener
        .gate(move |_| {
            let (now, top) = (Arc::clone(&now), Arc::clone(&top));
            async move {
                top.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(config())
            }
        })
        .with_limit(2);
    assert_eq!(gate.listener().local_addr(), address);
    let calls: Vec<_> = (0..8).map(|_| tokio::spawn(Socket::connect(address, config()))).collect();
    let mut accepted = Vec::new();
    for _ in 0..8 {
        accepted.push(within(gate.accept()).await.unwrap());
    }
    for call in calls {
        within(call).await.unwrap().unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 2);
}

/// A caller whose passphrase is wrong, and one that the hook refuses, are told to the hearer of the
/// listener, each with its stream ID and the reason that it got.
#[tokio::test]
async fn refused_callers_are_told_with_stream_id_and_reason() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    listener.hear_refusals(move |refused| tell.send(refused).unwrap());
    let mut gate = listener.gate(|caller| async move {
        match caller.stream_id.as_str() {
            "secret" => Ok(config().with_passphrase("the right one").unwrap()),
            _ => Err(RejectReason::NOT_FOUND),
        }
    });
    let _gate = tokio::spawn(async move { gate.accept().await });
    for (id, config, reason) in [
        (
            "secret",
            caller("secret").with_passphrase("the wrong one").unwrap(),
            RejectReason::BAD_SECRET,
        ),
        ("absent", caller("absent"), RejectReason::NOT_FOUND),
    ] {
        let error = within(Socket::connect(address, config)).await.unwrap_err();
        assert_eq!(error.reject_reason(), Some(reason), "{id}");
        let refused = within(told.recv()).await.unwrap();
        assert_eq!((refused.stream_id.as_str(), refused.reason), (id, reason));
        assert_eq!(refused.by_hook, id == "absent");
    }
}
