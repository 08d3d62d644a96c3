//! SRT connections: caller, rendezvous and listener.

use std::net::SocketAddr;

use punctual::{
    CipherMode, Config, ConnectionInfo, KeyState, Listener, ListenerConfig, Port, PortConfig,
    Socket, Transmission,
};
use punctual_units::DisplayDuration;

use crate::end::adapter::{LocalEnd, at_interface};
use crate::end::addresses::{addresses, first_to_answer, from_turn};
use crate::end::port_owner::{PortTransport, with_owner};
use crate::end::quic;
use crate::end::resolve::resolve;
use crate::failure::Failure;
use punctual_uri::{Mode, SrtTarget, redacted_stream_id};

/// The calls of one end, one after the other.
#[derive(Debug, Default)]
pub struct Calls {
    /// The ports that all calls start from; `None` for new ones for each call.
    shared: Option<Ports>,
    /// The number of calls so far.
    count: usize,
}

/// A port for each family of IP, IPv4 first, once it is bound.
type Ports = [Option<Port>; 2];

impl Calls {
    /// The same, from one port for all calls.
    pub fn from_one_port() -> Self {
        Self { shared: Some(Ports::default()), ..Self::default() }
    }

    /// Calls the listener that `target` names at each address of its host until one answers, or
    /// begins a rendezvous with the peer.
    ///
    /// A rendezvous is with one address, because both ends call each other: each try has the next.
    /// `payload_size` is that of the longest message, in bytes; zero for a stream of bytes.
    ///
    /// # Errors
    ///
    /// The host has no address, no port can be bound, or the call fails at each address.
    pub async fn call(
        &mut self,
        target: &SrtTarget,
        payload_size: usize,
    ) -> Result<Socket, Failure> {
        let config = config(target, payload_size)?;
        let mut all = addresses(&target.host, target.port).await?;
        if target.mode == Mode::Rendezvous {
            all = from_turn(all, self.count);
            all.truncate(1);
        }
        self.count += 1;
        let mut own = Ports::default();
        let ports = self.shared.as_mut().unwrap_or(&mut own);
        bind_for(&mut all, target, ports).await?;
        let ports = &*ports;
        first_to_answer(&all, |remote| {
            let (port, config) = (port_for(ports, remote).cloned(), config.clone());
            async move {
                let port = port.ok_or_else(|| Failure::runtime("no port is bound"))?;
                let local = port.local_addr();
                if target.mode == Mode::Rendezvous {
                    tracing::info!("rendezvous with {remote} from {local}");
                    return Ok(port.rendezvous(remote, config).await?);
                }
                tracing::debug!("calling {remote} from {local}");
                Ok(port.connect(remote, config).await?)
            }
        })
        .await
    }
}

/// One call, as [`Calls::call`] makes it.
///
/// # Errors
///
/// As [`Calls::call`].
pub async fn call(target: &SrtTarget, payload_size: usize) -> Result<Socket, Failure> {
    Calls::default().call(target, payload_size).await
}

/// Binds the ports that calls to `all` start from, and removes the addresses that cannot be called.
///
/// # Errors
///
/// None can be called.
async fn bind_for(
    all: &mut Vec<SocketAddr>,
    target: &SrtTarget,
    ports: &mut Ports,
) -> Result<(), Failure> {
    let mut failed = None;
    for address in &mut *all {
        let bound = match CallEnds::of_call(target, *address).await {
            Ok(ends) => {
                *address = ends.remote;
                bind_once(ports, ends).await
            }
            Err(failure) => Err(failure),
        };
        failed = failed.or(bound.err());
    }
    all.retain(|address| port_for(ports, *address).is_some());
    match failed {
        Some(failure) if all.is_empty() => Err(failure),
        _ => Ok(()),
    }
}

/// Binds the port for one family of IP, unless it is bound.
async fn bind_once(
    ports: &mut Ports,
    CallEnds { mut port, remote }: CallEnds,
) -> Result<(), Failure> {
    if port_for(ports, remote).is_none() {
        if remote.is_ipv6() {
            // The same port of IPv4 may be in use for the other addresses of the name.
            port.ipv6_only.get_or_insert(true);
        }
        ports[usize::from(remote.is_ipv6())] = Some(bind(port).await?);
    }
    Ok(())
}

fn port_for(ports: &Ports, remote: SocketAddr) -> Option<&Port> {
    ports[usize::from(remote.is_ipv6())].as_ref()
}

/// The options of a connection with messages of up to `payload_size` bytes, whose boundaries are
/// kept in a stream of bytes as well.
fn config(target: &SrtTarget, payload_size: usize) -> Result<Config, Failure> {
    let config = target.config_for_payload(payload_size).map_err(punctual::Error::from)?;
    Ok(config.with_framing(target.framing))
}

/// The options of the local port of a call, and its peer.
pub(crate) struct CallEnds {
    pub(crate) port: PortConfig,
    pub(crate) remote: SocketAddr,
}

impl CallEnds {
    /// Those of a call to `remote`, with the local address or the interface of `target`.
    pub(crate) async fn of_call(target: &SrtTarget, remote: SocketAddr) -> Result<Self, Failure> {
        let end = LocalEnd::find(target.local_host.as_deref(), remote.ip()).await?;
        let device = device(target, end.interface)?;
        let remote = at_interface(remote, device.as_deref()).await?;
        let local = Some((end.ip, target.local_port.unwrap_or(0)).into());
        Ok(Self { port: PortConfig { local, device, ..target.port_config.clone() }, remote })
    }

    /// Those of a listener at the address of `target`, or at the one of its interface.
    pub(crate) async fn of_listener(target: &SrtTarget) -> Result<PortConfig, Failure> {
        let mut local = resolve(&target.host, target.port, None).await?;
        let end = LocalEnd::find(target.local_host.as_deref(), local.ip()).await?;
        if !end.ip.is_unspecified() {
            local.set_ip(end.ip);
        }
        let device = device(target, end.interface)?;
        let local = Some(at_interface(local, device.as_deref()).await?);
        Ok(PortConfig { local, device, ..target.port_config.clone() })
    }
}

/// The interface that all packets of the port must take: that of `adapter` or `bindtodevice`.
fn device(target: &SrtTarget, adapter: Option<String>) -> Result<Option<String>, Failure> {
    match (adapter, &target.port_config.device) {
        (Some(adapter), Some(device)) if adapter != *device => Err(Failure::usage(format!(
            "a port has one interface: adapter={adapter} or bindtodevice={device}"
        ))),
        (adapter, device) => Ok(adapter.or_else(|| device.clone())),
    }
}

/// Binds the port that a call starts from.
async fn bind(config: PortConfig) -> Result<Port, Failure> {
    let local = config.local;
    Port::bind(config).await.map_err(|error| not_bound(error, local))
}

/// The failure to bind a port of SRT.
pub(crate) fn not_bound(error: punctual::Error, local: Option<SocketAddr>) -> Failure {
    match (&error, local) {
        (punctual::Error::Io(cause), Some(local)) => {
            let failure = Failure::runtime(cause.to_string());
            with_owner(failure, local, PortTransport::Udp, cause)
        }
        _ => error.into(),
    }
}

/// Listens at the address of `target`, for a limited number of callers at a time, with messages of
/// at most `payload_size` bytes.
///
/// # Errors
///
/// The address is not one of this machine, or the port is in use.
pub async fn listen(
    target: &SrtTarget,
    payload_size: usize,
    max_callers: Option<usize>,
) -> Result<Listener, Failure> {
    let port = CallEnds::of_listener(target).await?;
    let local = port.local;
    let listener = Listener::bind_with(ListenerConfig {
        port,
        connection: config(target, payload_size)?,
        max_callers,
        ..ListenerConfig::default()
    })
    .await
    .map_err(|error| not_bound(error, local))?;
    tracing::info!("listening on {}", listener.local_addr());
    quic::announce_certificate(&target.port_config);
    Ok(listener)
}

/// The encryption of a connection in words.
fn encryption(info: &ConnectionInfo, over_quic: bool) -> String {
    let state = [info.send_key_state, info.receive_key_state]
        .into_iter()
        .find(|state| !matches!(state, KeyState::Unsecured | KeyState::Secured));
    match (info.cipher, state) {
        (Some((mode, length)), _) => {
            let mode = match mode {
                CipherMode::Ctr => "CTR",
                CipherMode::Gcm => "GCM",
            };
            format!("encrypted with AES-{}-{mode}", 8 * length.bytes())
        }
        (None, _) if over_quic => "encrypted by QUIC".to_owned(),
        (None, Some(state)) => format!("not encrypted ({state})"),
        (None, None) => "not encrypted".to_owned(),
    }
}

/// Logs the peer and the settings that both ends agreed on.
pub fn announce(socket: &Socket) {
    let info = socket.info();
    let [_, major, minor, patch] = info.peer_version.to_be_bytes();
    let stream = match info.stream_id.as_str() {
        "" => String::new(),
        id => format!(", stream ID `{}`", redacted_stream_id(id).escape_debug()),
    };
    // Files are not delayed.
    let delayed = !(info.receive_latency.is_zero() && info.peer_latency.is_zero());
    let encryption = encryption(&info, quic::of_socket(socket).is_some());
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
        "connected with {peer} (SRT {major}.{minor}.{patch}{carriage}{stream}), \
         {encryption}{latency}{kind}"
    );
    if info.caller_latency.is_some_and(|asked| asked.is_zero()) {
        tracing::warn!(
            "{} asked for no latency: in OBS and FFmpeg `latency` counts microseconds, so that \
             `latency=200` is 0.2 ms, and `latency=200000` is 200 ms",
            peer
        );
    }
}
