//! Policies of one's own, written against this crate alone.

use std::time::Duration;

use punctual::{
    Bitrate, Decision, Instant, ReportedPacket, RetransmitPolicy, Rtt, SenderView, SeqNo,
};

use crate::common::{message, pair, within};
use crate::own_retransmission_example::{AtMost, at_most};

const NOW: Instant = Instant::from_millis(9_000);

fn view() -> SenderView {
    let rtt = Rtt { smoothed: Duration::from_millis(40), variance: Duration::from_millis(2) };
    let limit = Some(Bitrate::from_mbps(10));
    SenderView { rtt, originals: 1_000, loss: 0.1, limit, round: Duration::from_millis(45) }
}

/// A packet that was retransmitted so many times, the last time so many milliseconds ago.
fn packet(retransmissions: u32, ago: Option<u64>) -> ReportedPacket {
    let last_retransmit = ago.map(|ms| NOW - Duration::from_millis(ms));
    let origin = NOW - Duration::from_millis(100);
    let seq = SeqNo::new(7);
    ReportedPacket {
        seq,
        origin,
        last_retransmit,
        retransmissions,
        deadline: None,
        next_deadline: None,
    }
}

#[test]
fn a_packet_is_retransmitted_as_often_as_the_parameter_says() {
    let mut policy = AtMost { limit: 2 };
    assert_eq!(policy.decide(NOW, &packet(0, None), &view()), Decision::ONCE);
    assert_eq!(policy.decide(NOW, &packet(1, Some(20)), &view()), Decision::Suppress);
    assert_eq!(policy.decide(NOW, &packet(1, Some(50)), &view()), Decision::ONCE);
    assert_eq!(policy.decide(NOW, &packet(2, Some(50)), &view()), Decision::TooLate);
}

#[tokio::test]
async fn a_connection_takes_the_policy_that_its_options_hold() {
    let config = at_most(2).with_latency(Duration::from_millis(20)).unwrap();
    let (a, b) = pair(config).await;
    for number in 0..20 {
        a.send(message(number)).await.unwrap();
        assert_eq!(within(b.recv()).await.unwrap().payload, message(number));
    }
}
