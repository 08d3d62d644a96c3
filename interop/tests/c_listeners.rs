//! A listener on libsrt and on Punctual's C library is there for every caller, also where another
//! one was closed before.

#![forbid(unsafe_code)]

use std::time::Duration;

use interop::{CProgram, SrtLibrary, Tool, free_port, on_each_library};

on_each_library! { a_port_is_listened_on_again }

/// GStreamer's `keep-listening` does this after each caller.
async fn a_port_is_listened_on_again(library: SrtLibrary) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = library.folder_of("a_port_is_listened_on_again");
    let words = ["again", &free_port().to_string()];
    let mut peer = CProgram::Peer.start(library, &words, &folder);
    assert!(peer.wait(Duration::from_secs(40)).success());
    assert_eq!(peer.wait_for_line("answered"), "answered 24 of 24");
}
