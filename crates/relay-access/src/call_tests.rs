use proptest::prelude::*;

use super::*;
use crate::secret::Secret;

/// The call of a listener without defaults.
fn call(text: &str) -> Result<Call, CallError> {
    Call::parse(&text.into(), &CallDefaults::default())
}

const PUBLISH: Action = Action::Publish;
const READ: Action = Action::Read;

/// Stream IDs of the field: the text, and its action, stream, user and secret or token.
type Row = (&'static str, Action, &'static str, Option<&'static str>, Option<&'static str>);

const FIELD: &[Row] = &[
    // SRT's standard form, as MediaMTX, srtrelay, SRS, GStreamer's users and Haivision have it.
    ("#!::r=live/cam,m=publish,u=ann,s=hush", PUBLISH, "live/cam", Some("ann"), Some("hush")),
    ("#!::m=publish,s=hush,u=ann,r=live/cam", PUBLISH, "live/cam", Some("ann"), Some("hush")),
    ("#!::r=live/cam", READ, "live/cam", None, None),
    ("#!::h=srs.example,r=live/cam,m=publish", PUBLISH, "live/cam", None, None),
    ("#!::h=live/cam,m=publish", PUBLISH, "live/cam", None, None),
    ("#!::r=live/cam?secret=x&token=hush,m=publish", PUBLISH, "live/cam", None, Some("hush")),
    ("#!::r=live/cam,token=hush", READ, "live/cam", None, Some("hush")),
    ("#!::r=/live/cam/,m=request,t=stream", READ, "live/cam", None, None),
    ("#!:{u=ann,r=live/cam,m=publish}", PUBLISH, "live/cam", Some("ann"), None),
    // Blackmagic's encoders: unknown keys first.
    (
        "#!::bmd_uuid=0d3a-11,bmd_name=Web Presenter 4K,r=live/cam,m=publish,u=ann",
        PUBLISH,
        "live/cam",
        Some("ann"),
        None,
    ),
    // MediaMTX.
    ("publish:live/cam", PUBLISH, "live/cam", None, None),
    ("read:live/cam", READ, "live/cam", None, None),
    ("read:live/cam#feedbackplay", READ, "live/cam", None, None),
    ("publish:live/cam:ann:hush", PUBLISH, "live/cam", Some("ann"), Some("hush")),
    ("publish:live/cam:ann:hush:k=v", PUBLISH, "live/cam", Some("ann"), Some("hush")),
    ("publish:live/cam:user=ann&pass=hush", PUBLISH, "live/cam", Some("ann"), Some("hush")),
    ("read:live/cam:token=hu%2Bsh", READ, "live/cam", None, Some("hu+sh")),
    ("read:live/cam?token=hush", READ, "live/cam", None, Some("hush")),
    // srtrelay.
    ("publish/cam/hush", PUBLISH, "cam", None, Some("hush")),
    ("play/cam", READ, "cam", None, None),
    // srt-live-server.
    ("uplive.sls.example/live/cam", PUBLISH, "live/cam", None, None),
    ("live.sls.example/live/cam", READ, "live/cam", None, None),
    ("uplive.sls.example/live/cam?token=hush", PUBLISH, "live/cam", None, Some("hush")),
    // gosrt's server, and datarhei Core.
    ("publish:/live/cam?token=hush", PUBLISH, "live/cam", None, Some("hush")),
    ("/live/camera%201?token=hush", READ, "live/camera 1", None, Some("hush")),
    ("cam,mode:publish,token:hush", PUBLISH, "cam", None, Some("hush")),
    ("cam,mode:request", READ, "cam", None, None),
    ("cam,token:hush", READ, "cam", None, Some("hush")),
    // OvenMediaEngine, plain and as a whole URL.
    ("default/app/cam", READ, "default/app/cam", None, None),
    ("srt://ome.example:9999/app/cam?token=hush", READ, "app/cam", None, Some("hush")),
    ("srt%3A%2F%2Fome.example%3A9999%2Fapp%2Fcam", READ, "app/cam", None, None),
    ("srt://relay.example:8890?streamid=publish:cam", PUBLISH, "cam", None, None),
    ("srt://ann:hush@ome.example/app/cam", READ, "app/cam", Some("ann"), Some("hush")),
    // Nimble, and bare names.
    ("live/cam", READ, "live/cam", None, None),
    ("cam", READ, "cam", None, None),
    ("cam?token=hush", READ, "cam", None, Some("hush")),
    ("publish:live/cam:ann:hu?x=hush", PUBLISH, "live/cam", Some("ann"), Some("hu?x=hush")),
    ("cam?user=ann&password=hush", READ, "cam", Some("ann"), Some("hush")),
    ("really?", READ, "really?", None, None),
    ("日本の放送", READ, "日本の放送", None, None),
    ("camera 1\0\0", READ, "camera 1", None, None),
    // Encoded as a whole, by a program that encodes twice.
    ("%23!%3A%3Ar%3Dlive%2Fcam%2Cm%3Dpublish", PUBLISH, "live/cam", None, None),
    ("%23!::r=live/cam,m=publish,token=hush", PUBLISH, "live/cam", None, Some("hush")),
    ("publish%3Alive%2fcam", PUBLISH, "live/cam", None, None),
];

#[test]
fn stream_ids_of_the_field_mean_their_calls() {
    for &(text, action, stream, user, secret) in FIELD {
        let call = call(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((call.action(), call.stream().as_str()), (action, stream), "{text}");
        let credentials = call.credentials();
        assert_eq!(credentials.user(), user, "{text}");
        assert_eq!(credentials.any_token().map(Secret::expose), secret, "{text}");
    }
}

#[test]
fn no_stream_id_of_the_field_shows_its_secret() {
    for &(text, _, _, _, secret) in FIELD.iter().filter(|row| row.4.is_some()) {
        let call = call(text).expect("a call");
        let all = format!("{} {call:?} {}", call.shown(), shown(&text.into()));
        assert!(!all.contains("hush") && !all.contains("hu%2B"), "{secret:?} in {all}");
    }
    // Where no call comes about, nothing but the form says what is secret.
    for text in ["#!::r=a,s=hush,m=steal", "publish:a:ann:hush:x:y", "#!::r=a,s=x,hush"] {
        let error = call(text).expect_err("no call");
        assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
    }
}

#[test]
fn a_listener_fills_in_what_the_stream_id_leaves_open() {
    let defaults = CallDefaults {
        stream: Some(StreamName::new("studio").expect("a name")),
        action: Some(Action::Publish),
    };
    for (text, action, stream) in [
        ("", PUBLISH, "studio"),
        ("cam", PUBLISH, "cam"),
        ("#!::u=ann", PUBLISH, "studio"),
        ("#!::m=request", READ, "studio"),
        ("read:cam", READ, "cam"),
    ] {
        let call = Call::parse(&text.into(), &defaults).expect("a call");
        assert_eq!((call.action(), call.stream().as_str()), (action, stream), "{text}");
    }
}

#[test]
fn a_time_makes_a_read_a_playback_and_backup_is_a_wish_of_publishers() {
    let playback = call("#!::r=live/cam,at=2026-11-27T20:15:00").expect("a call");
    assert_eq!((playback.action(), playback.at()), (Action::Playback, Some("2026-11-27T20:15:00")));
    let playback = call("read:live/cam?at=2026-11-27T20:15:00").expect("a call");
    assert_eq!((playback.action(), playback.at()), (Action::Playback, Some("2026-11-27T20:15:00")));
    let backup = call("#!::r=live/cam,m=publish,backup=1,at=x").expect("a call");
    assert_eq!((backup.action(), backup.is_backup()), (PUBLISH, true));
    assert!(!call("publish:live/cam?backup=0").expect("a call").is_backup());
}

#[test]
fn refused_stream_ids_say_what_is_wrong_and_have_a_code() {
    for (text, part, code) in [
        ("", "names no stream", RejectReason::BAD_REQUEST),
        ("#!::m=publish", "names no stream", RejectReason::BAD_REQUEST),
        ("#!::r=cam,m=steal", "`steal`", RejectReason::BAD_MODE),
        ("#!::r=cam,m=bidirectional", "`bidirectional`", RejectReason::BAD_MODE),
        ("#!::r=cam,x", "key=value", RejectReason::BAD_REQUEST),
        ("#!:r=cam", "must continue with", RejectReason::BAD_REQUEST),
        ("publish:../etc/passwd", "between slashes", RejectReason::BAD_REQUEST),
        ("read:a\nb", "not allowed", RejectReason::BAD_REQUEST),
        ("publish:a:b:c:d:e", "MODE:PATH", RejectReason::BAD_REQUEST),
    ] {
        let error = call(text).expect_err("no call");
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert_eq!(error.code(), code, "{text}");
    }
    let bytes = RawStreamId::from(b"caf\xE9".to_vec());
    let error = Call::parse(&bytes, &CallDefaults::default()).expect_err("no text");
    assert_eq!(error, CallError::NotText);
}

proptest! {
    #[test]
    fn any_text_is_a_call_or_an_error_and_its_shown_form_is_one_line(text in ".{0,80}") {
        for start in ["", "#!::", "#!:{", "publish:", "play/", "srt://", "a,token:", "%3A"] {
            let raw = RawStreamId::from(format!("{start}{text}"));
            prop_assert!(!shown(&raw).contains('\n'));
            if let Ok(call) = Call::parse(&raw, &CallDefaults::default()) {
                prop_assert!(!call.shown().contains('\n'));
                prop_assert!(StreamName::new(call.stream().as_str()).is_ok());
            }
        }
    }
}
