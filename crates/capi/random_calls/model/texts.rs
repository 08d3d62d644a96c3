//! Texts, times and the log.

use std::ffi::{CStr, c_char};

use punctual_srt::errors::{srt_getlasterror_str, srt_strerror};
use punctual_srt::log::{
    srt_addlogfa, srt_dellogfa, srt_resetlogfa, srt_setlogflags, srt_setloghandler,
};
use punctual_srt::startup::{srt_clock_type, srt_getversion, srt_time_now};
use punctual_srt::texts::srt_rejectreason_str;

use super::World;
use super::input::Input;
use super::verdict::{begin, judge_quiet};

impl World {
    pub(crate) fn read_texts(&mut self, input: &mut Input<'_>) {
        begin();
        let number = input.number();
        assert_text(srt_strerror(number, input.i32()));
        assert_text(srt_rejectreason_str(number));
        assert_text(srt_getlasterror_str());
        assert_eq!((srt_getversion(), srt_clock_type()), (0x01_05_05, 1));
        assert!(srt_time_now() > 0);
        let areas = [(); 4].map(|()| input.number());
        match input.byte() {
            0..=60 => srt_addlogfa(number),
            61..=120 => srt_dellogfa(number),
            121..=160 => srt_setlogflags(number),
            // SAFETY: null stands for no area, and there are four numbers.
            161..=180 => unsafe { srt_resetlogfa(std::ptr::null(), 4) },
            181..=220 => unsafe { srt_resetlogfa(areas.as_ptr(), areas.len()) },
            // SAFETY: null stands for the error output.
            _ => unsafe { srt_setloghandler(std::ptr::null_mut(), None) },
        }
        judge_quiet("the log");
    }
}

#[track_caller]
fn assert_text(text: *const c_char) {
    // SAFETY: the functions return texts that end with NUL.
    let text = unsafe { CStr::from_ptr(text) };
    assert!(!text.is_empty() && text.to_str().is_ok(), "{text:?}");
}
