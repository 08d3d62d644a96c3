//! Listening, calling, accepting.

use libc::sockaddr_storage;
use punctual_srt::connecting::{
    srt_accept, srt_accept_bond, srt_connect, srt_connect_bind, srt_connect_debug,
    srt_getrejectreason, srt_listen, srt_rendezvous, srt_setrejectreason,
};

use super::World;
use super::input::Input;
use super::states::{CONNECTING, INIT, LISTENING, OPENED, States};
use super::verdict::{
    ASYNCRCV, BINDCONFLICT, BOUNDSOCK, CONNFAIL, CONNLOST, CONNREJ, CONNSETUP, CONNSOCK, DUPLISTEN,
    EPOLLEMPTY, INVOP, INVPARAM, INVSOCK, NOLISTEN, NOSERVER, RDVNOSERV, RDVUNBOUND, SCLOSED,
    SECFAIL, SOCKFAIL, TIMEOUT, UNBOUNDSOCK, begin, judge, judge_quiet,
};

/// The errors of calls that have been started.
const ANSWERS: [i32; 5] = [NOSERVER, CONNREJ, SECFAIL, CONNSETUP, CONNFAIL];
const GROUP_BIT: i32 = 1 << 30;

impl World {
    pub(crate) fn listen(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let backlog = input.pick(&[1, 2, 5, 100, 0, -1, i32::MAX, i32::MIN]);
        begin();
        let listens = srt_listen(id, backlog);
        let documented =
            [INVPARAM, INVSOCK, UNBOUNDSOCK, RDVNOSERV, CONNSOCK, DUPLISTEN, SCLOSED, CONNSETUP];
        let error = judge("srt_listen", listens, &documented);
        let before = self.possible(id);
        if backlog <= 0 {
            assert!(matches!(error, Some(INVPARAM | INVSOCK)), "srt_listen: {backlog}");
        } else if self.is_gone(id) {
            assert_eq!(error, Some(INVSOCK));
        } else if before.are_among(&[INIT]) && !is_group(id) {
            assert_eq!(error, Some(UNBOUNDSOCK));
        }
        if error.is_none() {
            assert!(before.has(OPENED) || before.has(LISTENING), "{before:?} listens");
            self.becomes(id, States::of(&[LISTENING]));
        }
    }

    pub(crate) fn connect(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let remote = self.remote(input);
        let way = input.byte();
        let local = self.local(input);
        begin();
        // SAFETY: each address has the bytes of the largest one.
        let connected = unsafe {
            match way {
                0..=20 => {
                    let len = remote.len.min(local.len);
                    srt_connect_bind(id, local.as_ptr(), remote.as_ptr(), len)
                }
                21..=40 => srt_connect_debug(id, remote.as_ptr(), remote.len, input.i32()),
                _ => srt_connect(id, remote.as_ptr(), remote.len),
            }
        };
        let documented = [
            INVSOCK,
            INVPARAM,
            INVOP,
            CONNSOCK,
            RDVUNBOUND,
            SCLOSED,
            BINDCONFLICT,
            SOCKFAIL,
            CONNLOST,
        ];
        let error = judge("srt_connect", connected, &[&documented[..], &ANSWERS].concat());
        if way > 40 && self.is_gone(id) {
            assert_eq!(error, Some(INVSOCK), "srt_connect: {:?}", self.possible(id));
        }
        if way > 40 && self.possible(id).are_among(&[LISTENING]) && remote.is_valid() {
            assert_eq!(error, Some(CONNSOCK), "srt_connect of a listener");
        }
        self.note_call(id, connected, error);
    }

    /// Notes the consequences of a call.
    fn note_call(&mut self, id: i32, connected: i32, error: Option<i32>) {
        if is_group(id) {
            self.may_become(id, States::calling());
            if connected > 0 {
                self.note_link(connected);
            }
            return;
        }
        match error {
            None => {
                let before = self.possible(id);
                assert!(before.has(INIT) || before.has(OPENED), "{before:?} calls");
                self.becomes(id, States::calling());
            }
            // A socket that was bound by the call stays bound.
            Some(_) if self.possible(id).has(INIT) => self.may_become(id, States::of(&[OPENED])),
            Some(_) => {}
        }
    }

    /// Notes a link of a group.
    pub(crate) fn note_link(&mut self, id: i32) {
        if self.known(id).is_none() {
            self.add(id, States::of(&[CONNECTING]));
            if let Some(known) = self.known(id) {
                known.is_link = true;
            }
        }
    }

    pub(crate) fn meet(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        // A rendezvous takes ten times as long: nobody waits for it.
        self.set_blocking(id, false);
        let (local, remote) = (self.local(input), self.remote(input));
        begin();
        // SAFETY: each address has the bytes of the largest one.
        let met =
            unsafe { srt_rendezvous(id, local.as_ptr(), local.len, remote.as_ptr(), remote.len) };
        let documented = [
            INVSOCK,
            INVPARAM,
            INVOP,
            CONNSOCK,
            BOUNDSOCK,
            BINDCONFLICT,
            SOCKFAIL,
            CONNLOST,
            CONNSETUP,
        ];
        let error = judge("srt_rendezvous", met, &documented);
        self.note_call(id, met, error);
    }

    pub(crate) fn accept(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        self.accept_one(id, input);
    }

    pub(crate) fn accept_one(&mut self, id: i32, input: &mut Input<'_>) -> Option<i32> {
        self.set_blocking(id, false);
        // SAFETY: all bytes zero are a valid value.
        let mut name: sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut len = match input.is(224) {
            true => 128,
            false => input.pick(&[-1, 0, 15, 16, 27, 28]),
        };
        let place = (&raw mut name).cast();
        let (place, length) = match input.byte() {
            0..=40 => (std::ptr::null_mut(), std::ptr::null_mut()),
            41..=50 => (place, std::ptr::null_mut()),
            51..=60 => (std::ptr::null_mut(), &raw mut len),
            _ => (place, &raw mut len),
        };
        begin();
        // SAFETY: there is room for the largest address, which is the most that is told.
        let accepted = unsafe { srt_accept(id, place, length) };
        let documented = [INVPARAM, INVSOCK, NOLISTEN, ASYNCRCV, SCLOSED, RDVNOSERV];
        let error = judge("srt_accept", accepted, &documented);
        if self.is_gone(id) {
            assert!(matches!(error, Some(INVSOCK | INVPARAM)), "{error:?}");
        } else if self.possible(id).are_among(&[INIT, OPENED]) {
            assert!(matches!(error, Some(NOLISTEN | INVPARAM | INVSOCK)), "{error:?}");
        }
        self.note_accepted(accepted)
    }

    fn note_accepted(&mut self, accepted: i32) -> Option<i32> {
        if accepted < 0 {
            return None;
        }
        self.reached.accepted += 1;
        self.reached.accepted_groups += u32::from(is_group(accepted));
        self.add(accepted, States::connected());
        // The connect hook of a listener is inherited, and may close.
        if let Some(known) = self.known(accepted) {
            known.may_be_closed = true;
        }
        self.hasten(accepted, false);
        Some(accepted)
    }

    pub(crate) fn accept_of_several(&mut self, input: &mut Input<'_>) {
        let ids = [(); 3].map(|()| self.number(input));
        let count = input.pick(&[1, 2, 3, 3, 3, 0, -1]);
        let ids_ptr = if input.is(10) { std::ptr::null() } else { ids.as_ptr() };
        begin();
        // SAFETY: there are that many numbers.
        let accepted = unsafe { srt_accept_bond(ids_ptr, count, i64::from(input.byte() % 4)) };
        let documented = [INVPARAM, INVSOCK, NOLISTEN, TIMEOUT, EPOLLEMPTY, SCLOSED, ASYNCRCV];
        let error = judge("srt_accept_bond", accepted, &documented);
        if count > 0 && !ids_ptr.is_null() && ids.iter().all(|&id| self.is_gone(id)) {
            assert_eq!(error, Some(EPOLLEMPTY));
        }
        self.note_accepted(accepted);
    }

    /// Reads and sets the reason of a refusal.
    pub(crate) fn use_reason(&mut self, id: i32, input: &mut Input<'_>) {
        begin();
        let reason = srt_getrejectreason(id);
        judge_quiet("srt_getrejectreason");
        assert!((0..1_000_000).contains(&reason), "the reason {reason}");
        if self.is_gone(id) && !self.sockets.iter().any(|known| known.id == id) {
            assert_eq!(reason, 0, "of a socket that is gone");
        }
        let reason = input.pick(&[1_000, 1_403, 2_001, 999, 0, -1]);
        begin();
        let set = srt_setrejectreason(id, reason);
        let error = judge("srt_setrejectreason", set, &[INVPARAM, INVSOCK]);
        assert!(reason >= 1_000 || error.is_some(), "the reason {reason} was set");
    }
}

pub(crate) fn is_group(id: i32) -> bool {
    id > 0 && id & GROUP_BIT != 0
}
