//! Calling a listener, or meeting another caller.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use punctual::CloseReason;
use tokio::runtime::Handle as Runtime;

use super::link::Carrier;
use super::state::FailedKeys;
use super::{Socket, Stage};
use crate::code::{Code, Failure};
use crate::options::OptionNumber;

/// Is told when a call has failed or a connection has broken: the number of the socket, the error,
/// the peer's address, and the token of a group's link (-1 without one).
#[derive(Clone)]
pub struct ConnectHook(Arc<dyn Fn(i32, Code, SocketAddr, i32) + Send + Sync>);

impl ConnectHook {
    /// A hook that calls `hook`.
    pub fn new(hook: impl Fn(i32, Code, SocketAddr, i32) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    /// Runs the hook on a thread of its own: it may take its time. A connection that is no link of
    /// a group has no token.
    pub(super) fn run(
        self,
        runtime: &Runtime,
        id: i32,
        code: Code,
        remote: SocketAddr,
        token: Option<i32>,
    ) {
        let token = token.unwrap_or(NO_TOKEN);
        runtime.spawn_blocking(move || (self.0)(id, code, remote, token));
    }
}

impl fmt::Debug for ConnectHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectHook")
    }
}

/// A call that is under way.
#[derive(Debug)]
pub(super) struct Connecting {
    pub(super) carrier: Carrier,
    /// Whether the caller's thread waits for the answer.
    pub(super) blocks: bool,
    pub(super) remote: SocketAddr,
}

/// The calls of a socket.
#[derive(Debug)]
pub(crate) struct SocketCaller<'a>(pub(super) &'a Socket);

impl SocketCaller<'_> {
    /// Calls the listener at `remote`, or meets it there. A socket whose calls block waits for the
    /// answer.
    pub(crate) fn connect(&self, remote: SocketAddr) -> Result<(), Failure> {
        let blocks = self.0.core.settings.receive_blocks();
        self.begin(remote, blocks)?;
        // The answer may have come before the watcher did.
        self.0.follow_phase();
        if blocks { self.await_answer() } else { Ok(()) }
    }

    /// Binds the socket to `local` first, then calls.
    pub(crate) fn connect_from(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<(), Failure> {
        self.0.bind(local)?;
        self.connect(remote)
    }

    /// Meets the socket at `remote`, which calls this one at the same time.
    pub(crate) fn meet(&self, local: SocketAddr, remote: SocketAddr) -> Result<(), Failure> {
        self.0.options().set(OptionNumber::RENDEZVOUS, crate::SocketOptionValue::Bool(true))?;
        self.connect_from(local, remote)
    }

    fn begin(&self, remote: SocketAddr, blocks: bool) -> Result<(), Failure> {
        let mut state = self.0.lock();
        let meets = state.options.is_on(OptionNumber::RENDEZVOUS);
        match state.stage {
            Stage::Init if meets => return Err(Code::RendezvousUnbound.into()),
            Stage::Init => self.0.open_for_call(&mut state, remote)?,
            Stage::Opened => {}
            Stage::Closed(_) => return Err(Code::InvalidSocket.into()),
            _ => return Err(Code::Connected.into()),
        }
        let Some(local) = state.local.clone() else { return Err(Code::NotBound.into()) };
        if local.address().is_ipv4() != remote.is_ipv4() && local.address().is_ipv4() {
            return Err(Code::InvalidParameter.into());
        }
        let config = state.options.config().map_err(|_| Code::InvalidParameter)?;
        let library = self.0.library()?;
        let _runtime = library.runtime().enter();
        let port = local.port(library.runtimes())?;
        let begun = match meets {
            false => port.begin_connect(remote, config),
            true => port.begin_rendezvous(remote, config),
        };
        let connection = begun.map_err(|error| begin_failure(&error))?;
        connection.watch(self.0.watcher());
        let carrier = Carrier::Connection(connection);
        state.stage = Stage::Connecting(Connecting { carrier, blocks, remote });
        state.failed_keys = FailedKeys::default();
        self.0.note_reject_reason(0);
        self.0.core.note_opened();
        Ok(())
    }

    /// Waits until the call has been answered.
    pub(super) fn await_answer(&self) -> Result<(), Failure> {
        loop {
            let mark = self.0.core.mark();
            {
                let mut state = self.0.lock();
                match &state.stage {
                    Stage::Connecting(_) => {}
                    Stage::Closed(_) => return Err(Code::ClosedWhileConnecting.into()),
                    Stage::Connected => return Ok(()),
                    // It may have been established, and have ended since.
                    _ if self.0.core.link().is_some() && state.members.is_none() => return Ok(()),
                    _ => {
                        let failure = state.failure.take();
                        return Err(failure.unwrap_or(Code::ConnectionFailed.into()));
                    }
                }
            }
            self.0.core.readiness.wait(mark, None);
        }
    }
}

/// The token of a connection that is not a link of a group.
const NO_TOKEN: i32 = -1;

/// Any address and port of the family of `remote`.
pub(super) fn any_address(remote: SocketAddr) -> SocketAddr {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(any, 0)
}

/// The error of a call that could not be started.
fn begin_failure(error: &punctual::Error) -> Failure {
    match error {
        punctual::Error::Io(error) => Failure::of_system(Code::SocketFailed, error),
        punctual::Error::Config(_) | punctual::Error::Connect(_) => Code::InvalidParameter.into(),
        _ => Code::ConnectSetup.into(),
    }
}

/// The error of a call that has failed.
pub(super) fn connect_code(reason: &CloseReason) -> Code {
    match reason {
        CloseReason::Rejected(_) | CloseReason::Incompatible(_) => Code::ConnectionRejected,
        CloseReason::ConnectTimeout(_) | CloseReason::ConclusionTimeout(_) => Code::NoServer,
        CloseReason::Local => Code::ClosedWhileConnecting,
        _ => Code::ConnectSetup,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::Library;
    use crate::reject;
    use crate::testing::{any_port, assert_fails, listener, pair, receive, send, set, until};
    use crate::{SocketState, Wanted};
    use punctual_blocking::Events;

    /// The events of a socket in a set of its own.
    fn events(library: &Library, set: i32) -> Vec<(i32, Events)> {
        let wanted =
            Wanted { sockets: Events::BROKEN | Events::UPDATE, room: usize::MAX, system: None };
        let set = library.event_set(set).unwrap();
        set.wait(wanted, Some(std::time::Duration::ZERO)).unwrap().sockets
    }

    #[test]
    fn events_follow_a_connection_from_its_call_to_its_end() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &[(OptionNumber::LATENCY, 0)]);
        let caller = library.create_socket();
        set(&library, caller, &[(OptionNumber::RCVSYN, 0), (OptionNumber::LATENCY, 0)]);
        let [calling, listening] = [(); 2].map(|()| library.create_event_set());
        library.subscribe(calling, caller, Events::BROKEN).unwrap();
        library.subscribe(listening, waiting.id, Events::BROKEN).unwrap();
        assert_eq!(events(&library, calling), []);
        library.connect(caller, waiting.address).unwrap();
        let becomes = |set, id, expected: Events| {
            until("the events come", || (events(&library, set) == [(id, expected)]).then_some(()));
        };
        becomes(calling, caller, Events::OUT);
        becomes(listening, waiting.id, Events::IN | Events::OUT);
        let (accepted, _) = library.accept(waiting.id).unwrap();
        becomes(listening, waiting.id, Events::OUT);
        send(&library, accepted, b"on time");
        becomes(calling, caller, Events::IN | Events::OUT);
        assert_eq!(receive(&library, caller).unwrap(), b"on time");
        becomes(calling, caller, Events::OUT);
        library.close(accepted);
        becomes(calling, caller, Events::BROKEN);
        library.shut_down();
    }

    #[test]
    fn a_call_that_fails_breaks_a_socket_and_tells_its_hook() {
        let library = Library::start().unwrap();
        let silent = std::net::UdpSocket::bind(any_port()).unwrap();
        let remote = silent.local_addr().unwrap();
        let caller = library.create_socket();
        set(&library, caller, &[(OptionNumber::RCVSYN, 0), (OptionNumber::CONNTIMEO, 50)]);
        let (sender, told) = mpsc::channel();
        let inner = Arc::downgrade(&library);
        let hook = ConnectHook::new(move |id, code, peer, token| {
            // A hook may close the socket that it is told of.
            inner.upgrade().unwrap().close(id);
            sender.send((id, code, peer, token)).unwrap();
        });
        library.set_connect_hook(caller, Some(hook)).unwrap();
        library.connect(caller, remote).unwrap();
        assert_eq!(told.recv().unwrap(), (caller, Code::NoServer, remote, NO_TOKEN));
        assert_eq!(library.state(caller), SocketState::Closed);
        library.shut_down();
    }

    #[test]
    fn a_socket_whose_call_blocks_can_call_again_after_a_failure() {
        let library = Library::start().unwrap();
        let silent = std::net::UdpSocket::bind(any_port()).unwrap();
        let caller = library.create_socket();
        set(&library, caller, &[(OptionNumber::CONNTIMEO, 50)]);
        let remote = silent.local_addr().unwrap();
        assert_fails(library.connect(caller, remote), Code::NoServer);
        assert_eq!(library.reject_reason(caller), reject::TIMEOUT);
        assert_eq!(library.state(caller), SocketState::Opened);
        let waiting = listener(&library, &[]);
        library.connect(caller, waiting.address).unwrap();
        assert_eq!(library.state(caller), SocketState::Connected);
        library.shut_down();
    }

    #[test]
    fn a_caller_that_refuses_a_wrong_passphrase_reads_that_it_is_wrong() {
        let library = Library::start().unwrap();
        let passphrase = |id, text: &str| {
            let text = crate::SocketOptionValue::Text(text.as_bytes().to_vec());
            library.set_option(id, OptionNumber::PASSPHRASE, text).unwrap();
        };
        let waiting = library.create_socket();
        set(&library, waiting, &[(OptionNumber::ENFORCEDENCRYPTION, 0)]);
        passphrase(waiting, "passphrase of one");
        let address = crate::testing::listen(&library, waiting).address;
        let caller = library.create_socket();
        passphrase(caller, "passphrase of another");
        assert_fails(library.connect(caller, address), Code::ConnectionRejected);
        for state in [OptionNumber::SNDKMSTATE, OptionNumber::RCVKMSTATE, OptionNumber::KMSTATE] {
            assert_eq!(library.option(caller, state).unwrap(), crate::SocketOptionValue::Int(4));
        }
        library.shut_down();
    }

    #[test]
    fn two_sockets_that_call_each_other_meet() {
        let library = Library::start().unwrap();
        let [one, other] = [(); 2].map(|()| library.create_socket());
        let ports = [(); 2].map(|()| std::net::UdpSocket::bind(any_port()).unwrap());
        let [here, there] = ports.map(|port| port.local_addr().unwrap());
        set(&library, one, &[(OptionNumber::RCVSYN, 0)]);
        library.meet(one, here, there).unwrap();
        library.meet(other, there, here).unwrap();
        until("both are connected", || {
            let states = [one, other].map(|id| library.state(id));
            (states == [SocketState::Connected; 2]).then_some(())
        });
        library.shut_down();
    }

    #[test]
    fn a_socket_that_is_connected_neither_calls_nor_listens() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[]);
        assert_fails(library.connect(ends.caller, any_port()), Code::Connected);
        assert_fails(library.bind(ends.caller, any_port()), Code::InvalidOperation);
        assert!(library.listen(ends.caller, 1).is_err());
        library.shut_down();
    }
}
