//! Callers that are refused learn why, and the operator sees each.

use std::process::Command;
use std::time::Duration;

use interop::{Folder, LibsrtPeer, Process, Relay, SrtLibrary, Tool, have_all, punctual};

use crate::common::{TURNS, decode, publish};

/// A caller by libsrt, and the answer that it prints.
fn call(relay: &Relay, id: &str, passphrase: Option<&str>, answer: &str, test: &str) {
    let library = SrtLibrary::Libsrt;
    let folder = library.folder_of(test);
    let mut peer = LibsrtPeer::call(library, relay.port, id, passphrase, &folder);
    peer.wait_for_line(answer);
}

#[test]
fn an_absent_stream_is_refused_with_1404_and_listed() {
    if !SrtLibrary::Libsrt.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = Folder::of("an_absent_stream");
    let relay = Relay::start(&folder, "");
    call(&relay, "read:nobody/here", None, "rejected: 1404 ", "an_absent_stream_caller");
    let refusal = relay.wait_refused("not-found");
    assert_eq!(refusal["stream_id"], "read:nobody/here");
    assert!(refusal["address"].as_str().is_some_and(|it| it.starts_with("127.0.0.1:")));
    assert_eq!(refused_lines(&relay_log(relay)), 1, "one line for one refusal");
}

/// The lines of a log about callers that were refused.
fn refused_lines(log: &str) -> usize {
    log.lines().filter(|line| line.contains("was refused")).count()
}

#[test]
fn each_stream_has_its_passphrases_and_a_wrong_one_is_listed() {
    let tools = [Tool::CompilerAndLibsrt, Tool::Ffmpeg];
    if !SrtLibrary::Libsrt.is_there_with(&tools) || !have_all(&tools) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("each_stream_has_its_passphrases");
    let lines = "[stream.a]\npublish-passphrase = \"publishing-a\"\nread-passphrase = \"reading-of-a\"\n\
                 [stream.b]\nread-passphrase = \"reading-of-b\"\n";
    let relay = Relay::start(&folder, lines);
    let uri = relay.uri("publish:a", "&passphrase=publishing-a");
    let _publisher = publish(&relay, "publisher", &uri, &folder);
    relay.wait_online("a");
    call(&relay, "read:a", Some("reading-of-b"), "rejected: 10 ", "passphrase_of_another_stream");
    assert_eq!(relay.wait_refused("wrong-passphrase")["stream_id"], "read:a");
    call(&relay, "read:a", None, "rejected: 11 ", "no_passphrase");
    relay.wait_refused("unencrypted");
    let uri = relay.uri("read:a", "&passphrase=reading-of-a");
    let mut viewer = decode("viewer", &uri, 1, &folder);
    assert!(viewer.wait(Duration::from_secs(15)).success(), "{}", viewer.log());
    let log = relay_log(relay);
    assert_eq!(refused_lines(&log), 2, "one line for one refusal: {log}");
    for secret in ["publishing-a", "reading-of-a", "reading-of-b"] {
        assert!(!log.contains(secret), "a secret is in the log");
    }
}

/// The log of a relay that has ended.
fn relay_log(mut relay: Relay) -> String {
    relay.process().stop();
    relay.process().log()
}

#[test]
fn users_and_tokens_have_their_streams_and_nobody_else_has() {
    let tools = [Tool::CompilerAndLibsrt, Tool::Ffmpeg];
    if !SrtLibrary::Libsrt.is_there_with(&tools) || !have_all(&tools) {
        return;
    }
    let _turn = TURNS.take(1);
    let folder = Folder::of("users_and_tokens");
    let key = folder.file("key");
    std::fs::write(&key, "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n").unwrap();
    set_private(&key);
    let lines = "[auth]\nsigning-key-file = \"key\"\n\
        [[user]]\nname = \"ann\"\npassword = \"sesame-ann\"\n\
        permissions = [{ action = \"publish\", stream = \"live/*\" }]\n";
    let relay = Relay::start(&folder, lines);
    call(&relay, "read:live/a", None, "rejected: 1401 ", "nobody");
    call(&relay, "publish:live/a:ann:wrong", None, "rejected: 1401 ", "ann_wrong");
    call(&relay, "publish:other:ann:sesame-ann", None, "rejected: 1403 ", "ann_other");
    let uri = relay.uri("publish:live/a:ann:sesame-ann", "");
    let _publisher = publish(&relay, "publisher", &uri, &folder);
    relay.wait_online("live%2Fa");
    let mut command = Command::new(punctual());
    command.args(["relay", "token", "--read", "--stream", "live/*", "--for", "1h", "--key-file"]);
    let token = command.arg(&key).output().expect("the program runs");
    let token = String::from_utf8(token.stdout).expect("a token is text");
    // FFmpeg sends the stream ID as it stands in the URI, where a plain `#` would begin a fragment.
    let id = format!("%23!::r=live/a,m=request,token={}", token.trim());
    let mut viewer: Process = decode("viewer", &relay.uri(&id, ""), 1, &folder);
    assert!(viewer.wait(Duration::from_secs(15)).success(), "{}", viewer.log());
    let id = format!("#!::r=other,m=request,token={}", token.trim());
    call(&relay, &id, None, "rejected: 140", "token_of_another_stream");
    let all = relay.json("/v1/refusals").to_string();
    assert!(!all.contains(token.trim()) && !all.contains("sesame-ann"), "{all}");
}

fn set_private(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .expect("the file is there");
}
