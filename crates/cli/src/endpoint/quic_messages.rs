//! Messages over QUIC without SRT: callers and listeners.

use bytes::Bytes;
use punctual::quic::{Protocol, QuicCloseReason, QuicConnection, QuicListener};
use punctual::{Error, PortConfig};
use punctual_uri::QuicTarget;

use crate::endpoint::EndLog;
use crate::endpoint::addresses::{addresses, first_to_answer};
use crate::endpoint::quic::announce_certificate;
use crate::endpoint::resolve::{resolve, unspecified};
use crate::exit::Failure;

/// Calls the listener that `target` names.
pub(crate) async fn call(target: &QuicTarget) -> Result<QuicConnection, Failure> {
    let all = addresses(&target.host, target.port).await?;
    let connection = first_to_answer(&all, |remote| async move {
        let local = Some((unspecified(Some(remote.ip())), 0).into());
        let port = PortConfig { local, ..target.port_config.clone() };
        Ok(QuicConnection::connect(port, remote).await?)
    })
    .await?;
    announce(&connection);
    Ok(connection)
}

/// Listens where `target` says.
pub(crate) async fn listen(target: &QuicTarget) -> Result<QuicListener, Failure> {
    let local = Some(resolve(&target.host, target.port, None).await?);
    let listener = QuicListener::bind(PortConfig { local, ..target.port_config.clone() }).await?;
    tracing::info!("listening on {}", listener.local_addr());
    announce_certificate(&target.port_config);
    Ok(listener)
}

/// The next connection that `listener` gets.
pub(crate) async fn accept(
    listener: &QuicListener,
    log: &EndLog,
) -> Result<QuicConnection, Failure> {
    let connection = listener.accept().await?;
    log.connected(|| announce(&connection));
    Ok(connection)
}

fn announce(connection: &QuicConnection) {
    if let Some(info) = connection.info() {
        let protocol = info.protocol.map_or("", Protocol::name);
        tracing::info!("connected with {} (QUIC, {protocol})", info.remote);
    }
}

/// Reads at least one message, or returns `false` at the end. Cancel safe.
pub(crate) async fn read(
    connection: &QuicConnection,
    batch: &mut Vec<Bytes>,
) -> Result<bool, Failure> {
    match connection.recv().await {
        Ok(message) => batch.push(message),
        Err(Error::QuicClosed(QuicCloseReason::Local | QuicCloseReason::Peer { code: 0, .. })) => {
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    }
    while batch.len() < BATCH
        && let Some(message) = connection.try_recv()
    {
        batch.push(message);
    }
    Ok(true)
}

/// The number of messages to read at once.
const BATCH: usize = 64;
