//! The answers to the callers of a listening socket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use punctual::{AcceptedGroups, AcceptedLink, IncomingCall, RejectReason};
use punctual_blocking::Events;

use super::Socket;
use super::connecting::ConnectHook;
use super::listening::{ListenHook, Listening};
use crate::code::{Code, Failure};
use crate::library::Library;
use crate::options::Options;
use crate::ports::LocalPort;
use crate::reject;

/// Answers all callers of the listening socket `host`, in their order. One thread answers at a
/// time, and looks again for callers that were announced meanwhile, also by its own answers: a
/// group announces its further links.
pub(super) fn answer_all(listening: &Listening, host: &Socket) {
    if !listening.announce() {
        return;
    }
    let mut seen = 1;
    while seen > 0 {
        answer_present(listening, host);
        seen = listening.looked(seen);
    }
}

fn answer_present(listening: &Listening, host: &Socket) {
    while let Some(call) = listening.next_call() {
        if listening.is_full() {
            call.reject(RejectReason::BACKLOG);
            continue;
        }
        let Ok(library) = host.library() else { return };
        match host.admission().answer(&library, call) {
            Answer::Accepted(socket) => {
                listening.push(socket);
                // Older programs that accept one call wait for room to send.
                host.core.raise(Events::IN | Events::OUT);
            }
            Answer::Joined => host.readiness().flash(host.id(), Events::UPDATE),
            Answer::Refused => {}
        }
    }
}

/// The terms on which a listening socket admits callers.
#[derive(Debug)]
pub(super) struct AdmissionTerms {
    /// The options of the listening socket.
    pub(super) options: Options,
    pub(super) local: Option<Arc<LocalPort>>,
    pub(super) connect_hook: Option<ConnectHook>,
    pub(super) listen_hook: Option<ListenHook>,
}

/// The answer to a caller.
#[derive(Debug)]
enum Answer {
    /// It is this socket now.
    Accepted(Arc<Socket>),
    /// It is a further link of a group.
    Joined,
    /// It was refused, or has failed.
    Refused,
}

impl AdmissionTerms {
    /// Answers one caller of the listening socket.
    fn answer(self, library: &Arc<Library>, call: IncomingCall) -> Answer {
        let options = self.options.inherited(call.raw_stream_id().bytes());
        let socket = library.add_socket(options, false);
        if !self.listen_hook.as_ref().is_none_or(|hook| hook.allows(&call, &socket)) {
            call.reject(reject::of_application(socket.reject_reason()));
            library.remove_socket(socket.id());
            return Answer::Refused;
        }
        let answer = if call.group().is_some() {
            self.accept_link(library, call, &socket)
        } else {
            let accepted = socket.accept_call(call, self.local);
            socket.set_connect_hook(self.connect_hook);
            accepted.map(|()| Answer::Accepted(Arc::clone(&socket)))
        };
        answer.unwrap_or_else(|_| {
            // A hook may have bound it.
            socket.close_behind();
            library.remove_socket(socket.id());
            Answer::Refused
        })
    }

    /// Accepts a caller as a link of a group, as this socket.
    fn accept_link(
        self,
        library: &Arc<Library>,
        call: IncomingCall,
        socket: &Arc<Socket>,
    ) -> Result<Answer, Failure> {
        let (options, config) = socket.terms()?;
        let remote = call.remote();
        let groups = library.groups();
        let _one_at_a_time = groups.begin();
        let hosts = groups.present();
        hosts.iter().for_each(|host| host.links().begin_admission());
        let entered = library.runtime().enter();
        let accepted = call.accept_link(config).map_err(|_| Code::ConnectionFailed.into());
        drop(entered);
        socket.set_local(self.local);
        let own = |host: &Arc<Socket>, link| host.links().admit(link, remote, socket);
        let answer = match &accepted {
            Ok(AcceptedLink { group, id, is_first: true }) => {
                let host = library.add_socket(options, true);
                host.set_connect_hook(self.connect_hook);
                host.adopt_group(group.clone());
                own(&host, *id);
                host.links().end_admission();
                groups.add(&host, group.id());
                Ok(Answer::Accepted(host))
            }
            Ok(AcceptedLink { group, id, .. }) => {
                if let Some(host) = groups.find(group.id()) {
                    own(&host, *id);
                }
                Ok(Answer::Joined)
            }
            Err(failure) => Err(*failure),
        };
        hosts.iter().for_each(|host| host.links().end_admission());
        answer
    }
}

/// The groups that the listening sockets of a library have accepted. As in libsrt, the links of one
/// group may call several of them.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    accepted: AcceptedGroups,
    /// Their sockets, by their numbers in the protocol.
    hosts: Mutex<Vec<(u32, Weak<Socket>)>>,
    /// Held while a link is accepted, so that a group that another link joins has its socket.
    admission: Mutex<()>,
}

impl Groups {
    /// The table of accepted groups, for all listeners.
    pub(super) const fn accepted(&self) -> &AcceptedGroups {
        &self.accepted
    }

    fn begin(&self) -> MutexGuard<'_, ()> {
        self.admission.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, host: &Arc<Socket>, number: u32) {
        self.lock().push((number, Arc::downgrade(host)));
    }

    fn find(&self, number: u32) -> Option<Arc<Socket>> {
        self.lock().iter().find(|it| it.0 == number)?.1.upgrade()
    }

    fn present(&self) -> Vec<Arc<Socket>> {
        let mut groups = self.lock();
        groups.retain(|(_, host)| host.strong_count() > 0);
        groups.iter().filter_map(|(_, host)| host.upgrade()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u32, Weak<Socket>)>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
