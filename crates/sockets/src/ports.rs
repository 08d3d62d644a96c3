//! The UDP ports of the sockets. Sockets that are bound to one address with the same options share
//! a port.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use punctual::{Config, Listener, ListenerConfig, Port, PortConfig, ReservedPort};

use crate::code::{Code, Failure};
use crate::readiness::now;
use crate::runtimes::Runtimes;

/// A port that nobody uses is kept for this time, so that it can be bound again at once.
const KEPT: Duration = Duration::from_secs(1);

/// A UDP port, for one or more sockets.
#[derive(Debug)]
pub(crate) struct LocalPort {
    place: Mutex<Place>,
    address: SocketAddr,
    config: PortConfig,
    reusable: bool,
    listens: AtomicBool,
}

/// The use of a port. A port that listens from the start has a socket for each core.
#[derive(Debug)]
enum Place {
    /// Nothing yet; `None` only while it changes.
    Reserved(Option<ReservedPort>),
    Used(Port),
}

impl LocalPort {
    fn new(port: ReservedPort, config: PortConfig, reusable: bool) -> Arc<Self> {
        let address = port.local_addr();
        let place = Mutex::new(Place::Reserved(Some(port)));
        let config = PortConfig { local: Some(address), ..config };
        Arc::new(Self { place, address, config, reusable, listens: AtomicBool::new(false) })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port for calls.
    pub(crate) fn port(&self, runtimes: &Runtimes) -> Result<Port, Failure> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let reserved = match &mut *place {
            Place::Used(port) => return Ok(port.clone()),
            Place::Reserved(reserved) => reserved.take().ok_or(Code::SocketFailed)?,
        };
        let runtime = runtimes.for_port();
        let _entered = runtime.enter();
        let port = reserved.into_port().map_err(|error| failure(&error))?;
        *place = Place::Used(port.clone());
        Ok(port)
    }

    /// Listens at the port; accepted connections get these options. A port has one listener.
    pub(crate) fn listen(
        &self,
        runtimes: &Runtimes,
        connection: Config,
    ) -> Result<Listener, Failure> {
        if self.listens.swap(true, Ordering::SeqCst) {
            return Err(Code::AlreadyListening.into());
        }
        let listener = self.begin_listening(runtimes, connection);
        if listener.is_err() {
            self.end_listening();
        }
        listener
    }

    fn begin_listening(
        &self,
        runtimes: &Runtimes,
        connection: Config,
    ) -> Result<Listener, Failure> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let reserved = match &mut *place {
            Place::Used(port) => {
                return port.listen(connection).map_err(|error| failure(&error));
            }
            Place::Reserved(reserved) => reserved.take().ok_or(Code::SocketFailed)?,
        };
        let config = ListenerConfig { connection, shards: 0, ..ListenerConfig::default() };
        let listener = reserved
            .listen_on(config, &runtimes.for_listener())
            .map_err(|error| failure(&error))?;
        *place = Place::Used(listener.port());
        Ok(listener)
    }

    /// Gives the place of the port's listener back.
    pub(crate) fn end_listening(&self) {
        self.listens.store(false, Ordering::SeqCst);
    }

    /// The time to live of outgoing datagrams; `None` if the system does not say.
    pub(crate) fn ttl(&self) -> Option<u32> {
        match &*self.place.lock().unwrap_or_else(PoisonError::into_inner) {
            Place::Reserved(reserved) => reserved.as_ref()?.ttl().ok(),
            Place::Used(port) => port.ttl().ok(),
        }
    }

    /// The type of service of outgoing datagrams; `None` if the system does not say.
    pub(crate) fn tos(&self) -> Option<u32> {
        match &*self.place.lock().unwrap_or_else(PoisonError::into_inner) {
            Place::Reserved(reserved) => reserved.as_ref()?.tos().ok(),
            Place::Used(port) => port.tos().ok(),
        }
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
        config: PortConfig,
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
        let reserved = ReservedPort::bind(config.clone()).map_err(|error| failure(&error))?;
        let port = LocalPort::new(reserved, config, reusable);
        entries.push(Entry { port: Arc::clone(&port), unused_since: None });
        Ok(port)
    }

    /// Takes over a UDP socket that is bound.
    pub(crate) fn adopt(&self, udp: UdpSocket) -> Result<Arc<LocalPort>, Failure> {
        let config = PortConfig::default();
        let reserved = ReservedPort::adopt(udp, config.clone()).map_err(|error| failure(&error))?;
        let port = LocalPort::new(reserved, config, false);
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

#[cfg(test)]
mod tests {
    use crate::testing::{any_port, assert_fails, listen, listener, set, until};
    use crate::{Code, Library, OptionNumber};

    #[test]
    fn sockets_that_are_bound_alike_share_a_port() {
        let library = Library::start().unwrap();
        let [one, other] = [(); 2].map(|()| library.create_socket());
        library.bind(one, any_port()).unwrap();
        let address = library.local_address(one).unwrap();
        library.bind(other, address).unwrap();
        assert_eq!(library.local_address(other).unwrap(), address);
        // The port has one listener.
        library.listen(one, 1).unwrap();
        assert_fails(library.listen(other, 1), Code::AlreadyListening);
        library.shut_down();
    }

    #[test]
    fn an_address_that_is_taken_with_other_options_is_a_conflict() {
        let library = Library::start().unwrap();
        let address = listener(&library, &[]).address;
        let everywhere = (std::net::Ipv4Addr::UNSPECIFIED, address.port()).into();
        for (options, local) in [
            (&[(OptionNumber::IPTTL, 9)][..], address),
            (&[(OptionNumber::REUSEADDR, 0)], address),
            (&[], everywhere),
        ] {
            let socket = library.create_socket();
            set(&library, socket, options);
            assert_fails(library.bind(socket, local), Code::BindConflict);
        }
        library.shut_down();
    }

    #[test]
    fn an_address_of_another_program_is_an_error_of_the_system() {
        let library = Library::start().unwrap();
        let other = std::net::UdpSocket::bind(any_port()).unwrap();
        let socket = library.create_socket();
        let failure = library.bind(socket, other.local_addr().unwrap()).unwrap_err();
        assert_eq!(failure.code, Code::SocketFailed);
        assert_eq!(failure.system, rustix::io::Errno::ADDRINUSE.raw_os_error());
        library.shut_down();
    }

    #[test]
    fn a_port_can_listen_again_once_its_listener_is_closed() {
        let library = Library::start().unwrap();
        let first = listener(&library, &[]);
        library.close(first.id);
        let second = library.create_socket();
        library.bind(second, first.address).unwrap();
        library.listen(second, 1).unwrap();
        let caller = library.create_socket();
        library.connect(caller, first.address).unwrap();
        library.accept(second).unwrap();
        library.shut_down();
    }

    #[test]
    fn a_port_that_nobody_uses_is_closed_after_a_while() {
        let library = Library::start().unwrap();
        let socket = library.create_socket();
        let address = listen(&library, socket).address;
        library.close(socket);
        until("the port is closed", || std::net::UdpSocket::bind(address).ok());
        library.shut_down();
    }
}
