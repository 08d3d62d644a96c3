//! Connections of publishers and viewers, by the library.

use std::net::SocketAddr;
use std::time::Duration;

use punctual::{Config, Error, Socket};
use tokio::time::interval;

use crate::source::TestStream;

/// The stream of this number, by name.
pub(crate) fn name(number: u16) -> String {
    format!("soak/{number}")
}

/// Calls the relay with a stream ID.
pub(crate) async fn call(to: SocketAddr, id: &str, latency: Duration) -> Result<Socket, Error> {
    Socket::connect(to, options(id, latency)).await
}

/// The options of a caller.
pub(crate) fn options(id: &str, latency: Duration) -> Config {
    let config = Config::default().with_latency(latency).expect("a latency of some seconds");
    config.with_stream_id(id).expect("a short stream ID")
}

/// Publishes the stream of this number from its beginning until the connection ends. Returns why.
pub(crate) async fn publish(socket: &Socket, number: u16, pictures_per_second: u32) -> Error {
    let mut stream = TestStream::new(number, pictures_per_second);
    let mut pace = interval(Duration::from_secs(1) / pictures_per_second);
    loop {
        pace.tick().await;
        if let Err(error) = socket.send(stream.next_message()).await {
            return error;
        }
    }
}

/// Hands what a viewer gets to its judge until the connection ends. Returns why.
pub(crate) async fn view(socket: &Socket, mut got: impl FnMut(&punctual::Message)) -> Error {
    loop {
        match socket.recv().await {
            Ok(message) => got(&message),
            Err(error) => return error,
        }
    }
}
