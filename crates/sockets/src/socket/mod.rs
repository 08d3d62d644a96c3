//! One socket: its stage, its options and its connection.

mod buffer_means;
mod closing;
mod connecting;
mod control;
mod data;
mod files;
mod group;
mod inbox;
mod link;
mod listening;
mod names;
mod option_access;
mod settings;
mod statistics;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use punctual::{Wakes, Watcher};

pub use self::buffer_means::{BufferLevel, BufferLevels};
pub use self::connecting::ConnectHook;
use self::connecting::Connecting;
pub use self::control::MessageControl;
use self::group::Members;
pub(crate) use self::group::kind;
pub use self::group::{LinkCall, MemberInfo, MemberState};
use self::inbox::Inbox;
use self::link::Link;
pub use self::listening::ListenHook;
use self::listening::Listening;
use self::settings::Settings;
use self::statistics::Baseline;
pub use self::statistics::TransferStatistics;
use crate::code::{Code, Failure};
use crate::events::Events;
use crate::library::Library;
use crate::options::Options;
use crate::ports::LocalPort;
use crate::readiness::Readiness;

/// The state of a socket: libsrt's `SRT_SOCKSTATUS`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum SocketState {
    /// Created.
    Init = 1,
    /// Bound.
    Opened = 2,
    /// Waits for calls.
    Listening = 3,
    /// Calls.
    Connecting = 4,
    /// Connected.
    Connected = 5,
    /// The connection has ended, or could not be made.
    Broken = 6,
    /// Closed, and its number is still known.
    Closed = 8,
    /// There is no such socket.
    Nonexistent = 9,
}

/// A socket of a [`Library`].
#[derive(Debug)]
pub(crate) struct Socket {
    id: i32,
    library: Weak<Library>,
    /// The socket itself, for watchers and hooks.
    this: Weak<Self>,
    state: Mutex<State>,
    readiness: Readiness,
    settings: Settings,
    /// The connection, once it is established.
    link: OnceLock<Link>,
    inbox: Mutex<Inbox>,
    /// Held by the thread that sends: two sends follow each other.
    sending: Mutex<()>,
    /// Whether the stage is that of a closed socket: every call asks.
    closed: AtomicBool,
    /// Whether the last packets of the closed connection have been sent.
    has_ended: AtomicBool,
    /// Whether the connection has ended: every call that sends asks.
    broken: AtomicBool,
    reject_reason: AtomicI32,
    /// The instant of binding, connecting or accepting, microseconds; 0 before.
    opened_at: AtomicU64,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    options: Options,
    local: Option<Arc<LocalPort>>,
    connect_hook: Option<ConnectHook>,
    listen_hook: Option<ListenHook>,
    baseline: Baseline,
    /// The error of a call whose thread waits for the answer.
    failure: Option<Failure>,
    /// The links, if the socket is a group.
    members: Option<Members>,
}

/// The stage of a socket, with what belongs to it.
#[derive(Debug)]
enum Stage {
    Init,
    Opened,
    Listening(Arc<Listening>),
    Connecting(Connecting),
    Connected,
    /// Broken since this instant.
    Broken(Instant),
    /// Closed since this instant.
    Closed(Instant),
}

impl Stage {
    const fn state(&self) -> SocketState {
        match self {
            Self::Init => SocketState::Init,
            Self::Opened => SocketState::Opened,
            Self::Listening(_) => SocketState::Listening,
            Self::Connecting(_) => SocketState::Connecting,
            Self::Connected => SocketState::Connected,
            Self::Broken(_) => SocketState::Broken,
            Self::Closed(_) => SocketState::Closed,
        }
    }
}

impl Socket {
    /// A new socket with these options.
    pub(crate) fn new(library: &Arc<Library>, id: i32, options: Options) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            id,
            library: Arc::downgrade(library),
            this: Weak::clone(this),
            settings: Settings::new(&options),
            state: Mutex::new(State {
                stage: Stage::Init,
                options,
                local: None,
                connect_hook: None,
                listen_hook: None,
                baseline: Baseline::default(),
                failure: None,
                members: None,
            }),
            readiness: Readiness::default(),
            link: OnceLock::new(),
            inbox: Mutex::default(),
            sending: Mutex::new(()),
            closed: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            reject_reason: AtomicI32::new(0),
            opened_at: AtomicU64::new(0),
        })
    }

    pub(crate) const fn id(&self) -> i32 {
        self.id
    }

    pub(crate) fn state(&self) -> SocketState {
        self.lock().stage.state()
    }

    pub(crate) const fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The reason of the last refusal; 0 without one.
    pub(crate) fn reject_reason(&self) -> i32 {
        self.reject_reason.load(Ordering::Acquire)
    }

    /// Sets the reason that a listen hook gives, 1,000 and up.
    pub(crate) fn set_reject_reason(&self, reason: i32) -> Result<(), Failure> {
        if reason < crate::reject::FIRST_OF_APPLICATION {
            return Err(Code::InvalidParameter.into());
        }
        self.note_reject_reason(reason);
        Ok(())
    }

    fn note_reject_reason(&self, reason: i32) {
        self.reject_reason.store(reason, Ordering::Release);
    }

    /// The instant of binding, connecting or accepting, microseconds; 0 before.
    pub(crate) fn opened_at(&self) -> u64 {
        self.opened_at.load(Ordering::Relaxed)
    }

    fn note_opened(&self) {
        self.opened_at.store(punctual::now().as_micros(), Ordering::Relaxed);
    }

    /// Binds the socket to this address.
    pub(crate) fn bind(&self, local: SocketAddr) -> Result<(), Failure> {
        let mut state = self.lock();
        match state.stage {
            Stage::Init => {}
            Stage::Closed(_) => return Err(Code::InvalidSocket.into()),
            _ => return Err(Code::InvalidOperation.into()),
        }
        self.open(&mut state, local)
    }

    /// Binds the socket, which is not bound yet.
    fn open(&self, state: &mut State, local: SocketAddr) -> Result<(), Failure> {
        let library = self.library()?;
        let config = state.options.port_config(local);
        let reusable = state.options.is_on(crate::OptionNumber::REUSEADDR);
        state.local = Some(library.ports().open(config, reusable)?);
        state.stage = Stage::Opened;
        self.note_opened();
        Ok(())
    }

    /// Binds the socket to a UDP socket that the program has bound.
    pub(crate) fn acquire(&self, udp: impl FnOnce() -> UdpSocket) -> Result<(), Failure> {
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Init) {
            return Err(Code::InvalidOperation.into());
        }
        let library = self.library()?;
        state.local = Some(library.ports().adopt(udp())?);
        state.stage = Stage::Opened;
        self.note_opened();
        Ok(())
    }

    fn library(&self) -> Result<Arc<Library>, Failure> {
        self.library.upgrade().ok_or_else(|| Code::InvalidSocket.into())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watcher(&self) -> Weak<dyn Watcher> {
        let this: Weak<Self> = Weak::clone(&self.this);
        this
    }
}

impl Watcher for Socket {
    fn readable(&self, wakes: &mut Wakes) {
        match self.link.get() {
            Some(link) => self.announce_data(link, wakes),
            None => self.take_callers(),
        }
    }

    fn writable(&self) {
        // The room may be used up by the time that this is called.
        if self.link.get().is_some_and(Link::has_room) {
            self.readiness.raise(self.id, Events::OUT);
        } else {
            // A thread that waits may have to hear of an error of the peer.
            self.readiness.wake();
        }
    }

    fn phase_changed(&self) {
        self.follow_phase();
    }
}
