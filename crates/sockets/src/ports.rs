//! The UDP ports of the sockets. Sockets that are bound to one address with the same options share
//! a port, and so do a few callers that have not asked for an address.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use punctual::{Config, Listener, ListenerConfig, Port, PortConfig, ReservedPort};
use punctual_blocking::{Runtimes, now};

use crate::code::{Code, Failure};

/// The most callers that share a port. Its socket's buffer holds the datagrams of all of them.
const CALLERS: usize = 8;
/// The longest time that a port needs to be free after its last socket was closed.
const CLOSES: Duration = Duration::from_secs(1);

/// A UDP port, for one or more sockets. It is closed with the last of them.
#[derive(Debug)]
pub(crate) struct LocalPort {
    place: Mutex<PortUse>,
    address: SocketAddr,
    config: PortConfig,
    /// The configuration as it was asked for, perhaps with any address.
    asked: PortConfig,
    reusable: bool,
    /// Whether it serves callers that have not asked for an address of their own.
    serves_callers: bool,
    listens: AtomicBool,
}

/// The use of a port. A port that listens from the start has a socket for each core.
#[derive(Debug)]
enum PortUse {
    /// Nothing yet; `None` only while it changes.
    Reserved(Option<ReservedPort>),
    Used(Port),
}

impl LocalPort {
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port for calls.
    pub(crate) fn port(&self, runtimes: &Runtimes) -> Result<Port, Failure> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let reserved = match &mut *place {
            PortUse::Used(port) => return Ok(port.clone()),
            PortUse::Reserved(reserved) => reserved.take().ok_or(Code::SocketFailed)?,
        };
        let runtime = runtimes.for_port();
        let _entered = runtime.enter();
        let port = reserved.into_port().map_err(|error| failure(&error))?;
        *place = PortUse::Used(port.clone());
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
            PortUse::Used(port) => {
                return port.listen(connection).map_err(|error| failure(&error));
            }
            PortUse::Reserved(reserved) => reserved.take().ok_or(Code::SocketFailed)?,
        };
        let config = ListenerConfig { connection, shards: 0, ..ListenerConfig::default() };
        let listener = reserved
            .listen_on(config, &runtimes.for_listener())
            .map_err(|error| failure(&error))?;
        *place = PortUse::Used(listener.port());
        Ok(listener)
    }

    /// Gives the place of the port's listener back.
    pub(crate) fn end_listening(&self) {
        self.listens.store(false, Ordering::SeqCst);
    }

    /// The time to live of outgoing datagrams; `None` if the system does not say.
    pub(crate) fn ttl(&self) -> Option<u32> {
        match &*self.place.lock().unwrap_or_else(PoisonError::into_inner) {
            PortUse::Reserved(reserved) => reserved.as_ref()?.ttl().ok(),
            PortUse::Used(port) => port.ttl().ok(),
        }
    }

    /// The type of service of outgoing datagrams; `None` if the system does not say.
    pub(crate) fn tos(&self) -> Option<u32> {
        match &*self.place.lock().unwrap_or_else(PoisonError::into_inner) {
            PortUse::Reserved(reserved) => reserved.as_ref()?.tos().ok(),
            PortUse::Used(port) => port.tos().ok(),
        }
    }
}

/// The open ports.
#[derive(Debug, Default)]
pub(crate) struct Ports(Mutex<Open>);

/// Ports that sockets use. A port is closed with the last of them.
#[derive(Debug, Default)]
struct Open(Vec<Weak<LocalPort>>);

/// The ports of this process that were closed just now, also by a library that has ended, and when:
/// their threads may need a moment to let go of them.
static CLOSED: Mutex<VecDeque<(Instant, SocketAddr)>> = Mutex::new(VecDeque::new());

impl Ports {
    /// The port with this configuration: an open one, or a new one.
    ///
    /// Errors: another socket has the address with other options, or the system refuses it.
    pub(crate) fn open(
        &self,
        config: PortConfig,
        reusable: bool,
    ) -> Result<Arc<LocalPort>, Failure> {
        let begun = now();
        loop {
            let mut open = self.lock();
            if let Some(local) = config.local.filter(|local| local.port() != 0)
                && let Some(port) = open.ports().find(|port| port.overlaps(local, &config))
            {
                let is_same = port.address == local && port.config == config;
                let is_shared = is_same && reusable && port.reusable;
                return if is_shared { Ok(port) } else { Err(Code::BindConflict.into()) };
            }
            match ReservedPort::bind(config.clone()).map_err(|error| failure(&error)) {
                Ok(reserved) => return Ok(open.add(reserved, config, reusable, false)),
                Err(failure) if !is_closing(&config, begun) => return Err(failure),
                Err(_) => {}
            }
            drop(open);
            pause();
        }
    }

    /// A port for a call from any port: one with this configuration that other callers use, or a
    /// new one. Each thread gets a port first.
    pub(crate) fn open_for_call(
        &self,
        config: PortConfig,
        reusable: bool,
    ) -> Result<Arc<LocalPort>, Failure> {
        let mut open = self.lock();
        let is_like = |port: &Arc<LocalPort>| {
            port.serves_callers && reusable && port.reusable && port.asked == config
        };
        let like: Vec<_> = open.ports().filter(is_like).collect();
        if like.len() >= available_parallelism().map_or(1, usize::from)
            // One use is that of the list itself.
            && let Some(port) = like.iter().min_by_key(|port| Arc::strong_count(port))
            && Arc::strong_count(port) <= CALLERS
        {
            return Ok(Arc::clone(port));
        }
        let reserved = ReservedPort::bind(config.clone()).map_err(|error| failure(&error))?;
        Ok(open.add(reserved, config, reusable, true))
    }

    /// Takes over a UDP socket that is bound.
    pub(crate) fn adopt(&self, udp: UdpSocket) -> Result<Arc<LocalPort>, Failure> {
        let config = PortConfig::default();
        let reserved = ReservedPort::adopt(udp, config.clone()).map_err(|error| failure(&error))?;
        Ok(self.lock().add(reserved, config, false, false))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn ports(&self) -> impl Iterator<Item = Arc<LocalPort>> {
        self.0.iter().filter_map(Weak::upgrade)
    }

    fn add(
        &mut self,
        reserved: ReservedPort,
        asked: PortConfig,
        reusable: bool,
        serves_callers: bool,
    ) -> Arc<LocalPort> {
        self.0.retain(|port| port.strong_count() > 0);
        let address = reserved.local_addr();
        let port = Arc::new(LocalPort {
            place: Mutex::new(PortUse::Reserved(Some(reserved))),
            address,
            config: PortConfig { local: Some(address), ..asked.clone() },
            asked,
            reusable,
            serves_callers,
            listens: AtomicBool::new(false),
        });
        self.0.push(Arc::downgrade(&port));
        port
    }
}

/// Whether a port with this number was closed shortly before `begun`, and is free soon.
fn is_closing(config: &PortConfig, begun: Instant) -> bool {
    let number = config.local.map_or(0, |local| local.port());
    let closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_recent = |at: Instant| begun.saturating_duration_since(at) < CLOSES;
    now() - begun < CLOSES
        && closed.iter().any(|&(at, port)| port.port() == number && is_recent(at))
}

impl Drop for LocalPort {
    fn drop(&mut self) {
        let mut closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        while closed.front().is_some_and(|&(at, _)| now.saturating_duration_since(at) > CLOSES) {
            closed.pop_front();
        }
        closed.push_back((now, self.address));
    }
}

#[expect(clippy::disallowed_methods, reason = "a call that binds blocks anyway")]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

impl LocalPort {
    /// Whether a socket at `local` with this configuration would share datagrams with this port.
    fn overlaps(&self, local: SocketAddr, config: &PortConfig) -> bool {
        let here = self.address;
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
            (IpAddr::V6(_), IpAddr::V4(_)) => both(&here, &self.config),
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
    use crate::testing::{any_port, assert_fails, listener, set, until};
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

    /// Binds a UDP socket of the system at this address, once it is free.
    fn until_it_is_free(address: std::net::SocketAddr) {
        until("the port is closed", || std::net::UdpSocket::bind(address).ok());
    }

    #[test]
    fn a_port_is_closed_with_its_last_socket_and_its_connection() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &[]);
        let caller = library.create_socket();
        library.connect(caller, waiting.address).unwrap();
        let (accepted, _) = library.accept(waiting.id).unwrap();
        let address = library.local_address(caller).unwrap();
        for (closed, address) in [(caller, address), (accepted, waiting.address)] {
            library.close(waiting.id);
            library.close(closed);
            until_it_is_free(address);
            // The number is still known: it did not have to be forgotten first.
            assert_eq!(library.state(closed), crate::SocketState::Closed);
        }
        library.shut_down();
    }

    #[test]
    fn an_address_can_be_bound_again_at_once() {
        let library = Library::start().unwrap();
        let first = listener(&library, &[]);
        library.listen(first.id, 20).unwrap();
        for _ in 0..20 {
            let [caller, next] = [(); 2].map(|()| library.create_socket());
            library.bind(caller, any_port()).unwrap();
            let address = library.local_address(caller).unwrap();
            library.connect(caller, first.address).unwrap();
            library.close(caller);
            library.bind(next, address).unwrap();
            library.close(next);
        }
        library.shut_down();
    }

    #[test]
    fn a_few_callers_share_a_port_if_they_have_not_asked_for_one() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &[]);
        let ports = |options: &[(OptionNumber, i32)], local: Option<std::net::SocketAddr>| {
            let mut ports = std::collections::BTreeSet::new();
            for _ in 0..4 * super::CALLERS {
                let caller = library.create_socket();
                set(&library, caller, options);
                if let Some(local) = local {
                    library.bind(caller, local).unwrap();
                }
                library.connect(caller, waiting.address).unwrap();
                let (accepted, _) = library.accept(waiting.id).unwrap();
                crate::testing::send(&library, caller, b"on time");
                assert_eq!(crate::testing::receive(&library, accepted).unwrap(), b"on time");
                ports.insert(library.local_address(caller).unwrap().port());
            }
            ports
        };
        let shared = ports(&[(OptionNumber::LATENCY, 0)], None);
        let least = std::thread::available_parallelism().unwrap().get().max(4);
        assert!(shared.len() <= least, "{} ports", shared.len());
        // Other options of the port are other ports.
        let others = ports(&[(OptionNumber::LATENCY, 0), (OptionNumber::IPTTL, 9)], None);
        assert!(others.is_disjoint(&shared));
        let alone = [(OptionNumber::LATENCY, 0), (OptionNumber::REUSEADDR, 0)];
        assert_eq!(ports(&alone, None).len(), 4 * super::CALLERS);
        let bound = ports(&[(OptionNumber::LATENCY, 0)], Some(any_port()));
        assert_eq!(bound.len(), 4 * super::CALLERS);
        library.shut_down();
    }
}
