//! Ports with `coalesce`.

use std::time::Duration;

use punctual::{Listener, ListenerConfig, Port, PortConfig, Timer, now};

use crate::common::{config, local, message, within};

const COALESCE: Duration = Duration::from_millis(20);

fn gathering() -> PortConfig {
    PortConfig { local: Some(local()), coalesce: COALESCE, ..PortConfig::default() }
}

#[tokio::test]
async fn a_stream_over_gathering_ports_arrives_whole_with_few_turns() {
    let listener =
        ListenerConfig { port: gathering(), connection: config(), ..ListenerConfig::default() };
    let listener = Listener::bind_with(listener).await.unwrap();
    let port = Port::bind(gathering()).await.unwrap();
    let call = port.connect(listener.local_addr(), config());
    let (caller, accepted) =
        within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    let turns_before = [&caller, &accepted].map(|socket| socket.port_statistics().turns);

    let start = now();
    let send = async {
        let mut timer = Timer::new().unwrap();
        for number in 0..300 {
            timer.sleep_until(start + number * Duration::from_millis(1)).await;
            caller.send(message(number)).await.unwrap();
        }
    };
    let receive = async {
        for number in 0..300 {
            let received = accepted.recv().await.unwrap();
            assert!(now() + COALESCE / 2 >= received.due);
            assert_eq!(received.payload, message(number));
        }
    };
    within(async { tokio::join!(send, receive) }).await;

    // Turns follow each other at the least distance of a period; the receiver has one more each
    // time that its application makes room.
    let periods = (now() - start).as_millis().div_ceil(COALESCE.as_millis());
    for (socket, before) in [&caller, &accepted].into_iter().zip(turns_before) {
        let turns = u128::from(socket.port_statistics().turns - before);
        assert!(turns <= 2 * periods + 2, "{turns} turns in {periods} periods");
    }
}

#[tokio::test]
async fn a_period_out_of_range_is_refused() {
    let coalesce = Duration::from_millis(101);
    let error = Port::bind(PortConfig { coalesce, ..gathering() }).await.unwrap_err().to_string();
    assert!(error.contains("coalesce") && error.contains("0 to 100 ms"), "{error}");
}
