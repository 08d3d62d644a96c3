//! Transfers between two sockets on the loopback interface.
#![expect(clippy::disallowed_types, reason = "an observer is shared")]

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual::{Config, Listener, SendOptions, Socket, Transmission};
use punctual_file::message::{Answer, Fingerprint, FromReceiver, FromSender, Language, SkipReason};
use punctual_file::{
    Error, Event, Listing, Observer, Progress, ReceiveFormat, SendFormat, Store, receive, send,
};
use sha2::{Digest as _, Sha256};

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

/// The temporary name of a file with these contents, in messages between two Punctual ends.
fn part_of(folder: &str, name: &str) -> String {
    let digest = Sha256::digest(&contents()[..65_536]);
    let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{folder}/.{name}.{digest}.part")
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
    fs::write(bed.target(&part_of("deep", "large")), &contents()[..300_000]).unwrap();
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

/// Does this once, when the transfer has carried the first bytes of a file.
struct Meddler<F>(Sum, Mutex<Option<F>>);

impl<F: FnOnce() + Send> Observer for Meddler<F> {
    fn observe(&self, event: Event<'_>) {
        if matches!(event, Event::Carried(_))
            && let Some(meddle) = self.1.lock().expect("nobody panics with it").take()
        {
            meddle();
        }
        self.0.observe(event);
    }
}

/// Sends `listing` in small messages, while `meddle` happens. Returns the problems that both ends
/// reported, or the errors with which they ended.
async fn transfer_with(
    (caller, accepted): (Socket, Socket),
    listing: &Listing,
    store: &Store,
    language: Language,
    meddle: impl FnOnce() + Send,
) -> [Result<u64, String>; 2] {
    let sent = Meddler(Sum::default(), Mutex::new(Some(meddle)));
    let received = Sum::default();
    let sending = async {
        let format = SendFormat { segment: 8_000, language };
        let result = send(&caller, listing, format, &sent).await;
        if result.is_err() {
            punctual_file::abandon(&caller);
            caller.abort().await;
        } else {
            caller.close().await;
        }
        result
    };
    let format = ReceiveFormat { language, ..ReceiveFormat::default() };
    let (sending, receiving) = tokio::join!(sending, receive(&accepted, store, &format, &received));
    let problems = |sum: &Sum| sum.0.lock().expect("nobody panics with it").problems;
    [
        sending.map(|()| problems(&sent.0)).map_err(|error| error.to_string()),
        receiving.map(|()| problems(&received)).map_err(|error| error.to_string()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_while_it_is_sent_is_named_and_not_put_in_place() {
    let bed = Bed::new();
    let path = bed.0.join("source/deep/large");
    let rewrite = || fs::write(&path, vec![7; contents().len()]).expect("it can be written");
    let grow = || fs::write(&path, vec![7; 2 * contents().len()]).expect("it can be written");
    let shrink = || fs::write(&path, "short").expect("it can be written");
    let changes: [&(dyn Fn() + Sync); 3] = [&rewrite, &grow, &shrink];
    for change in changes {
        fs::write(&path, contents()).expect("it can be written");
        let ends = pair(Transmission::Messages, "").await;
        let (listing, store) = (bed.source(), bed.store());
        let problems = transfer_with(ends, &listing, &store, Language::Punctual, change).await;
        assert_eq!(problems, [Ok(1), Ok(1)]);
        assert!(!bed.target("deep/large").exists());
        assert_eq!(fs::read_dir(bed.target("deep")).unwrap().count(), 0, "no mixture is kept");
        // Segments and streams of bytes cannot take a file back: the transfer ends.
        fs::write(&path, contents()).expect("it can be written");
        for (transmission, language) in [
            (Transmission::Messages, Language::Segments),
            (Transmission::Stream, Language::Punctual),
        ] {
            let ends = pair(transmission, "large").await;
            let listing = Listing::of(&path).unwrap();
            let [sent, received] = transfer_with(ends, &listing, &store, language, change).await;
            assert!(sent.unwrap_err().contains("the file changed while it was sent"));
            assert!(received.is_err(), "{received:?}");
            assert!(!bed.target("large").exists());
            fs::write(&path, contents()).expect("it can be written");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_vanish_or_come_meanwhile_are_named_at_both_ends() {
    let bed = Bed::new();
    let listing = bed.source();
    // The listing is older than the folder.
    fs::remove_file(bed.0.join("source/empty")).expect("it is there");
    let later = bed.0.join("source/later");
    let come = || fs::write(&later, "new").expect("it can be written");
    let ends = pair(Transmission::Messages, "").await;
    let problems = transfer_with(ends, &listing, &bed.store(), Language::Punctual, come).await;
    assert_eq!(problems, [Ok(2), Ok(2)]);
    assert_arrived(&bed, "deep/large");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_names_what_the_sender_could_not_send() {
    let bed = Bed::new();
    std::os::unix::fs::symlink("nowhere", bed.0.join("source/dangling")).unwrap();
    let ends = pair(Transmission::Messages, "").await;
    let problems =
        transfer_with(ends, &bed.source(), &bed.store(), Language::Punctual, || ()).await;
    assert_eq!(problems, [Ok(1), Ok(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_comes_and_leaves_is_no_transfer() {
    let bed = Bed::new();
    let named = ReceiveFormat { name: Some("clip.ts".to_owned()), ..ReceiveFormat::default() };
    for (transmission, stream_id, format) in [
        (Transmission::Messages, "clip.ts", ReceiveFormat::default()),
        (Transmission::Stream, "", named),
    ] {
        let (caller, accepted) = pair(transmission, stream_id).await;
        caller.close().await;
        let ended = receive(&accepted, &bed.store(), &format, &|_: Event<'_>| {}).await;
        assert!(matches!(ended, Err(Error::NothingCame)), "{ended:?}");
        assert_eq!(fs::read_dir(bed.target("")).unwrap().count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_a_byte_is_the_empty_file_that_its_caller_names() {
    let bed = Bed::new();
    let (caller, accepted) = pair(Transmission::Stream, "clip.ts").await;
    caller.close().await;
    let format = ReceiveFormat::default();
    receive(&accepted, &bed.store(), &format, &|_: Event<'_>| {}).await.unwrap();
    assert_eq!(fs::metadata(bed.target("clip.ts")).unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_leaves_without_hearing_answers_has_sent_its_file() {
    let bed = Bed::new();
    let (caller, accepted) = pair(Transmission::Messages, "").await;
    let fingerprint = Fingerprint([1; 8]);
    let options = SendOptions { in_order: true, ..SendOptions::default() };
    for message in [
        FromSender::Offer { size: 3, fingerprint, path: "a".into() },
        FromSender::Start { offer: 0, offset: 0 },
        FromSender::Data("abc".into()),
        FromSender::End(Sha256::digest(b"abc").into()),
        FromSender::Finish,
    ] {
        caller.send_with(message.to_bytes(), options).await.unwrap();
    }
    caller.close().await;
    accepted.closed().await;
    let format = ReceiveFormat::default();
    receive(&accepted, &bed.store(), &format, &|_: Event<'_>| {}).await.unwrap();
    assert_eq!(fs::read(bed.target("a")).unwrap(), b"abc");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_learns_no_digest_and_empties_no_part() {
    let bed = Bed::new();
    fs::create_dir(bed.target("deep")).unwrap();
    let part = bed.target(&part_of("deep", "large"));
    fs::write(&part, &contents()[..300_000]).unwrap();
    fs::write(bed.target("there"), contents()).unwrap();
    let (caller, accepted) = pair(Transmission::Messages, "").await;
    let stranger = async {
        let ask = async |message: FromSender| caller.send(message.to_bytes()).await.unwrap();
        let hear = async || FromReceiver::parse(caller.recv().await.unwrap().payload).unwrap();
        assert_eq!(hear().await, FromReceiver::Hello(Language::Punctual));
        // The size and the name of a file that is there, and those of a part.
        let fingerprint = Fingerprint([1; 8]);
        let size = contents().len() as u64;
        for path in ["there", "deep/large"] {
            ask(FromSender::Offer { size, fingerprint, path: path.into() }).await;
        }
        let answers = [hear().await, hear().await];
        ask(FromSender::Start { offer: 1, offset: 0 }).await;
        ask(FromSender::Data("forged".into())).await;
        ask(FromSender::Skip { offer: 1, reason: SkipReason::Failed }).await;
        ask(FromSender::Finish).await;
        assert_eq!(hear().await, FromReceiver::Bye);
        caller.close().await;
        answers
    };
    let (store, format) = (bed.store(), ReceiveFormat::default());
    let observer = |_: Event<'_>| {};
    let (answers, received) =
        tokio::join!(stranger, receive(&accepted, &store, &format, &observer));
    received.unwrap();
    let [FromReceiver::Answer(Answer::Refused(_)), FromReceiver::Answer(Answer::Part(0))] = answers
    else {
        panic!("{answers:?}");
    };
    assert_eq!(fs::read(part).unwrap(), contents()[..300_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_offers_are_counted_and_too_many_end_the_transfer() {
    let bed = Bed::new();
    let (caller, accepted) = pair(Transmission::Messages, "").await;
    let offer = |path: &'static str| {
        let (size, fingerprint) = (1, Fingerprint([1; 8]));
        FromSender::Offer { size, fingerprint, path: path.into() }.to_bytes()
    };
    let stranger = async {
        for _ in 0..5_000 {
            caller.send(offer("../evil")).await.unwrap();
            caller.try_recv().unwrap();
        }
        while caller.send(offer("good")).await.is_ok() {}
    };
    let received = Sum::default();
    let (store, format) = (bed.store(), ReceiveFormat::default());
    let receiving = async {
        let ended = receive(&accepted, &store, &format, &received).await;
        accepted.abort().await;
        ended
    };
    let ((), ended) = tokio::join!(stranger, receiving);
    assert!(matches!(ended, Err(Error::Unexpected(_))), "{ended:?}");
    assert_eq!(received.0.into_inner().unwrap().problems, 5_000);
}
