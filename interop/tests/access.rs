//! Access control by a gate that asks somebody else, with callers that are other people's programs:
//! every usual form of stream ID, a passphrase for each user, and refusals.

#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use interop::{
    End, Folder, LibsrtPeer, Process, Program, Role, SrtLibrary, Tool, have_all, on_each_library,
};
use punctual::{AccessMode, Config, Listener, RejectReason};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use AccessMode::{Publish, Request};

/// A stream ID and its content: mode, resource, user, secret, host, query.
type Form = (&'static str, AccessMode, [Option<&'static str>; 5]);

const FORMS: &[Form] = &[
    (
        "#!::r=live/a,m=publish,u=ann,s=token,h=example.org,t=stream",
        Publish,
        [Some("live/a"), Some("ann"), Some("token"), Some("example.org"), None],
    ),
    ("#!:{u=ann,r=live/a}", Request, [Some("live/a"), Some("ann"), None, None, None]),
    (
        "publish:live/a:ann:secret",
        Publish,
        [Some("live/a"), Some("ann"), Some("secret"), None, None],
    ),
    ("read:live/a", Request, [Some("live/a"), None, None, None, None]),
    ("publish/a/secret", Publish, [Some("a"), None, Some("secret"), None, None]),
    ("play/a", Request, [Some("a"), None, None, None, None]),
    (
        "uplive.example.org/live/a",
        Publish,
        [Some("live/a"), None, None, Some("uplive.example.org"), None],
    ),
    ("/live/a?token=x", Request, [Some("live/a"), None, None, None, Some("token=x")]),
    ("mystream", Request, [Some("mystream"), None, None, None, None]),
];

#[tokio::test(flavor = "multi_thread")]
async fn stream_ids_of_srt_live_transmit_are_understood() {
    understood("stream_ids_of_srt_live_transmit", Program::SrtLiveTransmit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_ids_of_ffmpeg_are_understood() {
    understood("stream_ids_of_ffmpeg", Program::Ffmpeg).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_ids_of_gstreamer_are_understood() {
    understood("stream_ids_of_gstreamer", Program::GStreamer).await;
}

/// Lets a program call with one form after another, and checks the values that the gate gets.
async fn understood(test: &str, program: Program) {
    if !have_all(program.tools()) {
        return;
    }
    let folder = Folder::of(test);
    let (told, mut callers) = mpsc::unbounded_channel();
    let listener = listener().await;
    let port = listener.local_addr().port();
    let mut gate = listener.gate(move |caller| {
        let told = told.clone();
        async move {
            told.send(caller).expect("the test waits");
            Err(RejectReason::NOT_FOUND)
        }
    });
    let _serving = tokio::spawn(async move { gate.accept().await.map(drop) });
    for (n, (text, mode, said)) in FORMS.iter().enumerate() {
        let end = End::new(Role::Caller, port).with_stream_id(text);
        let (command, _) = program.receiver(&end, &folder.file("received"));
        let mut peer = Process::start(&format!("peer-{n}"), command, &folder);
        let caller = timeout(TIMEOUT, callers.recv()).await.expect("the peer calls");
        let caller = caller.expect("the gate is open");
        assert_eq!(caller.stream_id, *text);
        let id = caller.parsed_stream_id().expect("it is well formed");
        assert_eq!(id.mode(), *mode, "{text}");
        assert_eq!([id.resource(), id.user(), id.secret(), id.host(), id.query()], *said, "{text}");
        peer.wait_for_line("Application-defined rejection reason");
    }
}

on_each_library! { each_user_of_libsrt_has_a_passphrase_or_learns_why_not }

async fn each_user_of_libsrt_has_a_passphrase_or_learns_why_not(library: SrtLibrary) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let listener = listener().await;
    let port = listener.local_addr().port();
    let users = Users::open();
    let mut gate = listener.gate(move |caller| {
        let users = users.clone();
        async move {
            let id = caller.parsed_stream_id().map_err(|error| error.reject_reason())?;
            let user = id.user().ok_or(RejectReason::UNAUTHORIZED)?;
            let secret = users.passphrase(user).await.ok_or(RejectReason::FORBIDDEN)?;
            Config::default().with_passphrase(secret).map_err(|_| RejectReason::SERVER_ERROR)
        }
    });
    let serving = tokio::spawn(async move {
        let ann = gate.accept().await.expect("the listener is open");
        assert!(ann.stream_id().contains("u=ann"));
        let ben = gate.accept().await.expect("the listener is open");
        assert!(ben.stream_id().contains("u=ben"));
    });
    for (n, (id, passphrase, answer)) in [
        ("#!::u=ann,r=live", Some("the word of ann"), "connected"),
        ("#!::u=ben,r=live", Some("the word of ann"), "rejected: 10 "),
        ("#!::u=ann,r=live", None, "rejected: 11 "),
        ("#!::u=eve,r=live", Some("the word of ann"), "rejected: 1403 "),
        ("#!::r=live", Some("the word of ann"), "rejected: 1401 "),
        ("#!::m=steal", Some("the word of ann"), "rejected: 1405 "),
        ("#!::u=ben,r=live", Some("the word of ben"), "connected"),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = library.folder_of(&format!("each_user_of_libsrt-{n}"));
        let mut peer = LibsrtPeer::call(library, port, id, passphrase, &folder);
        peer.wait_for_line(answer);
    }
    timeout(TIMEOUT, serving).await.expect("both are let in").expect("in this order");
}

/// Decides on callers: a task that gets its questions as messages, as a database would.
#[derive(Clone)]
struct Users(mpsc::UnboundedSender<(String, oneshot::Sender<Option<&'static str>>)>);

impl Users {
    fn open() -> Self {
        let (ask, mut questions) = mpsc::unbounded_channel::<(String, oneshot::Sender<_>)>();
        tokio::spawn(async move {
            while let Some((user, answer)) = questions.recv().await {
                let secret = match user.as_str() {
                    "ann" => Some("the word of ann"),
                    "ben" => Some("the word of ben"),
                    _ => None,
                };
                // The asker may have given up.
                let _ = answer.send(secret);
            }
        });
        Self(ask)
    }

    async fn passphrase(&self, user: &str) -> Option<&'static str> {
        let (answer, answered) = oneshot::channel();
        self.0.send((user.to_owned(), answer)).ok()?;
        answered.await.ok()?
    }
}

async fn listener() -> Listener {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Listener::bind(local, Config::default()).await.expect("a port is free")
}

/// Far more than it takes.
const TIMEOUT: Duration = Duration::from_secs(20);
