//! The example of a relay.

use punctual::{Listener, Socket};

use crate::common::{local, message, prompt, within};
use crate::relay_example::relay;

#[tokio::test]
async fn a_relay_passes_on_each_stream_with_its_id() {
    let (here, there) =
        (Listener::bind(local(), prompt()).await.unwrap(), Listener::bind(local(), prompt()));
    let there = there.await.unwrap();
    let address = here.local_addr();
    let relaying = tokio::spawn(relay(here, there.local_addr(), prompt()));
    for id in ["one", "two"] {
        let call = Socket::connect(address, prompt().with_stream_id(id).unwrap());
        let (source, sink) =
            within(async { tokio::try_join!(call, there.accept()) }).await.unwrap();
        assert_eq!(sink.stream_id(), id);
        for number in 0..20 {
            source.send(message(number)).await.unwrap();
            assert_eq!(within(sink.recv()).await.unwrap().payload, message(number));
        }
        source.close().await;
        assert!(within(sink.recv()).await.is_err(), "the end is passed on, too");
    }
    relaying.abort();
}
