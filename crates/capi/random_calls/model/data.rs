//! Sending and receiving, and statistics.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use punctual_srt::abi::{GroupData, MsgCtrl};
use punctual_srt::data::{
    srt_getsndbuffer, srt_msgctrl_init, srt_recv, srt_recvmsg, srt_recvmsg2, srt_send, srt_sendmsg,
    srt_sendmsg2,
};
use punctual_srt::statistics::{TraceStatistics, srt_bistats, srt_bstats};

use super::World;
use super::connecting::is_group;
use super::input::Input;
use super::states::{CLOSED, CONNECTED, INIT, LISTENING, OPENED};
use super::verdict::{
    ASYNCRCV, ASYNCSND, CONNLOST, INVALMSGAPI, INVOP, INVPARAM, INVSOCK, LARGEMSG, NOCONN, PEERERR,
    TIMEOUT, begin, judge, judge_quiet,
};

/// The most bytes of a call.
const MOST_BYTES: usize = 70_000;
/// The places for links of a group.
const LINKS: usize = 4;

/// The structure beside a message, of any bytes, and the places that it points to.
struct Control {
    value: MsgCtrl,
    links: Box<[MaybeUninit<GroupData>; LINKS]>,
}

impl Control {
    /// Any bytes. For a group, C's contract is that the pointer is null or has the places.
    fn any(id: i32, input: &mut Input<'_>) -> Self {
        let mut links = Box::new([const { MaybeUninit::uninit() }; LINKS]);
        let grpdata = match input.byte() {
            0..=127 => std::ptr::null_mut(),
            128..=191 if !is_group(id) => std::ptr::without_provenance_mut(0x10),
            _ => links.as_mut_ptr().cast(),
        };
        let value = MsgCtrl {
            flags: input.i32(),
            msgttl: input.number(),
            inorder: input.number(),
            boundary: input.i32(),
            srctime: time(input),
            pktseq: input.i32(),
            msgno: input.pick(&[-1, -1, -1, 0, 1, 77, i32::MAX, i32::MIN]),
            grpdata,
            grpdata_size: usize::from(input.byte()) % (LINKS + 1),
        };
        Self { value, links }
    }

    /// The structure that a call gets, or null.
    fn pointer(&mut self, input: &mut Input<'_>) -> *mut MsgCtrl {
        match input.byte() {
            0..=90 => std::ptr::null_mut(),
            91..=120 => {
                // SAFETY: it can be written.
                unsafe { srt_msgctrl_init(&raw mut self.value) };
                &raw mut self.value
            }
            _ => &raw mut self.value,
        }
    }

    /// Checks the links that a call has written.
    fn check_links(&self) {
        let places: *const GroupData = self.links.as_ptr().cast();
        if !std::ptr::eq(self.value.grpdata, places) {
            return;
        }
        assert!(self.value.grpdata_size <= LINKS);
    }
}

/// The origin time of a message: now, or any.
fn time(input: &mut Input<'_>) -> i64 {
    match input.byte() {
        0..=150 => 0,
        151..=180 => punctual_srt::startup::srt_time_now() + i64::from(input.i32()),
        181..=200 => input.pick(&[i64::MAX, i64::MIN, -1, 1]),
        _ => i64::from(input.i32()) << 31 | i64::from(input.i32()),
    }
}

impl World {
    pub(crate) fn send(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let len = match input.byte() {
            0..=180 => input.i32() & 0x7FF,
            181..=200 => input.i32() & 0xFFFF,
            _ => input.number(),
        };
        let len = len.min(MOST_BYTES as i32);
        let data = vec![input.byte() as c_char; MOST_BYTES];
        let data = if input.is(8) { std::ptr::null() } else { data.as_ptr() };
        // The data must live until the call is done.
        self.send_these(id, data, len, input);
    }

    fn send_these(&mut self, id: i32, data: *const c_char, len: i32, input: &mut Input<'_>) {
        let mut control = Control::any(id, input);
        let way = input.byte();
        let pointer = control.pointer(input);
        let given = control.value.msgno;
        begin();
        // SAFETY: the data has that many bytes, and the structure can be read and written.
        let sent = unsafe {
            match way {
                0..=60 => srt_send(id, data, len),
                61..=120 => srt_sendmsg(id, data, len, control.value.msgttl, 1),
                _ => srt_sendmsg2(id, data, len, pointer),
            }
        };
        let documented = [
            INVPARAM,
            INVSOCK,
            // A link of a group.
            INVOP,
            NOCONN,
            CONNLOST,
            INVALMSGAPI,
            LARGEMSG,
            ASYNCSND,
            TIMEOUT,
            PEERERR,
        ];
        let error = judge("srt_sendmsg2", sent, &documented);
        assert!(sent <= len.max(0), "{sent} bytes of {len} were sent");
        self.reached.sent += u32::from(sent > 0);
        self.check_transfer("srt_sendmsg2", id, error, data.is_null());
        if sent > 0 && way > 120 && !pointer.is_null() {
            let MsgCtrl { pktseq, msgno, .. } = control.value;
            // Bytes of a stream have no message number: the given one stays.
            assert!(pktseq >= -1 && (msgno >= -1 || msgno == given), "numbers {pktseq}, {msgno}");
            control.check_links();
        }
    }

    /// Checks an error of a call that sends or receives against the states of its socket.
    #[track_caller]
    fn check_transfer(&self, call: &str, id: i32, error: Option<i32>, args_bad: bool) {
        let possible = self.possible(id);
        let bad = |code| args_bad && code == Some(INVPARAM);
        if self.is_gone(id) {
            assert!(error == Some(INVSOCK) || bad(error), "{call} without a socket: {error:?}");
        } else if possible.are_among(&[INIT, OPENED, LISTENING]) && !is_group(id) {
            assert!(error == Some(NOCONN) || bad(error), "{call}: {possible:?}, {error:?}");
        } else if error == Some(NOCONN) {
            assert!(!possible.are_among(&[CONNECTED]), "{call} of a connected socket");
        }
    }

    pub(crate) fn receive(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let len = match input.byte() {
            0..=180 => 1_500,
            181..=200 => input.i32() & 0xFFFF,
            _ => input.number(),
        };
        let len = len.min(MOST_BYTES as i32);
        let mut buffer = vec![c_char::default(); MOST_BYTES];
        let buffer = if input.is(8) { std::ptr::null_mut() } else { buffer.as_mut_ptr() };
        let mut control = Control::any(id, input);
        let untouched = control.value;
        let way = input.byte();
        let pointer = control.pointer(input);
        begin();
        // SAFETY: the buffer has room for that many bytes; the structure can be written.
        let received = unsafe {
            match way {
                0..=60 => srt_recv(id, buffer, len),
                61..=120 => srt_recvmsg(id, buffer, len),
                _ => srt_recvmsg2(id, buffer, len, pointer),
            }
        };
        let documented =
            [INVPARAM, INVSOCK, INVOP, NOCONN, CONNLOST, INVALMSGAPI, LARGEMSG, ASYNCRCV, TIMEOUT];
        let error = judge("srt_recvmsg2", received, &documented);
        assert!(received <= len.max(0), "{received} bytes came into {len}");
        self.reached.received += u32::from(received > 0);
        self.check_transfer("srt_recvmsg2", id, error, buffer.is_null() || len <= 0);
        if error.is_some() {
            let after = control.value;
            let is_same = after.flags == untouched.flags && after.boundary == untouched.boundary;
            assert!(is_same || !pointer.is_null(), "a call that failed wrote");
        } else if way > 120 && !pointer.is_null() {
            control.check_links();
        }
    }

    pub(crate) fn read_statistics(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let mut statistics = TraceStatistics::default();
        let output = if input.is(10) { std::ptr::null_mut() } else { &raw mut statistics };
        begin();
        // SAFETY: the structure can be written.
        let read = unsafe {
            match input.is(128) {
                true => srt_bstats(id, output, input.number()),
                false => srt_bistats(id, output, input.number(), input.number()),
            }
        };
        let error = judge("srt_bistats", read, &[INVPARAM, INVSOCK, NOCONN, CONNLOST]);
        if self.is_gone(id) {
            assert!(matches!(error, Some(INVSOCK | INVPARAM)), "{error:?}");
        }
        if error.is_none() {
            assert!(self.possible(id).has(CONNECTED) && !output.is_null());
            assert!(statistics.pktSentTotal >= 0 && statistics.msRTT >= 0.0);
        }
        self.read_send_buffer(id, input);
    }

    fn read_send_buffer(&mut self, id: i32, input: &mut Input<'_>) {
        let (mut blocks, mut bytes) = (usize::MAX, usize::MAX);
        let nulls = input.byte();
        let blocks_ptr = if nulls & 1 == 1 { std::ptr::null_mut() } else { &raw mut blocks };
        let bytes_ptr = if nulls & 2 == 2 { std::ptr::null_mut() } else { &raw mut bytes };
        begin();
        // SAFETY: each number can be written.
        let span = unsafe { srt_getsndbuffer(id, blocks_ptr, bytes_ptr) };
        judge_quiet("srt_getsndbuffer");
        assert!(span >= -1, "the span {span}");
        assert!(span == -1 || !self.possible(id).are_among(&[INIT, CLOSED]));
    }
}
