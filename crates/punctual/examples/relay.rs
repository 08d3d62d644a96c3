//! A relay: it sends each caller's stream to another address, with the same stream ID.
//!
//! ```sh
//! punctual receive 'srt://:4300' &
//! cargo run -p punctual --example relay -- 127.0.0.1:4200 127.0.0.1:4300 &
//! punctual generate 'srt://127.0.0.1:4200' --sendrate 5Mbps
//! ```

use std::net::SocketAddr;

use punctual::{Config, Error, Listener, Socket};

/// Accepts callers and relays the stream of each to `to`, until the listener fails.
///
/// # Errors
///
/// The listener has stopped.
pub(crate) async fn relay(listener: Listener, to: SocketAddr, config: Config) -> Result<(), Error> {
    loop {
        let source = listener.accept().await?;
        let config = config.clone();
        tokio::spawn(async move {
            let from = source.peer_addr();
            match pass_on(&source, to, config).await {
                Ok(messages) => println!("{from}: {messages} messages"),
                Err(error) => println!("{from}: {error}"),
            }
            source.close().await;
        });
    }
}

/// Connects to `to` and sends each message of `source` there. Returns their number when the source
/// has ended.
///
/// # Errors
///
/// The next hop does not answer, or has ended the connection.
async fn pass_on(source: &Socket, to: SocketAddr, config: Config) -> Result<u64, Error> {
    let next = Socket::connect(to, config.with_stream_id(source.stream_id())?).await?;
    let mut messages = 0;
    while let Ok(message) = source.recv().await {
        // Messages are delivered when they are due, so the origin times of the next hop have no
        // jitter from this one.
        next.send(message.payload).await?;
        messages += 1;
    }
    next.close().await;
    Ok(messages)
}

/// Listens at the address in the first argument, and relays to the one in the second.
#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut addresses = std::env::args().skip(1).map(|text| text.parse().ok());
    let (Some(Some(here)), Some(Some(there))) = (addresses.next(), addresses.next()) else {
        eprintln!("usage: relay ADDRESS:PORT ADDRESS:PORT");
        std::process::exit(2);
    };
    let listener = Listener::bind(here, Config::default()).await?;
    relay(listener, there, Config::default()).await
}
