//! SRT connections: caller, rendezvous and listener.

use std::net::SocketAddr;

use punctual::{Config, Listener, ListenerConfig, Port, PortConfig, Socket, Transmission};
use punctual_units::DisplayDuration;

use crate::endpoint::quic;
use crate::endpoint::resolve::{resolve, unspecified};
use crate::exit::Failure;
use punctual_uri::{Mode, SrtTarget};

/// Calls the listener that `target` names, or begins a rendezvous with the peer.
pub(crate) async fn call(target: &SrtTarget, payload_size: usize) -> Result<Socket, Failure> {
    call_from(&mut None, target, payload_size).await
}

/// The same from `port`; if there is none, one is bound and left there.
pub(crate) async fn call_from(
    port: &mut Option<Port>,
    target: &SrtTarget,
    payload_size: usize,
) -> Result<Socket, Failure> {
    let remote = resolve(&target.host, target.port, None).await?;
    let config = config(target, payload_size)?;
    let port = match port {
        Some(port) => &*port,
        None => port.insert(bind(target, remote).await?),
    };
    if target.mode == Mode::Rendezvous {
        tracing::info!("rendezvous with {remote} from {}", port.local_addr());
        return Ok(port.rendezvous(remote, config).await?);
    }
    tracing::debug!("calling {remote} from {}", port.local_addr());
    Ok(port.connect(remote, config).await?)
}

/// The options of a connection with messages of up to `payload_size` bytes, whose boundaries are
/// kept in a stream of bytes as well.
fn config(target: &SrtTarget, payload_size: usize) -> Result<Config, Failure> {
    let config = target.config_for_payload(payload_size).map_err(punctual::Error::from)?;
    Ok(config.with_framing(target.framing))
}

/// Binds the port that a call to `remote` starts from.
async fn bind(target: &SrtTarget, remote: SocketAddr) -> Result<Port, Failure> {
    let local = match &target.local_host {
        Some(host) => resolve(host, 0, Some(remote.ip())).await?.ip(),
        None => unspecified(Some(remote.ip())),
    };
    let local = Some((local, target.local_port.unwrap_or(0)).into());
    Ok(Port::bind(PortConfig { local, ..target.port_config.clone() }).await?)
}

/// Listens at the address of `target`, for a limited number of callers at a time.
pub(crate) async fn listen(
    target: &SrtTarget,
    payload_size: usize,
    max_callers: Option<usize>,
) -> Result<Listener, Failure> {
    let local = Some(resolve(&target.host, target.port, None).await?);
    let listener = Listener::bind_with(ListenerConfig {
        port: PortConfig { local, ..target.port_config.clone() },
        connection: config(target, payload_size)?,
        max_callers,
        ..ListenerConfig::default()
    })
    .await?;
    tracing::info!("listening on {}", listener.local_addr());
    quic::announce_certificate(&target.port_config);
    Ok(listener)
}

/// Logs the peer and the settings that both ends agreed on.
pub(crate) fn announce(socket: &Socket) {
    let info = socket.info();
    let [_, major, minor, patch] = info.peer_version.to_be_bytes();
    let stream = match info.stream_id.as_str() {
        "" => String::new(),
        id => format!(", stream ID `{}`", id.escape_debug()),
    };
    // Files are not delayed.
    let delayed = !(info.receive_latency.is_zero() && info.peer_latency.is_zero());
    let (here, there) = (info.receive_latency, info.peer_latency);
    let latency = if delayed {
        format!(", latency {:#} here and {:#} there", DisplayDuration(here), DisplayDuration(there))
    } else {
        String::new()
    };
    let carriage = if quic::of_socket(socket).is_some() { " over QUIC" } else { "" };
    let peer = socket.peer_addr();
    let kind = match (info.transmission, info.framing) {
        (Transmission::Stream, true) => ", a stream of bytes with the boundaries of messages",
        (Transmission::Stream, false) => ", a stream of bytes",
        (Transmission::Live | Transmission::Messages, _) => "",
    };
    tracing::info!(
        "connected with {peer} (SRT {major}.{minor}.{patch}{carriage}{stream}){latency}{kind}"
    );
    if info.caller_latency.is_some_and(|asked| asked.is_zero()) {
        tracing::warn!(
            "{} asked for no latency: in OBS and FFmpeg `latency` counts microseconds, so that \
             `latency=200` is 0.2 ms, and `latency=200000` is 200 ms",
            peer
        );
    }
}
