//! Transfers between two sockets on the loopback interface.
#![expect(clippy::disallowed_types, reason = "an observer is shared")]

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual::{Config, Listener, Socket, Transmission};
use punctual_file::message::Language;
use punctual_file::{
    Error, Event, Listing, Observer, Progress, ReceiveFormat, SendFormat, Store, receive, send,
};

/// A folder for one test, with a source and a target folder in it, removed at its end.
struct Bed(PathBuf);

impl Bed {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("punctual-file-{}-{count}", std::process::id()));
        fs::create_dir_all(folder.join("source/deep")).expect("it can be made");
        fs::create_dir(folder.join("target")).expect("it can be made");
        fs::write(folder.join("source/empty"), "").expect("it can be written");
        fs::write(folder.join("source/deep/large"), contents()).expect("it can be written");
        Self(folder)
    }

    fn source(&self) -> Listing {
        Listing::of(&self.0.join("source")).expect("it can be read")
    }

    fn target(&self, path: &str) -> PathBuf {
        self.0.join("target").join(path)
    }

    fn store(&self) -> Store {
        Store::open(&self.target("")).expect("it is there")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes no part of which is like another.
fn contents() -> Vec<u8> {
    (0..200_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()).collect()
}

#[derive(Default)]
struct Sum(Mutex<Progress>);

impl Observer for Sum {
    fn observe(&self, event: Event<'_>) {
        self.0.lock().expect("nobody panics with it").note(event);
    }
}

/// A caller and the listener's socket for it.
async fn pair(transmission: Transmission, stream_id: &str) -> (Socket, Socket) {
    let config = Config::file().with_transmission(transmission);
    let local = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(local, config.clone()).await.expect("a listener");
    let config = config.with_stream_id(stream_id).expect("a legal stream ID");
    let call = Socket::connect(listener.local_addr(), config);
    let (caller, accepted) = tokio::try_join!(call, listener.accept()).expect("a connection");
    (caller, accepted)
}

/// Sends `listing` into `store`. Returns how the transfer ended at both ends, and their progress.
async fn transfer(
    (caller, accepted): (Socket, Socket),
    listing: &Listing,
    store: &Store,
    language: Language,
) -> ([Result<(), Error>; 2], [Progress; 2]) {
    let sent = Sum(Mutex::new(Progress::of_sender(listing.size())));
    let received = Sum::default();
    let sending = async {
        let format = SendFormat { language, ..SendFormat::default() };
        let result = send(&caller, listing, format, &sent).await;
        caller.close().await;
        result
    };
    let format = ReceiveFormat { language, ..ReceiveFormat::default() };
    let receiving = receive(&accepted, store, &format, &received);
    let (sending, receiving) = tokio::join!(sending, receiving);
    let progress = [sent, received].map(|sum| sum.0.into_inner().expect("nobody panics with it"));
    ([sending, receiving], progress)
}

fn assert_arrived(bed: &Bed, path: &str) {
    let arrived = fs::read(bed.target(path)).expect("it is there");
    assert!(arrived == contents(), "{path} has other contents");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_arrives_and_is_not_sent_again() {
    let bed = Bed::new();
    let (source, store) = (bed.source(), bed.store());
    let ends = pair(Transmission::Messages, "").await;
    let (results, progress) = transfer(ends, &source, &store, Language::Punctual).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    for end in progress {
        assert_eq!((end.completed, end.carried, end.total), (2, 800_000, Some(800_000)));
    }
    assert_arrived(&bed, "deep/large");
    assert_eq!(fs::read(bed.target("empty")).unwrap(), b"");
    let ends = pair(Transmission::Messages, "").await;
    let (results, progress) = transfer(ends, &source, &store, Language::Punctual).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    for end in progress {
        assert_eq!((end.completed, end.unchanged, end.carried), (0, 2, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_file_goes_on_behind_the_bytes_that_came() {
    let bed = Bed::new();
    fs::create_dir(bed.target("deep")).unwrap();
    fs::write(bed.target("deep/.large.part"), &contents()[..300_000]).unwrap();
    let ends = pair(Transmission::Messages, "").await;
    let (results, progress) = transfer(ends, &bed.source(), &bed.store(), Language::Punctual).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    for end in progress {
        assert_eq!((end.done, end.carried), (800_000, 500_000));
    }
    assert_arrived(&bed, "deep/large");
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_carry_a_folder_without_offers() {
    let bed = Bed::new();
    let ends = pair(Transmission::Messages, "").await;
    let (results, [_, received]) =
        transfer(ends, &bed.source(), &bed.store(), Language::Segments).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!((received.completed, received.total), (2, None));
    assert_arrived(&bed, "deep/large");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_bytes_is_a_file_named_by_the_stream_id() {
    let bed = Bed::new();
    let file = Listing::of(&bed.0.join("source/deep/large")).unwrap();
    let ends = pair(Transmission::Stream, "in/clip.ts").await;
    let (results, _) = transfer(ends, &file, &bed.store(), Language::Punctual).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_arrived(&bed, "in/clip.ts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_bytes_carries_no_folder() {
    let bed = Bed::new();
    let (caller, _accepted) = pair(Transmission::Stream, "clip.ts").await;
    let refused = send(&caller, &bed.source(), SendFormat::default(), &|_: Event<'_>| {}).await;
    assert!(matches!(refused, Err(Error::StreamOfSeveral)), "{refused:?}");
}
