//! Calls from UDP ports, without the types of the application: a port is opened, and a call begins.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use punctual_io::{Alarm, UdpSocket, canonical};
use punctual_proto::{Attempt, Config, Endpoint, EndpointConfig, Membership};

use crate::config::{Carriage, PortConfig};
use crate::driver::Driver;
use crate::error::Error;
use crate::key_task::DERIVATIONS;
use crate::machine::Machine;
use crate::seed::seed;
use crate::shared::{Begun, Handle, Shared};
use crate::signals::GroupSignals;
#[cfg(feature = "quic")]
use crate::srt_over_quic::QuicMachine;
use crate::state::Phase;
use crate::udp;

/// Opens a UDP port.
pub(crate) fn bind(config: &PortConfig) -> Result<Handle, Error> {
    open(&Arc::new(udp::bind(config, false)?), config)
}

/// The options of a port that has any address of the family of `remote`.
pub(crate) fn any_port(remote: SocketAddr) -> PortConfig {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    PortConfig { local: Some(SocketAddr::new(any, 0)), ..PortConfig::default() }
}

/// Takes over a UDP socket as a port.
pub(crate) fn open(udp: &Arc<UdpSocket>, config: &PortConfig) -> Result<Handle, Error> {
    let shards = Arc::from([Arc::clone(udp)]);
    let mut endpoint = EndpointConfig::new(seed()?);
    // The port may listen later.
    endpoint.key_derivations = Some(DERIVATIONS);
    start(Arc::clone(udp), shards, endpoint, config.coalesce, &config.carriage)
}

/// Begins a call to the listener at `remote`.
pub(crate) fn connect(port: &Handle, remote: SocketAddr, config: Config) -> Result<Begun, Error> {
    config.check()?;
    begin(port, remote, None, config.into())
}

/// Begins a rendezvous with the end at `remote`.
pub(crate) fn rendezvous(
    port: &Handle,
    remote: SocketAddr,
    config: Config,
) -> Result<Begun, Error> {
    config.check()?;
    port.shared().lock().machine.check_rendezvous()?;
    begin(port, remote, None, Attempt::rendezvous(config))
}

/// Begins a call for a link of a group.
pub(crate) fn connect_link(
    port: &Handle,
    remote: SocketAddr,
    config: Config,
    membership: &Membership,
    group: &Arc<GroupSignals>,
) -> Result<Begun, Error> {
    begin(port, remote, Some(group), Attempt::link(config, membership))
}

/// Begins a connection, perhaps as a link of a group.
fn begin(
    port: &Handle,
    remote: SocketAddr,
    group: Option<&Arc<GroupSignals>>,
    attempt: Attempt<'_>,
) -> Result<Begun, Error> {
    let shared = port.shared();
    let remote = canonical(remote);
    shared.udp.check_family(remote)?;
    let (id, signals) = shared.call_and_wake(|state, now| {
        let path = state.machine.path_to(now, remote)?;
        let id = state.endpoint().connect(now, path, attempt)?;
        let signals = state.open(id, Phase::Connecting, remote);
        if let Some(group) = group {
            signals.join(group);
        }
        Ok::<_, Error>((id, signals))
    })?;
    Ok(Begun { shared: Arc::clone(shared), id, signals })
}

/// Starts the driver of a port. The port stays open while there is a handle or a connection.
pub(crate) fn start(
    udp: Arc<UdpSocket>,
    shards: Arc<[Arc<UdpSocket>]>,
    config: EndpointConfig,
    coalesce: Duration,
    carriage: &Carriage,
) -> Result<Handle, Error> {
    let shard = config.shard;
    let endpoint = Endpoint::new(config, punctual_io::now());
    let machine = match carriage {
        Carriage::Udp => Machine::Udp(Box::new(endpoint)),
        #[cfg(feature = "quic")]
        Carriage::Quic(quic) => {
            Machine::Quic(Box::new(QuicMachine::new(endpoint, Arc::clone(quic), seed()?)))
        }
    };
    let shared = Arc::new(Shared::new(udp, Alarm::new()?, machine, shard, coalesce));
    let handle = Handle::new(&shared);
    tokio::spawn(Driver::new(shared, shards, coalesce));
    Ok(handle)
}
