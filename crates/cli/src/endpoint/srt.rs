//! SRT connections: calling, meeting and listening.

use punctual::{Listener, ListenerConfig, Port, PortConfig, Socket};
use punctual_units::DisplayDuration;

use crate::endpoint::resolve::{resolve, unspecified};
use crate::exit::Failure;
use punctual_uri::{Mode, SrtTarget};

/// Calls the listener that `target` names, or meets the end that does the same.
pub(crate) async fn call(target: &SrtTarget, payload_size: usize) -> Result<Socket, Failure> {
    let remote = resolve(&target.host, target.port, None).await?;
    let local = match &target.local_host {
        Some(host) => resolve(host, 0, Some(remote.ip())).await?.ip(),
        None => unspecified(Some(remote.ip())),
    };
    let config = target.config_for_payload(payload_size).map_err(punctual::Error::from)?;
    let local = Some((local, target.local_port.unwrap_or(0)).into());
    let port = Port::bind(PortConfig { local, ..target.port_config.clone() }).await?;
    if target.mode == Mode::Rendezvous {
        tracing::info!("meeting {remote} from {}", port.local_addr());
        return Ok(port.rendezvous(remote, config).await?);
    }
    tracing::debug!("calling {remote} from {}", port.local_addr());
    Ok(port.connect(remote, config).await?)
}

/// Listens where `target` says.
pub(crate) async fn listen(target: &SrtTarget, payload_size: usize) -> Result<Listener, Failure> {
    let local = Some(resolve(&target.host, target.port, None).await?);
    let listener = Listener::bind_with(ListenerConfig {
        port: PortConfig { local, ..target.port_config.clone() },
        connection: target.config_for_payload(payload_size).map_err(punctual::Error::from)?,
        ..ListenerConfig::default()
    })
    .await?;
    tracing::info!("listening on {}", listener.local_addr());
    Ok(listener)
}

/// Says who is there and what was agreed.
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
        format!(", latency {} here and {} there", DisplayDuration(here), DisplayDuration(there))
    } else {
        String::new()
    };
    tracing::info!("connected with {} (SRT {major}.{minor}.{patch}{stream}){latency}", info.remote);
}
