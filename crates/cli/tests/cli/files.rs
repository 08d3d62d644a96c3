//! `punctual file`: both ends of it, interrupted, and with ends that mean harm.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Ended, Folder, Program, free_port, run};
use bytes::Bytes;
use punctual::{Config, SendOptions, Socket, Transmission};
use sha2::{Digest as _, Sha256};

/// Bytes that no other part of a file is like.
pub(crate) fn contents(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

/// Every file below a folder, by its path.
fn tree(folder: &str) -> BTreeMap<String, Vec<u8>> {
    fn add(folder: &Path, prefix: &str, tree: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).expect("it can be read") {
            let entry = entry.expect("it can be read");
            let name = format!("{prefix}{}", entry.file_name().to_str().expect("text"));
            if entry.path().is_dir() {
                add(&entry.path(), &format!("{name}/"), tree);
            } else {
                tree.insert(name, fs::read(entry.path()).expect("it can be read"));
            }
        }
    }
    let mut whole = BTreeMap::new();
    add(Path::new(folder), "", &mut whole);
    whole
}

/// A folder with files of all kinds of sizes.
fn make_source(folder: &Folder) -> String {
    let source = folder.file("source");
    fs::create_dir_all(format!("{source}/deep/er")).expect("folders");
    for (name, len) in
        [("empty", 0), ("one", 1), ("deep/packet", 1_456), ("deep/er/large", 3_500_000)]
    {
        fs::write(format!("{source}/{name}"), contents(len, len as u64)).expect("a file");
    }
    for i in 0..150 {
        fs::write(format!("{source}/deep/small {i}"), contents(i, i as u64)).expect("a file");
    }
    source
}

/// Sends `source` to `target` with these options at both ends.
fn transfer(source: &str, target: &str, query: &str, both: &[&str], sender: &[&str]) -> [Ended; 2] {
    let port = free_port();
    let (listen, call) =
        (format!("srt://:{port}{query}"), format!("srt://127.0.0.1:{port}{query}"));
    let mut receiver = Program::start(&[&["file", "receive", &listen, target], both].concat());
    receiver.wait_for("listening");
    let sent = run(&[&["file", "send", source, &call], both, sender].concat(), b"");
    [sent, receiver.end()]
}

pub(crate) fn assert_well(ends: [Ended; 2]) -> [String; 2] {
    ends.map(|end| {
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        end.stderr
    })
}

/// Waits until the temporary file of `clip.ts` in `target` has this number of bytes, and gives its
/// path.
pub(crate) fn wait_for_part(target: &str, bytes: u64) -> PathBuf {
    loop {
        let found = fs::read_dir(target).into_iter().flatten().flatten().find(|found| {
            let name = found.file_name();
            let name = name.to_string_lossy();
            name.starts_with(".clip.ts.") && name.ends_with(".part")
        });
        if let Some(part) = found
            && part.metadata().is_ok_and(|part| part.len() >= bytes)
        {
            return part.path();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_folder_arrives_as_it_is_and_is_not_sent_twice() {
    let folder = Folder::new("folder-arrives");
    let (source, target) = (make_source(&folder), folder.file("target"));
    let [sent, received] = assert_well(transfer(&source, &target, "", &[], &[]));
    assert!(sent.contains("sent 154 files") && received.contains("received 154 files"), "{sent}");
    assert!(tree(&source) == tree(&target), "not the same files");
    let [sent, _] = assert_well(transfer(&source, &target, "", &[], &[]));
    assert!(
        sent.contains("sent 0 files, 0.0 B") && sent.contains("154 files there already"),
        "{sent}"
    );
}

#[test]
fn a_folder_arrives_encrypted_in_segments_and_at_a_calling_receiver() {
    let folder = Folder::new("folder-encrypted");
    let (source, target) = (make_source(&folder), folder.file("target"));
    for mode in ["1", "2"] {
        let query = format!("?passphrase=correct-horse&cryptomode={mode}");
        assert_well(transfer(&source, &target, &query, &[], &[]));
        assert!(tree(&source) == tree(&target), "not the same files");
        fs::remove_dir_all(&target).expect("it is there");
    }
    let small = ["--segment", "8000"];
    assert_well(transfer(&source, &target, "", &["--protocol", "segments"], &small));
    assert!(tree(&source) == tree(&target), "not the same files");
    fs::remove_dir_all(&target).expect("it is there");
    let port = free_port();
    let mut sender = Program::start(&["file", "send", &source, &format!("srt://:{port}")]);
    sender.wait_for("listening");
    let call = format!("srt://127.0.0.1:{port}");
    assert_well([run(&["file", "receive", &call, &target], b""), sender.end()]);
    assert!(tree(&source) == tree(&target), "not the same files");
}

#[test]
fn a_byte_stream_takes_its_name_from_its_stream_id_or_the_receiver() {
    let folder = Folder::new("file-stream");
    let (source, target) = (folder.file("clip.ts"), folder.file("target"));
    fs::write(&source, contents(2_000_000, 7)).expect("a file");
    assert_well(transfer(&source, &target, "", &["--protocol", "stream"], &[]));
    assert!(fs::read(format!("{target}/clip.ts")).expect("it came") == contents(2_000_000, 7));
    let port = free_port();
    let uri = format!("srt://:{port}?messageapi=0");
    let mut receiver = Program::start(&["file", "receive", &uri, &target, "--name", "a/b.ts"]);
    receiver.wait_for("listening");
    let call = format!("srt://127.0.0.1:{port}?messageapi=0&streamid=../../evil");
    assert_well([run(&["file", "send", &source, &call], b""), receiver.end()]);
    assert!(fs::read(format!("{target}/a/b.ts")).expect("it came") == contents(2_000_000, 7));
}

#[test]
fn an_interrupted_transfer_goes_on_where_it_was() {
    let folder = Folder::new("file-resumed");
    let (source, target) = (folder.file("clip.ts"), folder.file("target"));
    let whole = contents(12_000_000, 3);
    fs::write(&source, &whole).expect("a file");
    let port = free_port();
    let listen = format!("srt://:{port}");
    // Slow enough to be killed in the middle.
    let call = format!("srt://127.0.0.1:{port}?maxbw=20Mbps");
    let mut receiver = Program::start(&["file", "receive", &listen, &target]);
    receiver.wait_for("listening");
    let sender = Program::start(&["file", "send", &source, &call, "--segment", "100000"]);
    let part = wait_for_part(&target, 2_000_000);
    sender.kill();
    let ended = receiver.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("where the next transfer goes on"), "{}", ended.stderr);
    assert!(!Path::new(&format!("{target}/clip.ts")).exists());
    let kept = fs::metadata(&part).expect("it is kept").len();

    // The receiver is killed now, while its sender goes on trying.
    let mut receiver = Program::start(&["file", "receive", &listen, &target]);
    receiver.wait_for("listening");
    let mut sender =
        Program::start(&["file", "send", &source, &call, "--segment", "100000", "--reconnect"]);
    sender.wait_for("going on after");
    wait_for_part(&target, kept + 1_000_000);
    receiver.kill();
    let mut receiver = Program::start(&["file", "receive", &listen, &target]);
    receiver.wait_for("listening");
    let [sent, _] = assert_well([sender.end(), receiver.end()]);
    assert_eq!(sent.matches("going on after").count(), 2, "{sent}");
    assert!(fs::read(format!("{target}/clip.ts")).expect("it is whole") == whole);
    assert!(!Path::new(&part).exists());
}

#[test]
fn the_start_of_another_file_is_not_continued() {
    let folder = Folder::new("file-other-part");
    let (source, target) = (folder.file("clip.ts"), folder.file("target"));
    fs::write(&source, contents(500_000, 1)).expect("a file");
    fs::create_dir(&target).expect("a folder");
    // The first bytes of both are the same, so that the part has the name of this file's.
    let begin = &contents(500_000, 1)[..65_536];
    let digest: [u8; 32] = Sha256::digest(begin).into();
    let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let part = [begin, &contents(200_000, 2)].concat();
    fs::write(format!("{target}/.clip.ts.{digest}.part"), part).expect("a part");
    let [sent, _] = assert_well(transfer(&source, &target, "", &[], &[]));
    assert!(!sent.contains("going on"), "{sent}");
    assert!(fs::read(format!("{target}/clip.ts")).expect("it is whole") == contents(500_000, 1));
}

#[test]
fn files_that_are_there_are_kept_unless_they_are_to_be_replaced() {
    let folder = Folder::new("file-kept");
    let (source, target) = (folder.file("source"), folder.file("target"));
    for folder in [&source, &target] {
        fs::create_dir(folder).expect("a folder");
    }
    for (name, ours, theirs) in [("a", "same size", "SAME SIZE"), ("b", "mine", "longer")] {
        fs::write(format!("{target}/{name}"), ours).expect("a file");
        fs::write(format!("{source}/{name}"), theirs).expect("a file");
    }
    fs::write(format!("{source}/c"), "new").expect("a file");
    for both in [&[][..], &["--protocol", "segments"]] {
        let ends = transfer(&source, &target, "", both, &[]);
        // A plain sender cannot know.
        let codes = if both.is_empty() { [Some(1), Some(1)] } else { [Some(0), Some(1)] };
        assert_eq!(ends.each_ref().map(|end| end.code), codes, "{}", ends[1].stderr);
        assert!(ends[1].stderr.contains("--overwrite"), "{}", ends[1].stderr);
        assert!(ends[1].stderr.contains("files were not transferred"), "{}", ends[1].stderr);
        assert_eq!(fs::read(format!("{target}/a")).unwrap(), b"same size");
        assert_eq!(fs::read(format!("{target}/b")).unwrap(), b"mine");
    }
    assert_eq!(fs::read(format!("{target}/c")).unwrap(), b"new");
    let port = free_port();
    let listen = format!("srt://:{port}");
    let mut receiver = Program::start(&["file", "receive", &listen, &target, "--overwrite"]);
    receiver.wait_for("listening");
    let sent = run(&["file", "send", &source, &format!("srt://127.0.0.1:{port}")], b"");
    assert_well([sent, receiver.end()]);
    assert!(tree(&source) == tree(&target), "not the same files");
}

#[test]
fn files_that_cannot_be_sent_are_named() {
    let folder = Folder::new("file-unreadable");
    let (source, target) = (folder.file("source"), folder.file("target"));
    fs::create_dir(&source).expect("a folder");
    fs::write(format!("{source}/good"), "good").expect("a file");
    std::os::unix::fs::symlink("nowhere", format!("{source}/dangling")).expect("a link");
    fs::write(format!("{source}/bad\\name"), "x").expect("a file");
    let [sent, received] = transfer(&source, &target, "", &[], &[]);
    for ended in [sent, received] {
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        for expected in ["dangling: ", "bad\\name: ", "2 files were not transferred"] {
            assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
        }
    }
    assert_eq!(tree(&target).keys().collect::<Vec<_>>(), ["good"]);
    let ended = run(&["file", "send", "/nowhere/clip.ts", "srt://127.0.0.1:9"], b"");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("/nowhere/clip.ts"), "{}", ended.stderr);
    let listed = run(&["file", "send", &source, "srt://127.0.0.1:9", "--printout"], b"");
    assert_eq!((listed.code, listed.stdout), (Some(1), b"good\n".to_vec()));
}

/// The offer of a file of four bytes, before its path.
const OFFER_OF_FOUR: [u8; 17] = [0x81, 0, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4, 5, 6, 7, 8];

/// Sends these messages to a receiver, whatever they are, and waits for its end.
async fn send_raw(folder: &Folder, messages: &[&[u8]]) -> Ended {
    let port = free_port();
    let target = folder.file("target");
    let mut receiver = Program::start(&["file", "receive", &format!("srt://:{port}"), &target]);
    receiver.wait_for("listening");
    let config = Config::file().with_transmission(Transmission::Messages);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let socket = Socket::connect(address, config).await.expect("it answers");
    let options = SendOptions { in_order: true, ..SendOptions::default() };
    for message in messages {
        // It may have had enough before the last one.
        if socket.send_with(Bytes::copy_from_slice(message), options).await.is_err() {
            break;
        }
    }
    socket.close().await;
    receiver.end()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_means_harm_writes_nothing_outside_of_the_folder() {
    let folder = Folder::new("file-hostile");
    let target = folder.file("target");
    fs::create_dir(&target).expect("a folder");
    fs::create_dir(folder.file("outside")).expect("a folder");
    fs::write(folder.file("outside/secret"), "mine").expect("a file");
    std::os::unix::fs::symlink(folder.file("outside"), format!("{target}/link")).expect("a link");
    let before = tree(&folder.file("outside"));
    for path in
        ["../evil", "a/../../evil", "link/evil", "link/secret", "..\\evil", "C:\\evil", ".x.part"]
    {
        let ended = send_raw(&folder, &[format!("\x03{path}\0evil").as_bytes()]).await;
        assert_eq!(ended.code, Some(1), "{path}: {}", ended.stderr);
        assert!(ended.stderr.contains("not taken"), "{path}: {}", ended.stderr);
        let offer = [&OFFER_OF_FOUR, path.as_bytes()].concat();
        let start = [&[0x83][..], &[0; 12]].concat();
        let ended = send_raw(&folder, &[&offer, &start, b"\x84evil"]).await;
        assert_eq!(ended.code, Some(1), "{path}: {}", ended.stderr);
    }
    assert_eq!(tree(&folder.file("outside")), before);
    assert!(!Path::new(&folder.file("evil")).exists());
    let ended = send_raw(&folder, &[format!("\x03{}\0here", folder.file("evil")).as_bytes()]).await;
    assert_eq!(ended.code, Some(0), "below the target: {}", ended.stderr);
    assert!(!Path::new(&folder.file("evil")).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_ends_the_transfer_and_leaves_no_file() {
    let folder = Folder::new("file-nonsense");
    let offer = [&OFFER_OF_FOUR[..], b"a"].concat();
    let start = [&[0x83][..], &[0; 12]].concat();
    let beyond = [&[0x83][..], &[0; 11], &[3]].concat();
    let claim = [&[0x8A][..], &[0; 36]].concat();
    let end = [&[0x85][..], &[0; 32]].concat();
    for messages in [
        &[&b"\xFF"[..]][..],
        &[b"\x01no end"],
        &[b"\x00data before a file"],
        &[b"\x84data before a file"],
        &[&start],
        &[&offer, &beyond],
        &[&offer, &start, b"\x84too much"],
        &[&offer, &start, b"\x02segment"],
        &[&offer, &start, &start],
        &[&claim],
        &[&offer, &claim, &claim],
        &[&offer, b"\x86\0\0\0\x01\0"],
        &[&end],
        &[&offer, b"\x87", b"\x87"],
    ] {
        let ended = send_raw(&folder, messages).await;
        assert_eq!(ended.code, Some(1), "{messages:?}: {}", ended.stderr);
        assert!(!Path::new(&folder.file("target/a")).exists(), "{messages:?}");
        let _ = fs::remove_dir_all(folder.file("target"));
    }
    // Less than was offered, or something else: no file either, and the sender is told.
    let ended = send_raw(&folder, &[&offer, &start, b"\x84abcd", &end, b"\x87"]).await;
    assert!(ended.stderr.contains("the checksums differ"), "{}", ended.stderr);
    assert!(tree(&folder.file("target")).is_empty());
}

/// srt-xtransmit's sender does not ask for order, so that its segments overtake each other where
/// packets are lost; its own receiver writes them as they come.
#[tokio::test(flavor = "multi_thread")]
async fn unordered_segments_make_a_whole_file_over_a_lossy_link() {
    let folder = Folder::new("file-unordered");
    let target = folder.file("target");
    let (port, relay) = (free_port(), free_port());
    let mut receiver = Program::start(&["file", "receive", &format!("srt://:{port}"), &target]);
    receiver.wait_for("listening");
    let (from, to) = (format!("127.0.0.1:{relay}"), format!("127.0.0.1:{port}"));
    let link = ["--rtt", "20ms", "--loss-up", "every:25"];
    let mut emulator = Program::start(&[&["emulate", &from, &to], &link[..]].concat());
    emulator.wait_for("relaying");
    let config = Config::file().with_transmission(Transmission::Messages);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], relay));
    let socket = Socket::connect(address, config).await.expect("it answers");
    let file = contents(1_000_000, 1);
    let pieces: Vec<&[u8]> = file.chunks(4_000).collect();
    for (at, piece) in pieces.iter().enumerate() {
        let start: &[u8] = match at {
            0 => b"\x01clip.ts\0",
            _ if at + 1 == pieces.len() => b"\x02",
            _ => b"\x00",
        };
        let segment = Bytes::from([start, piece].concat());
        socket.send_with(segment, SendOptions::default()).await.expect("it is taken");
    }
    socket.close().await;
    let ended = receiver.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(fs::read(format!("{target}/clip.ts")).expect("it came") == file, "other bytes");
}

#[test]
fn a_sender_learns_that_the_other_ends_disk_is_full() {
    let folder = Folder::new("disk-full");
    let (source, target) = (folder.file("large"), folder.file("target"));
    fs::write(&source, contents(40_000_000, 1)).expect("a file");
    for (protocol, kept) in [
        (&[][..], "where the next transfer goes on"),
        (&["--protocol", "segments"], "before everything had arrived"),
        (&["--protocol", "stream", "--name", "large"], ""),
    ] {
        let port = free_port();
        let (listen, call) = (format!("srt://:{port}"), format!("srt://127.0.0.1:{port}"));
        let receive = [&["file", "receive", &listen, &target], protocol].concat();
        let mut receiver = Program::start_on_small_disk(2_000, &receive);
        receiver.wait_for("listening");
        let sender = &protocol[..protocol.len().min(2)];
        let sent = run(&[&["file", "send", &source, &call], sender].concat(), b"");
        let received = receiver.end();
        assert_eq!((sent.code, received.code), (Some(1), Some(1)), "{protocol:?}");
        assert!(sent.stderr.contains("could not write the received data"), "{}", sent.stderr);
        assert!(received.stderr.contains("File too large"), "{}", received.stderr);
        assert!(received.stderr.contains(kept), "{}", received.stderr);
        fs::remove_dir_all(&target).expect("it is there");
    }
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_named_at_both_ends() {
    let folder = Folder::new("file-changed");
    let (source, target) = (folder.file("clip.ts"), folder.file("target"));
    // More than the send buffer holds.
    fs::write(&source, contents(12_000_000, 3)).expect("a file");
    let port = free_port();
    let listen = format!("srt://:{port}");
    let call = format!("srt://127.0.0.1:{port}?maxbw=20Mbps&sndbuf=2000000");
    let mut receiver = Program::start(&["file", "receive", &listen, &target]);
    receiver.wait_for("listening");
    let sender = Program::start(&["file", "send", &source, &call, "--segment", "100000"]);
    wait_for_part(&target, 1_000_000);
    fs::write(&source, contents(12_000_000, 4)).expect("it is rewritten");
    for ended in [sender.end(), receiver.end()] {
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains("changed while it was sent"), "{}", ended.stderr);
    }
    assert_eq!(fs::read_dir(&target).expect("it is there").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_reconnects_waits_on_after_a_stranger() {
    let folder = Folder::new("file-stranger");
    let (source, target) = (folder.file("clip.ts"), folder.file("target"));
    let empty = folder.file("empty");
    fs::create_dir(&empty).expect("a folder");
    fs::write(&source, contents(100_000, 3)).expect("a file");
    let port = free_port();
    let (listen, call) = (format!("srt://:{port}"), format!("srt://127.0.0.1:{port}"));
    let mut receiver = Program::start(&["file", "receive", &listen, &target, "--reconnect"]);
    receiver.wait_for("listening");
    // One that leaves at once, and one that has no files.
    let config = Config::file().with_transmission(Transmission::Messages);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    Socket::connect(address, config).await.expect("it answers").close().await;
    receiver.wait_for("before it had sent anything");
    assert_eq!(run(&["file", "send", &empty, &call], b"").code, Some(0));
    receiver.wait_for("the sender had no files");
    assert_well([run(&["file", "send", &source, &call], b""), receiver.end()]);
    assert!(fs::read(format!("{target}/clip.ts")).expect("it came") == contents(100_000, 3));
}
