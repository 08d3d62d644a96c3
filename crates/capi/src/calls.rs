//! Tests of whole calls over memory as C programs pass it, for Miri. The sockets have no port,
//! since Miri has none; `random_calls` goes further, without Miri.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use punctual_sockets::{Code, OptionNumber};

use crate::abi::{EpollEvent, GroupData, MsgCtrl};
use crate::errors::srt_getlasterror;
use crate::{connecting, data, epoll, groups, options, sockets, statistics};

#[track_caller]
fn assert_fails(result: impl Into<i64>, code: Code) {
    // SAFETY: null is allowed.
    let last = unsafe { srt_getlasterror(ptr::null_mut()) };
    assert_eq!((result.into(), last), (-1, code as c_int));
}

#[test]
fn an_option_is_set_and_read_through_memory_of_its_size() {
    let socket = sockets::srt_create_socket();
    let value = 250i32;
    let mut read = MaybeUninit::<i32>::uninit();
    let mut len = 4;
    let latency = OptionNumber::LATENCY.0;
    // SAFETY: the values have four bytes.
    unsafe {
        assert_eq!(options::srt_setsockflag(socket, latency, (&raw const value).cast(), 4), 0);
        let place = read.as_mut_ptr().cast();
        assert_eq!(options::srt_getsockopt(socket, 0, latency, place, &raw mut len), 0);
        assert_eq!((read.assume_init(), len), (250, 4));
    }
    sockets::srt_close(socket);
}

#[test]
fn calls_on_a_socket_that_is_not_connected_touch_no_memory_of_the_program() {
    let socket = sockets::srt_create_socket();
    let mut control = MaybeUninit::<MsgCtrl>::uninit();
    let mut buffer = MaybeUninit::<[u8; 16]>::uninit();
    let mut statistics = MaybeUninit::uninit();
    // SAFETY: the buffer has its bytes, and the structures can be written.
    unsafe {
        let buffer = buffer.as_mut_ptr().cast();
        let received = data::srt_recvmsg2(socket, buffer, 16, control.as_mut_ptr());
        assert_fails(received, Code::NotConnected);
        assert_fails(data::srt_recv(socket, ptr::null_mut(), 16), Code::NotConnected);
        assert_fails(data::srt_send(socket, c"on time".as_ptr(), 7), Code::NotConnected);
        assert_fails(data::srt_send(socket, ptr::null(), 7), Code::InvalidParameter);
        let read = statistics::srt_bstats(socket, statistics.as_mut_ptr(), 0);
        assert_fails(read, Code::NotConnected);
        let called = connecting::srt_connect(socket, ptr::null(), 16);
        assert_fails(called, Code::InvalidParameter);
        let accepted = connecting::srt_accept(socket, ptr::null_mut(), ptr::null_mut());
        assert_fails(accepted, Code::NotListening);
        let named = sockets::srt_getsockname(socket, ptr::null_mut(), ptr::null_mut());
        assert_fails(named, Code::NotConnected);
    }
    sockets::srt_close(socket);
}

#[test]
fn a_wait_writes_its_arrays_and_nothing_after_a_timeout() {
    let (set, socket) = (epoll::srt_epoll_create(), sockets::srt_create_socket());
    let mut places = [const { MaybeUninit::<EpollEvent>::uninit() }; 2];
    let mut readers = [const { MaybeUninit::<c_int>::uninit() }; 2];
    let mut len = 2;
    // SAFETY: the arrays have the places that are told.
    unsafe {
        assert_fails(
            epoll::srt_epoll_uwait(set, places.as_mut_ptr().cast(), 2, 0),
            Code::EmptyEventSet,
        );
        // Without an array, or with a negative length, it does not wait for ever.
        assert_fails(epoll::srt_epoll_uwait(set, ptr::null_mut(), 2, -1), Code::InvalidParameter);
        let place = places.as_mut_ptr().cast();
        assert_fails(epoll::srt_epoll_uwait(set, place, -1, -1), Code::InvalidParameter);
        assert_eq!(epoll::srt_epoll_add_usock(set, socket, ptr::null()), 0);
        assert_eq!(epoll::srt_epoll_uwait(set, places.as_mut_ptr().cast(), 2, 0), 0);
        let waited = epoll::srt_epoll_wait(
            set,
            readers.as_mut_ptr().cast(),
            &raw mut len,
            ptr::null_mut(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
        );
        assert_fails(waited, Code::Timeout);
    }
    assert_eq!((len, epoll::srt_epoll_release(set)), (2, 0));
    sockets::srt_close(socket);
}

#[test]
fn a_group_without_links_writes_none() {
    let group = groups::srt_create_group(1);
    let mut places = [const { MaybeUninit::<GroupData>::uninit() }; 2];
    let mut len = 2;
    // SAFETY: there are as many places as are told.
    unsafe {
        let output = places.as_mut_ptr().cast();
        assert_eq!(groups::srt_group_data(group, output, &raw mut len), 0);
        assert_eq!(len, 0);
        let read = groups::srt_group_data(group, output, ptr::null_mut());
        assert_fails(read, Code::InvalidParameter);
        let none = groups::srt_connect_group(group, ptr::null_mut(), 1);
        assert_fails(none, Code::InvalidParameter);
    }
    sockets::srt_close(group);
}
