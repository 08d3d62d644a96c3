//! Setting and reading options.

use std::ffi::c_void;

use punctual_srt::options::{srt_getsockflag, srt_getsockopt, srt_setsockflag, srt_setsockopt};

use super::World;
use super::input::Input;
use super::states::{BROKEN, CLOSED, CONNECTED, CONNECTING, LISTENING, NONEXISTENT};
use super::verdict::{BOUNDSOCK, CONNLOST, CONNSOCK, INVOP, INVPARAM, INVSOCK, begin, judge};

const SNDSYN: i32 = 1;
const RCVSYN: i32 = 2;
const LINGER: i32 = 7;
const SNDTIMEO: i32 = 13;
const RCVTIMEO: i32 = 14;
const CONNTIMEO: i32 = 36;
const PEERIDLETIMEO: i32 = 55;
/// The option that takes a query.
const QUERY: i32 = 1_000;
/// Room for the longest text.
const ROOM: usize = 1_024;

/// Texts that some options take.
const TEXTS: [&str; 12] = [
    "",
    "live",
    "file",
    "a passphrase",
    "fec,cols:10",
    "fec,cols:10,rows:5,layout:staircase,arq:onreq",
    "lo",
    "latency=300&losstarget=0.1%",
    "#!::u=camera,m=publish",
    "deadline",
    "0.5%",
    "payloadsize=1200&fc=64",
];

impl World {
    /// Makes the calls of a socket short.
    pub(crate) fn hasten(&mut self, id: i32, blocks: bool) {
        for option in [SNDTIMEO, RCVTIMEO] {
            self.set_int(id, option, 4);
        }
        self.set_int(id, CONNTIMEO, 100);
        self.set_blocking(id, blocks);
    }

    pub(crate) fn set_blocking(&mut self, id: i32, blocks: bool) {
        for option in [SNDSYN, RCVSYN] {
            self.set_int(id, option, i32::from(blocks));
        }
    }

    /// Lets the end of a socket take no time.
    pub(crate) fn shorten_linger(&mut self, id: i32, lingers_behind: bool) {
        if lingers_behind {
            self.set_int(id, SNDSYN, 0);
        } else {
            let linger = [1i32, 0].map(i32::to_ne_bytes).concat();
            self.set(id, LINGER, &linger, 8);
        }
    }

    pub(crate) fn set_int(&mut self, id: i32, option: i32, value: i32) -> Option<i32> {
        self.set(id, option, &value.to_ne_bytes(), 4)
    }

    pub(crate) fn set_text(&mut self, id: i32, option: i32, text: &[u8]) -> Option<i32> {
        self.set(id, option, text, i32::try_from(text.len()).unwrap_or(0))
    }

    /// Sets an option to the bytes, with the length that the call is told.
    fn set(&mut self, id: i32, option: i32, value: &[u8], len: i32) -> Option<i32> {
        let mut room = [0u8; ROOM];
        room[..value.len()].copy_from_slice(value);
        begin();
        // SAFETY: there is room for every length that is used here.
        let set = unsafe { srt_setsockflag(id, option, room.as_ptr().cast(), len) };
        self.judge_setting(id, set)
    }

    #[track_caller]
    fn judge_setting(&self, id: i32, set: i32) -> Option<i32> {
        let documented = [INVPARAM, INVSOCK, BOUNDSOCK, CONNSOCK, CONNLOST];
        let error = judge("srt_setsockflag", set, &documented);
        let possible = self.possible(id);
        if self.is_gone(id) {
            assert_eq!(error, Some(INVSOCK), "an option of a socket that is gone");
        } else if possible.are_among(&[BROKEN]) {
            assert_eq!(error, Some(CONNLOST), "an option of a broken socket");
        }
        if error == Some(CONNSOCK) {
            let late = [LISTENING, CONNECTING, CONNECTED, BROKEN, CLOSED, NONEXISTENT];
            assert!(late.iter().any(|&state| possible.has(state)), "{possible:?}");
        }
        error
    }

    pub(crate) fn set_option(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let option = option_number(input);
        let mut room = [0u8; ROOM];
        let len = fill(&mut room, option, input);
        let len = match input.byte() {
            0..=30 => input.pick(&[0, 1, 2, 4, 8, 12, 16, 64, 80, 512, 513, ROOM as i32]),
            31..=35 => input.pick(&[-1, i32::MIN]),
            _ => len,
        };
        let value: *const c_void = match input.is(8) {
            true => std::ptr::null(),
            false => room.as_ptr().cast(),
        };
        let by_level = input.is(64);
        begin();
        // SAFETY: the value has room for every length.
        let set = unsafe {
            match by_level {
                true => srt_setsockopt(id, input.i32(), option, value, len),
                false => srt_setsockflag(id, option, value, len),
            }
        };
        let error = self.judge_setting(id, set);
        if error.is_none() && !value.is_null() {
            self.read_back(id, option, &room, len);
        }
    }

    /// A time that was set is the time that is read.
    fn read_back(&mut self, id: i32, option: i32, room: &[u8], len: i32) {
        if ![SNDTIMEO, RCVTIMEO].contains(&option) || len != 4 {
            return;
        }
        let mut value = 0i32;
        let mut len = 4;
        begin();
        // SAFETY: there is room for a number.
        let read = unsafe { srt_getsockflag(id, option, (&raw mut value).cast(), &raw mut len) };
        if judge("srt_getsockflag", read, &[INVSOCK]).is_none() {
            assert_eq!(value.to_ne_bytes(), room[..4], "option {option}");
        }
    }

    pub(crate) fn read_option(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let option = option_number(input);
        let mut room = [0xA5u8; ROOM];
        let mut len = input.pick(&[0, 1, 4, 8, 16, 513, ROOM as i32, ROOM as i32, -1]);
        let told = usize::try_from(len).unwrap_or(0);
        let value: *mut c_void = room.as_mut_ptr().cast();
        let (value, length) = match input.byte() {
            0..=8 => (std::ptr::null_mut(), &raw mut len),
            9..=16 => (value, std::ptr::null_mut()),
            _ => (value, &raw mut len),
        };
        begin();
        // SAFETY: there is room for every length.
        let read = unsafe {
            match input.is(64) {
                true => srt_getsockopt(id, 0, option, value, length),
                false => srt_getsockflag(id, option, value, length),
            }
        };
        let documented = [INVPARAM, INVSOCK, INVOP, CONNLOST];
        let error = judge("srt_getsockflag", read, &documented);
        if self.is_gone(id) {
            let is_null = value.is_null() || length.is_null();
            assert!(error == Some(INVSOCK) || is_null && error == Some(INVPARAM), "{error:?}");
        }
        if error.is_none() {
            assert!((0..=ROOM as i32).contains(&len), "the length {len}");
            // A number of 32 bits is written whatever the length.
            let most = told.max(4);
            assert!(room[most..].iter().all(|&byte| byte == 0xA5), "more than {most} bytes");
        }
    }
}

fn option_number(input: &mut Input<'_>) -> i32 {
    match input.byte() {
        200..=240 => QUERY + i32::from(input.byte() % 16),
        241.. => input.i32(),
        number => i32::from(number % 65),
    }
}

/// Fills in a value. Returns the length that suits it. Calls must not wait for long.
fn fill(room: &mut [u8; ROOM], option: i32, input: &mut Input<'_>) -> i32 {
    let number = input.number();
    let number = match option {
        SNDTIMEO | RCVTIMEO => number & 7,
        CONNTIMEO => number & 127,
        PEERIDLETIMEO => number & 0x3FF,
        _ => number,
    };
    let is_time = [SNDTIMEO, RCVTIMEO, CONNTIMEO].contains(&option);
    let bytes: Vec<u8> = match input.byte() {
        0..=100 => number.to_ne_bytes().to_vec(),
        _ if is_time => number.to_ne_bytes().to_vec(),
        101..=120 => vec![number as u8],
        121..=150 => i64::from(number).to_ne_bytes().to_vec(),
        151..=170 => [number, input.number()].map(i32::to_ne_bytes).concat(),
        171..=230 => input.pick(&TEXTS).as_bytes().to_vec(),
        _ => input.bytes().to_vec(),
    };
    room[..bytes.len()].copy_from_slice(&bytes);
    i32::try_from(bytes.len()).unwrap_or(0)
}
