//! Files. These calls wait whatever the options say, so none of them transfers much.

use std::ffi::{CString, c_char};
use std::path::PathBuf;

use punctual_srt::data::{srt_recvfile, srt_sendfile};

use super::World;
use super::input::Input;
use super::verdict::{
    CONNLOST, INVALBUFFERAPI, INVPARAM, INVRDOFF, INVSOCK, INVWROFF, NOCONN, RDPERM, WRPERM, begin,
    judge,
};

impl World {
    pub(crate) fn use_file(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let path = match input.byte() {
            0..=100 => PathBuf::from("/nowhere/at/all"),
            101..=200 => std::env::temp_dir().join("punctual-random-calls"),
            _ => PathBuf::from("/"),
        };
        let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
        let path: *const c_char = if input.is(20) { std::ptr::null() } else { path.as_ptr() };
        self.transfer(id, path, input);
    }

    fn transfer(&mut self, id: i32, path: *const c_char, input: &mut Input<'_>) {
        let mut offset = i64::from(input.number());
        let offset = if input.is(20) { std::ptr::null_mut() } else { &raw mut offset };
        let sends = input.is(128);
        let block = input.number();
        begin();
        // SAFETY: the path ends with NUL, and the offset can be read and written.
        let moved = unsafe {
            match sends {
                true => srt_sendfile(id, path, offset, 0, block),
                false => srt_recvfile(id, path, offset, i64::from(-input.i32().abs()), block),
            }
        };
        let documented = [
            INVPARAM,
            INVSOCK,
            NOCONN,
            CONNLOST,
            INVALBUFFERAPI,
            INVRDOFF,
            RDPERM,
            INVWROFF,
            WRPERM,
        ];
        let error = judge("srt_sendfile", moved, &documented);
        assert!(moved <= 0, "{moved} bytes were moved");
        if self.is_gone(id) {
            assert!(matches!(error, Some(INVSOCK | INVPARAM)), "{error:?}");
        }
    }
}
