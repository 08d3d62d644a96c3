//! Repeated attempts to connect.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use crate::common::{config, local, message, within};
use punctual::{CloseReason, Listener, Port, PortConfig, Reconnect, RejectReason};

/// The caller's socket ID in the datagram of a handshake (draft sections 3 and 3.2.1).
const SOCKET_ID: Range<usize> = 40..44;

fn quickly() -> Reconnect {
    Reconnect {
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(50),
        attempts: None,
    }
}

#[tokio::test]
async fn a_late_listener_is_found() {
    // The address of a listener that starts later: there is no answer until then.
    let silent = tokio::net::UdpSocket::bind(local()).await.unwrap();
    let address = silent.local_addr().unwrap();
    let short = config().with_connect_timeout(Duration::from_millis(50)).unwrap();
    let call = tokio::spawn(async move { quickly().connect(address, short).await });
    // The second socket ID is that of the second attempt.
    let mut attempts = HashSet::new();
    let mut handshake = [0; 1_500];
    while attempts.len() < 2 {
        within(silent.recv_from(&mut handshake)).await.unwrap();
        attempts.insert(handshake[SOCKET_ID].to_vec());
    }
    drop(silent);
    assert!(!call.is_finished());
    let listener = Listener::bind(address, config()).await.unwrap();
    let accepted = within(listener.accept()).await.unwrap();
    let caller = within(call).await.unwrap().unwrap();
    caller.send(message(1)).await.unwrap();
    assert_eq!(within(accepted.recv()).await.unwrap().payload, message(1));
}

#[tokio::test]
async fn a_rejection_is_not_the_end_until_the_attempts_are() {
    let listener = Listener::bind(local(), config()).await.unwrap();
    let address = listener.local_addr();
    let port = Port::bind(PortConfig { local: Some(local()), ..PortConfig::default() });
    let port = port.await.unwrap();
    let reject = async {
        for code in [2_001, 2_002, 2_003] {
            let reason = RejectReason::from_api(code).unwrap();
            listener.incoming().await.unwrap().reject(reason);
        }
    };
    let reconnect = Reconnect { attempts: Some(3), ..quickly() };
    let call = reconnect.connect_from(&port, address, config());
    let ((), result) = within(async { tokio::join!(reject, call) }).await;
    assert_eq!(result.unwrap_err().reject_reason(), RejectReason::from_api(2_003));

    let short = config().with_connect_timeout(Duration::from_millis(20)).unwrap();
    let once = Reconnect { attempts: Some(0), ..quickly() };
    let nobody = tokio::net::UdpSocket::bind(local()).await.unwrap();
    let error = within(once.connect(nobody.local_addr().unwrap(), short)).await.unwrap_err();
    assert!(matches!(error.close_reason(), Some(CloseReason::ConnectTimeout(_))), "{error}");
}
