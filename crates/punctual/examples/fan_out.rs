//! One stream for many: whoever calls gets it from then on, and who is slow is dropped.
//!
//! ```sh
//! cargo run --example fan_out -- 0.0.0.0:4200
//! srt-live-transmit srt://127.0.0.1:4200 file://con > stream.bin
//! ```
//!
//! Each viewer has a task and a place in one queue of the newest messages. A viewer that cannot
//! keep up waits for nobody else, and nobody waits for it: when the queue has gone past its place,
//! it is told goodbye.

use std::time::Duration;

use bytes::Bytes;
use punctual::{Config, Error, Listener, Socket};
use tokio::sync::broadcast::{self, error::RecvError};

/// Messages that a viewer may be behind: a second at 10 Mb/s.
pub(crate) const BEHIND: usize = 1_000;

/// How a viewer's stream came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// There is no more.
    Over,
    /// The viewer has closed, or is gone.
    Left,
    /// The viewer was too far behind.
    Slow,
}

/// Lets everybody in who calls, and gives each what comes from `stream` from then on.
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

/// Sends a viewer what comes, until one of both is over.
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
        // What waits for it would only come later still.
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
            // An error means that nobody views it.
            let _ = source.send(Bytes::copy_from_slice(&number.to_be_bytes()));
        }
    });
    serve(listener, stream).await
}
