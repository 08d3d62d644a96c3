//! Two ends that are connected, so that few bytes of input lead to a connection.

use punctual_srt::data::srt_send;
use punctual_srt::epoll::{srt_epoll_add_usock, srt_epoll_create};

use super::addresses::Address;
use super::input::Input;
use super::sockets::pass;
use super::states::{INIT, LISTENING, OPENED, States};
use super::verdict::{ASYNCSND, CONNLOST, INVALMSGAPI, INVSOCK, NOCONN, begin, judge};
use super::{MOST_SOCKETS, World};

const MESSAGEAPI: i32 = 48;
const TRANSTYPE: i32 = 50;
const PASSPHRASE: i32 = 26;
const GROUPCONNECT: i32 = 57;
const STREAMID: i32 = 46;
const LATENCY: i32 = 23;
/// Milliseconds until a caller on this host is accepted.
const LONGEST_WAIT: u64 = 60;

impl World {
    /// A listener, and a caller or a group that is accepted.
    pub(crate) fn pair(&mut self, input: &mut Input<'_>) {
        if self.sockets.len() + 3 > MOST_SOCKETS {
            return;
        }
        // Groups are live.
        let mode = match input.byte() {
            mode if mode & 0x38 == 0x38 => mode & !2,
            mode => mode,
        };
        let Some(listener) = self.create_one(false) else { return };
        self.shape(listener, mode);
        let Some(address) = self.listen_somewhere(listener, mode) else { return };
        let caller = if mode & 0x38 == 0x38 {
            self.call_by_group(&address, mode, input)
        } else {
            self.call_alone(&address, mode, input)
        };
        self.watch(listener);
        for _ in 0..LONGEST_WAIT {
            if let Some(accepted) = self.accept_one(listener, &mut Input(&[])) {
                self.watch(accepted);
                caller.into_iter().for_each(|caller| self.exchange(caller, accepted));
                break;
            }
            pass(1);
        }
    }

    /// Subscribes the latest set to all events of a socket.
    fn watch(&mut self, id: i32) {
        if self.sets.is_empty() {
            begin();
            self.sets.push(srt_epoll_create());
        }
        let set = self.sets.last().copied().unwrap_or(0);
        begin();
        // SAFETY: null stands for all events.
        let added = unsafe { srt_epoll_add_usock(set, id, std::ptr::null()) };
        judge("srt_epoll_add_usock", added, &[INVSOCK]);
    }

    /// Sends a message each way, for later calls to receive.
    fn exchange(&mut self, caller: i32, accepted: i32) {
        for id in [caller, accepted] {
            begin();
            // SAFETY: the message has that many bytes.
            let sent = unsafe { srt_send(id, c"on time".as_ptr(), 7) };
            self.reached.sent += u32::from(sent > 0);
            judge("srt_send", sent, &[CONNLOST, NOCONN, INVSOCK, ASYNCSND, INVALMSGAPI]);
        }
    }

    fn call_alone(&mut self, address: &Address, mode: u8, input: &mut Input<'_>) -> Option<i32> {
        let caller = self.create_one(false)?;
        self.shape(caller, mode);
        self.set_text(caller, STREAMID, input.bytes());
        self.watch(caller);
        self.call(caller, address);
        Some(caller)
    }

    /// Sets the options that both ends have.
    fn shape(&mut self, id: i32, mode: u8) {
        if mode & 3 > 1 {
            self.set_int(id, TRANSTYPE, 1);
        }
        if mode & 3 == 3 {
            self.set_int(id, MESSAGEAPI, 1);
        }
        if mode & 4 == 4 {
            self.set_text(id, PASSPHRASE, b"a passphrase");
        }
        // Messages are due soon.
        self.set_int(id, LATENCY, i32::from(mode >> 7) * 10);
        self.set_int(id, GROUPCONNECT, 1);
    }

    fn listen_somewhere(&mut self, id: i32, mode: u8) -> Option<Address> {
        let local: std::net::SocketAddr = match mode & 0x40 {
            0 => ([127, 0, 0, 1], 0).into(),
            _ => (std::net::Ipv6Addr::LOCALHOST, 0).into(),
        };
        let local = Address::new(local);
        begin();
        // SAFETY: the address has that many bytes.
        let bound = unsafe { punctual_srt::sockets::srt_bind(id, local.as_ptr(), local.len) };
        judge("srt_bind", bound, &[]);
        self.becomes(id, States::of(&[OPENED]));
        self.note_address(id);
        begin();
        judge("srt_listen", punctual_srt::connecting::srt_listen(id, 4), &[]);
        self.becomes(id, States::of(&[LISTENING]));
        self.bound.last().copied().map(Address::new)
    }

    fn call(&mut self, id: i32, address: &Address) {
        assert!(self.possible(id).has(INIT));
        begin();
        // SAFETY: the address has that many bytes.
        let called =
            unsafe { punctual_srt::connecting::srt_connect(id, address.as_ptr(), address.len) };
        judge("srt_connect", called, &[]);
        self.becomes(id, States::calling());
    }

    fn call_by_group(&mut self, address: &Address, mode: u8, input: &mut Input<'_>) -> Option<i32> {
        let group = self.create_group_of(1 + i32::from(mode & 1))?;
        self.shape(group, mode & !2);
        self.watch(group);
        let links = (0..2).map(|weight| {
            // SAFETY: the address has that many bytes.
            let mut link = unsafe {
                punctual_srt::groups::srt_prepare_endpoint(
                    std::ptr::null(),
                    address.as_ptr(),
                    address.len,
                )
            };
            link.weight = weight;
            link.peeraddr = address.storage();
            link
        });
        let links = links.collect();
        self.connect_links(group, links, input);
        Some(group)
    }
}
