//! One stream for many viewers: each caller gets it from the time of its call, and a viewer that is
//! too slow is disconnected.
//!
//! ```sh
//! cargo run -p punctual --example fan_out -- 0.0.0.0:4200
//! srt-live-transmit srt://127.0.0.1:4200 file://con > stream.bin
//! ```
//!
//! Each viewer has a task, and a position in a shared queue of the newest messages. A slow viewer
//! delays neither the stream nor other viewers: when its next message has left the queue, its
//! connection is closed.

use std::time::Duration;

use bytes::Bytes;
use punctual::{Config, Error, Listener, Socket};
use tokio::sync::broadcast::{self, error::RecvError};

/// The number of messages that a viewer may be behind: a second at 10 Mb/s.
pub(crate) const BEHIND: usize = 1_000;

/// The reason why a viewer's stream ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// The stream has ended.
    Over,
    /// The viewer has closed the connection, or it failed.
    Left,
    /// The viewer was too far behind.
    Slow,
}

/// Accepts every caller, and sends it the messages of `stream` from then on.
///
/// # Errors
///
/// The listener has stopped.
pub(crate) async fn serve(
    listener: Listener,
    stream: broadcast::Sender<Bytes>,
) -> Result<(), Error> {
    loop {
        let viewer = listener.accept().await?;
        let messages = stream.subscribe();
        tokio::spawn(async move {
            let address = viewer.peer_addr();
            println!("{address} views `{}`", viewer.stream_id());
            let end = view(viewer, messages).await;
            println!("{address}: {end:?}");
        });
    }
}

/// Sends messages to a viewer until the stream or the connection ends.
pub(crate) async fn view(viewer: Socket, mut messages: broadcast::Receiver<Bytes>) -> End {
    let end = loop {
        match messages.recv().await {
            Ok(message) => {
                if viewer.send(message).await.is_err() {
                    break End::Left;
                }
            }
            Err(RecvError::Lagged(_)) => break End::Slow,
            Err(RecvError::Closed) => break End::Over,
        }
    };
    match end {
        // The messages in its send buffer would only be later still.
        End::Slow => viewer.abort().await,
        End::Over | End::Left => viewer.close().await,
    }
    end
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4200".to_owned());
    let address = address.parse().expect("an address and a port, such as 0.0.0.0:4200");
    let listener = Listener::bind(address, Config::default()).await?;
    println!("listening on {}", listener.local_addr());
    let (stream, _) = broadcast::channel(BEHIND);
    let source = stream.clone();
    tokio::spawn(async move {
        let mut every = tokio::time::interval(Duration::from_millis(10));
        for number in 0_u64.. {
            every.tick().await;
            // An error means that there are no viewers.
            let _ = source.send(Bytes::copy_from_slice(&number.to_be_bytes()));
        }
    });
    serve(listener, stream).await
}
