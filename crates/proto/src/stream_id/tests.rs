use proptest::prelude::*;

use super::*;

#[track_caller]
fn parsed(text: &str) -> StreamId {
    StreamId::parse(text).expect("a stream ID")
}

#[test]
fn every_key_of_the_standard_form_is_parsed() {
    let id = parsed("#!::r=live/a,m=publish,u=ann,s=token,h=host,t=file,user_x=1,acme_y=a=b");
    assert_eq!((id.resource(), id.user(), id.host()), (Some("live/a"), Some("ann"), Some("host")));
    assert_eq!((id.session(), id.secret()), (Some("token"), Some("token")));
    assert_eq!((id.mode(), id.content()), (AccessMode::Publish, ContentType::File));
    assert_eq!((id.other("user_x"), id.other("acme_y")), (Some("1"), Some("a=b")));
    assert_eq!(id.others().count(), 2);
    assert_eq!(parsed("#!::t=thumbnail").content(), ContentType::Other("thumbnail".to_owned()));
    assert_eq!(parsed("#!::m=bidirectional").mode(), AccessMode::Bidirectional);
    assert_eq!(parsed("#!::"), StreamId::default());
    assert_eq!(parsed("#!::u=").user(), Some(""));
}

#[test]
fn missing_keys_have_their_defaults() {
    let id = parsed("#!::r=live/a");
    assert_eq!((id.mode(), id.stated_mode()), (AccessMode::Request, None));
    assert_eq!((id.content(), id.secret(), id.query()), (ContentType::Stream, None, None));
    assert_eq!(parsed(""), StreamId::default());
}

#[test]
fn the_nested_form_keeps_inner_blocks_whole() {
    assert_eq!(parsed("#!:{u=ann,r=live/a}"), parsed("#!::u=ann,r=live/a"));
    let id = parsed("#!:{r=live/a,user_limits={rate=5,time={h=1}},m=publish}");
    assert_eq!(id.other("user_limits"), Some("{rate=5,time={h=1}}"));
    assert_eq!((id.resource(), id.mode()), (Some("live/a"), AccessMode::Publish));
}

#[test]
fn the_colon_form_has_user_password_and_query() {
    for (text, user, password, query) in [
        ("publish:live/a", None, None, None),
        ("publish:live/a:k=v", None, None, Some("k=v")),
        ("publish:live/a:ann:secret", Some("ann"), Some("secret"), None),
        ("publish:live/a:ann:secret:k=v", Some("ann"), Some("secret"), Some("k=v")),
        ("publish:/live/a?k=v", None, None, Some("k=v")),
    ] {
        let id = parsed(text);
        assert_eq!((id.resource(), id.mode()), (Some("live/a"), AccessMode::Publish), "{text}");
        assert_eq!((id.user(), id.secret(), id.query()), (user, password, query), "{text}");
    }
    assert_eq!(parsed("read:live/a").stated_mode(), Some(AccessMode::Request));
    assert_eq!(parsed("read:live/a#feedbackplay"), parsed("read:live/a"));
}

#[test]
fn the_slash_form_has_a_password() {
    let id = parsed("publish/camera/secret/with/slashes");
    assert_eq!((id.resource(), id.mode()), (Some("camera"), AccessMode::Publish));
    assert_eq!(id.secret(), Some("secret/with/slashes"));
    let id = parsed("play/camera");
    assert_eq!((id.resource(), id.stated_mode()), (Some("camera"), Some(AccessMode::Request)));
    assert_eq!(id.secret(), None);
}

#[test]
fn the_first_label_of_the_domain_form_is_the_mode() {
    let id = parsed("uplive.media.example/app/stream");
    assert_eq!((id.resource(), id.mode()), (Some("app/stream"), AccessMode::Publish));
    assert_eq!(id.host(), Some("uplive.media.example"));
    assert_eq!(parsed("live.media.example/app/s").stated_mode(), Some(AccessMode::Request));
    // With another number of segments or another label, it is a bare name.
    for text in ["live.example/stream", "live.example/a/b/c", "cdn.example/app/stream"] {
        assert_eq!(parsed(text), StreamId::new(text));
    }
}

#[test]
fn paths_and_bare_names_are_resources() {
    let id = parsed("/live/a?token=x&y");
    assert_eq!((id.resource(), id.query()), (Some("live/a"), Some("token=x&y")));
    for text in ["mystream", "日本の放送", "camera 1", "what?", "publish", "play/", "a:b:c", "# 5"]
    {
        let id = parsed(text);
        assert_eq!((id.resource(), id.stated_mode()), (Some(text), None));
    }
}

#[test]
fn errors_of_invalid_ids_name_the_fault_and_have_a_code() {
    let error = |text| StreamId::parse(text).expect_err("it is invalid");
    assert_eq!(error("#!"), StreamIdError::Syntax);
    assert_eq!(error("#!:u=a"), StreamIdError::Syntax);
    assert_eq!(error("#!:{u=a"), StreamIdError::Braces);
    assert_eq!(error("#!:{u=a}r=b}"), StreamIdError::Braces);
    assert_eq!(error("#!::ann"), StreamIdError::Pair("ann".to_owned()));
    assert_eq!(error("#!::=ann"), StreamIdError::Pair("=ann".to_owned()));
    assert_eq!(error("#!::u=a,r=x,u=b"), StreamIdError::Twice("u".to_owned()));
    assert_eq!(error("publish:a:b:c:d:e"), StreamIdError::Colons);
    let mode = error("#!::m=steal");
    assert_eq!(mode, StreamIdError::Mode("steal".to_owned()));
    assert_eq!(mode.reject_reason(), RejectReason::BAD_MODE);
    assert_eq!(StreamIdError::Colons.reject_reason(), RejectReason::BAD_REQUEST);
    assert!(mode.to_string().contains("`steal`"));
}

#[test]
fn the_standard_form_is_built_from_its_parts() {
    let id = StreamId::new("results.csv")
        .with_user("johnny")
        .with_mode(AccessMode::Publish)
        .with_content(ContentType::File)
        .with_session("x")
        .with_host("h")
        .with_other("user_a", "1");
    let text = "#!::u=johnny,r=results.csv,m=publish,h=h,s=x,t=file,user_a=1";
    assert_eq!(id.to_standard().as_deref(), Ok(text));
    assert_eq!(parsed(text), id);
    let error = |id: StreamId| id.to_standard().expect_err("it cannot be written");
    assert_eq!(error(StreamId::new("a,b")), StreamIdError::Unwritable("r".to_owned()));
    assert_eq!(error(parsed("/a?b")), StreamIdError::Unwritable("query".to_owned()));
    assert_eq!(error(StreamId::new("a").with_other("r", "b")), StreamIdError::Twice("r".into()));
    assert_eq!(error(StreamId::new("x".repeat(507))), StreamIdError::TooLong(513));
    // The contents of other forms can be written in the standard one.
    let translated = parsed("publish:live/a:ann:secret").to_standard();
    assert_eq!(translated.as_deref(), Ok("#!::u=ann,r=live/a,m=publish,s=secret"));
}

#[test]
fn secrets_stay_out_of_logs() {
    for text in ["#!::u=ann,s=hush", "publish:a:ann:hush", "publish/a/hush", "/a?token=hush"] {
        let shown = format!("{:?}", parsed(text));
        assert!(!shown.contains("hush"), "{shown}");
    }
}

fn value() -> impl Strategy<Value = Option<String>> {
    prop::option::of("[^,]{0,20}")
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_without_a_panic(text in ".*") {
        let _ = StreamId::parse(&text);
        let _ = StreamId::parse(&format!("#!::{text}"));
        let _ = StreamId::parse(&format!("#!:{{{text}}}"));
        let _ = StreamId::parse(&format!("publish:{text}"));
    }

    #[test]
    fn a_written_stream_id_parses_to_the_same(
        user in value(), resource in value(), session in value(), host in value(),
        mode in prop::option::of(prop::sample::select(vec![
            AccessMode::Request, AccessMode::Publish, AccessMode::Bidirectional,
        ])),
        content in prop::option::of(prop::sample::select(vec![
            ContentType::Stream, ContentType::File, ContentType::Other("x".to_owned()),
        ])),
        others in prop::collection::btree_map("user_[a-z]{1,8}", "[^,]{0,20}", 0..4),
    ) {
        let id = StreamId {
            user, resource, mode, session, host, content,
            others: others.into_iter().collect(),
            ..StreamId::default()
        };
        let text = id.to_standard().expect("no commas, and short");
        prop_assert_eq!(StreamId::parse(&text), Ok(id));
    }
}
