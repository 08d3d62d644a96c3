//! The UDP ports of the sockets. Sockets that are bound to one address with the same options share
//! a port.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use punctual::{Port, PortConfig};

use crate::code::{Code, Failure};
use crate::library::{Runtime, poll_once};
use crate::readiness::now;

/// A port that nobody uses is kept for this time, so that it can be bound again at once.
const KEPT: Duration = Duration::from_secs(1);

/// A UDP port, for one or more sockets.
#[derive(Debug)]
pub(crate) struct LocalPort {
    port: Port,
    config: PortConfig,
    reusable: bool,
    listens: AtomicBool,
}

impl LocalPort {
    /// The port for calls.
    pub(crate) const fn port(&self) -> &Port {
        &self.port
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.port.local_addr()
    }

    /// Takes the place of the port's listener. Returns whether it was free.
    pub(crate) fn begin_listening(&self) -> bool {
        !self.listens.swap(true, Ordering::SeqCst)
    }

    /// Gives the place of the port's listener back.
    pub(crate) fn end_listening(&self) {
        self.listens.store(false, Ordering::SeqCst);
    }
}

/// The open ports.
#[derive(Debug, Default)]
pub(crate) struct Ports(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    port: Arc<LocalPort>,
    /// Since when no socket has used the port.
    unused_since: Option<Instant>,
}

impl Ports {
    /// The port with this configuration: an open one, or a new one.
    ///
    /// Errors: another socket has the address with other options, or the system refuses it.
    pub(crate) fn open(
        &self,
        runtime: &Runtime,
        mut config: PortConfig,
        reusable: bool,
    ) -> Result<Arc<LocalPort>, Failure> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(local) = config.local.filter(|local| local.port() != 0)
            && let Some(entry) = entries.iter_mut().find(|entry| entry.overlaps(local, &config))
        {
            if entry.port.address() != local
                || entry.port.config != config
                || !(reusable && entry.port.reusable)
            {
                return Err(Code::BindConflict.into());
            }
            entry.unused_since = None;
            return Ok(Arc::clone(&entry.port));
        }
        let bound = poll_once(runtime, Port::bind(config.clone()));
        let port = bound.map_err(|error| failure(&error))?;
        config.local = Some(port.local_addr());
        let listens = AtomicBool::new(false);
        let port = Arc::new(LocalPort { port, config, reusable, listens });
        entries.push(Entry { port: Arc::clone(&port), unused_since: None });
        Ok(port)
    }

    /// Takes over a UDP socket that is bound.
    pub(crate) fn adopt(
        &self,
        runtime: &Runtime,
        udp: UdpSocket,
    ) -> Result<Arc<LocalPort>, Failure> {
        let _entered = runtime.enter();
        let port = Port::adopt(udp, &PortConfig::default()).map_err(|error| failure(&error))?;
        let config = PortConfig { local: Some(port.local_addr()), ..PortConfig::default() };
        let listens = AtomicBool::new(false);
        let port = Arc::new(LocalPort { port, config, reusable: false, listens });
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push(Entry { port: Arc::clone(&port), unused_since: None });
        Ok(port)
    }

    /// Closes ports that nobody has used for a while. Returns whether some are unused and still
    /// open.
    pub(crate) fn close_unused(&self) -> bool {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain_mut(|entry| {
            if Arc::strong_count(&entry.port) > 1 {
                entry.unused_since = None;
                return true;
            }
            now().saturating_duration_since(*entry.unused_since.get_or_insert_with(now)) < KEPT
        });
        entries.iter().any(|entry| entry.unused_since.is_some())
    }
}

impl Entry {
    /// Whether a socket at `local` with this configuration would share datagrams with this port.
    fn overlaps(&self, local: SocketAddr, config: &PortConfig) -> bool {
        let here = self.port.address();
        if here.port() != local.port() {
            return false;
        }
        let both = |address: &SocketAddr, config: &PortConfig| {
            address.is_ipv6() && address.ip().is_unspecified() && config.ipv6_only != Some(true)
        };
        match (here.ip(), local.ip()) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                here.ip() == local.ip() || here.ip().is_unspecified() || local.ip().is_unspecified()
            }
            // A new port of both families beside one address of IPv4 is left to the system.
            (IpAddr::V4(ip), IpAddr::V6(_)) => ip.is_unspecified() && both(&local, config),
            (IpAddr::V6(_), IpAddr::V4(_)) => both(&here, &self.port.config),
        }
    }
}

/// The error of a port that could not be opened.
pub(crate) fn failure(error: &punctual::Error) -> Failure {
    match error {
        punctual::Error::Io(error) => {
            Failure { code: Code::SocketFailed, system: system_number(error) }
        }
        punctual::Error::Config(_) => Code::InvalidParameter.into(),
        _ => Code::SocketFailed.into(),
    }
}

/// The system's number of an error, also of one that has got an explanation since.
fn system_number(error: &io::Error) -> i32 {
    use rustix::io::Errno;
    let by_kind = || match error.kind() {
        ErrorKind::AddrInUse => Errno::ADDRINUSE.raw_os_error(),
        ErrorKind::AddrNotAvailable => Errno::ADDRNOTAVAIL.raw_os_error(),
        ErrorKind::PermissionDenied => Errno::ACCESS.raw_os_error(),
        _ => 0,
    };
    error.raw_os_error().unwrap_or_else(by_kind)
}
