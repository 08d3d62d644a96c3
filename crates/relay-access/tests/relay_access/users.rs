//! Decisions by the users of a file, and by signed tokens.

use std::time::Duration;

use punctual_proto::RejectReason;
use punctual_relay_access::{
    Access, AccessConfig, AccessError, Action, Password, Refusal, SigningKey, TicketKey, Token,
    User,
};

use crate::{PUBLISH, READ, access, call, caller, decide, key, of_users, pattern, refused, user};

const HOUR: Duration = Duration::from_secs(3600);

/// The users of the tests: a publisher, an encoder that its address proves, a token, and viewers of
/// one folder.
fn studio() -> Access {
    of_users(vec![
        User::new("any").with_permission(READ, pattern("open/*")),
        user("ann", "hush")
            .with_permission(PUBLISH, pattern("live/*"))
            .with_permission(READ, pattern("live/*")),
        User::new("encoder")
            .with_networks(vec!["10.0.0.0/8".parse().expect("a network")])
            .with_permission(PUBLISH, pattern("studio")),
        user("eve", "hush")
            .with_networks(vec!["10.9.0.0/16".parse().expect("a network")])
            .with_permission(PUBLISH, pattern("home")),
        User::new("screen")
            .with_token(Password::new("long-token").expect("a token"))
            .with_permission(READ, pattern("~^live/")),
    ])
}

#[tokio::test]
async fn users_of_the_file_may_do_what_their_rights_say() {
    let access = studio();
    for (stream_id, address, user) in [
        ("publish:live/cam:ann:hush", "192.0.2.1", Some("ann")),
        ("#!::r=live/cam,u=ann,s=hush", "192.0.2.1", Some("ann")),
        ("read:open/cam", "192.0.2.1", None),
        ("read:open/cam:nobody:x", "192.0.2.1", None),
        ("publish:studio", "10.1.2.3", Some("encoder")),
        ("publish:studio", "::ffff:10.1.2.3", Some("encoder")),
        ("#!::r=live/cam,s=long-token", "192.0.2.1", Some("screen")),
        ("read:live/cam?token=long-token", "192.0.2.1", Some("screen")),
    ] {
        let admitted = access.decide(&call(stream_id), &caller(address)).await;
        assert_eq!(admitted.expect("an admission").user(), user, "{stream_id}");
    }
}

#[tokio::test]
async fn refusals_say_why_and_have_a_code_but_no_secret() {
    let access = studio();
    for (stream_id, reason, code, text) in [
        (
            "publish:live/cam",
            Refusal::NoCredentials,
            RejectReason::UNAUTHORIZED,
            "no user, password or token was given, which publish of `live/cam` needs",
        ),
        (
            "publish:live/cam:bob:hush",
            Refusal::UnknownUser,
            RejectReason::UNAUTHORIZED,
            "there is no user `bob`",
        ),
        (
            "publish:live/cam:ann:guess",
            Refusal::WrongPassword,
            RejectReason::UNAUTHORIZED,
            "the password of `ann` is wrong",
        ),
        (
            "publish:other:ann:hush",
            Refusal::NoRight,
            RejectReason::FORBIDDEN,
            "the user `ann` has no right to publish of `other`",
        ),
        (
            "publish:studio",
            Refusal::NoCredentials,
            RejectReason::UNAUTHORIZED,
            "no user, password or token was given, which publish of `studio` needs",
        ),
        (
            "publish:home:eve:hush",
            Refusal::Address,
            RejectReason::FORBIDDEN,
            "the user `eve` is not let in from 192.0.2.1",
        ),
        (
            "#!::r=live/cam,s=guess",
            Refusal::UnknownUser,
            RejectReason::UNAUTHORIZED,
            "the token or password is that of no user",
        ),
    ] {
        let refused = refused(decide(&access, stream_id).await);
        let shown = format!("{refused:?} {refused}");
        assert!(!shown.contains("guess") && !shown.contains("hush"), "{shown}");
        assert_eq!((refused.reason(), refused.text()), (reason, text), "{stream_id}");
        assert_eq!(refused.code(), code, "{stream_id}");
    }
}

#[tokio::test]
async fn without_rules_everybody_may_and_one_rule_ends_that() {
    let open = access(AccessConfig::default());
    for stream_id in ["publish:live", "read:live", "#!::r=live,at=2026-11-27T20:15:00"] {
        assert_eq!(decide(&open, stream_id).await.expect("an admission").user(), None);
    }
    assert!(open.is_open());
    // A user of the API is no rule about streams.
    let operator = user("ann", "hush").with_permission(Action::Metrics, pattern("*"));
    assert!(of_users(vec![operator]).is_open());
    let keys = access(AccessConfig { signing_keys: vec![key()], ..AccessConfig::default() });
    assert!(!keys.is_open() && decide(&keys, "read:live").await.is_err());
}

#[tokio::test]
async fn slow_hashes_verify_on_another_thread_and_are_remembered() {
    let hash = "argon2:$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHQ$";
    let hash = format!("{hash}{}", argon2_of("hush"));
    let access = of_users(vec![user("ann", &hash).with_permission(READ, pattern("*"))]);
    for _ in 0..2 {
        assert!(decide(&access, "read:a:ann:hush").await.is_ok());
        let wrong = refused(decide(&access, "read:a:ann:other").await);
        assert_eq!(wrong.reason(), Refusal::WrongPassword);
    }
}

/// The hash of the password with the salt `saltsalt` and little cost, without its head.
fn argon2_of(password: &str) -> String {
    use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher, Version};
    let params = Params::new(1024, 1, 1, None).expect("parameters");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash: PasswordHash =
        argon2.hash_password_with_salt(password.as_bytes(), b"saltsalt").expect("a hash");
    hash.to_string().rsplit('$').next().expect("a last part").to_owned()
}

#[tokio::test]
async fn a_signed_token_admits_wherever_a_stream_id_has_room_for_a_secret() {
    let access = access(AccessConfig { signing_keys: vec![key()], ..AccessConfig::default() });
    let now = crate::now();
    let token = Token::new(pattern("live/a"), now + HOUR).allow(READ).with_user("ann");
    let text = token.sign(&key()).expect("a token");
    for stream_id in [
        format!("#!::r=live/a,s={text}"),
        format!("#!::r=live/a,m=request,token={text}"),
        format!("read:live/a:x:{text}"),
        format!("read:live/a?token={text}"),
        format!("live/a?token={text}"),
    ] {
        let admitted = decide(&access, &stream_id).await.expect("an admission");
        assert_eq!(admitted.user(), Some("ann"), "{stream_id}");
        assert!(!call(&stream_id).shown().contains("pt1-"), "{}", call(&stream_id).shown());
    }
    let reason = async |stream_id: String| refused(decide(&access, &stream_id).await).reason();
    assert_eq!(reason(format!("publish:live/a:x:{text}")).await, Refusal::NoRight);
    assert_eq!(reason(format!("read:live/b:x:{text}")).await, Refusal::NoRight);
    let old = Token::new(pattern("live/a"), now - HOUR).allow(READ).sign(&key()).expect("a token");
    assert_eq!(reason(format!("read:live/a:x:{old}")).await, Refusal::ExpiredToken);
    let forged = Token::new(pattern("live/a"), now + HOUR).allow(READ);
    let forged = forged.sign(&SigningKey::random()).expect("a token");
    assert_eq!(reason(format!("read:live/a:x:{forged}")).await, Refusal::WrongToken);
    // Half a token may be a password, so that users of the file are asked.
    assert_eq!(reason("read:live/a:x:pt1-abc".to_owned()).await, Refusal::UnknownUser);
}

#[tokio::test]
async fn a_ticket_admits_a_player_that_cannot_set_headers() {
    let access = studio();
    let admitted = decide(&access, "read:live/cam:ann:hush").await.expect("an admission");
    let ticket = access.ticket(&admitted, HOUR).expect("a ticket");
    let again = decide(&access, &format!("read:live/cam?token={ticket}")).await;
    assert_eq!(again.expect("an admission").user(), Some("ann"));
    assert!(decide(&access, &format!("publish:live/cam?token={ticket}")).await.is_err());
    assert!(decide(&access, &format!("read:live/b?token={ticket}")).await.is_err());
    // The name of a stream is no pattern.
    let open = crate::access(AccessConfig::default());
    let admitted = decide(&open, "read:a*").await.expect("an admission");
    let wide = open.ticket(&admitted, HOUR).expect("a ticket");
    assert!(decide(&open, &format!("#!::r=a*,token={wide}")).await.is_ok());
    assert!(decide(&open, &format!("#!::r=ab,token={wide}")).await.is_err());
    // Another process has another key.
    assert!(decide(&studio(), &format!("read:live/cam?token={ticket}")).await.is_err());
}

#[tokio::test]
async fn a_publisher_may_replace_another_of_the_same_user_or_the_same_rule() {
    let studio = studio();
    let ann = decide(&studio, "publish:live/cam:ann:hush").await.expect("an admission");
    assert!(ann.may_replace(&ann.clone()));
    let encoder = studio.decide(&call("publish:studio"), &caller("10.0.0.1")).await;
    assert!(!encoder.expect("an admission").may_replace(&ann));
    let open = access(AccessConfig::default());
    let [one, two] = [decide(&open, "publish:a").await, decide(&open, "publish:a").await];
    assert!(one.expect("an admission").may_replace(&two.expect("an admission")));

    let tokens = access(AccessConfig { signing_keys: vec![key()], ..Default::default() });
    let publisher = async |streams: &str| {
        let token = Token::new(pattern(streams), crate::now() + HOUR).allow(PUBLISH);
        let text = token.sign(&key()).expect("a token");
        decide(&tokens, &format!("publish:live/a:x:{text}")).await.expect("an admission")
    };
    assert!(publisher("live/a").await.may_replace(&publisher("live/a").await));
    assert!(!publisher("live/a").await.may_replace(&publisher("live/*").await));
}

#[tokio::test]
async fn changed_rules_end_callers_that_lost_their_right() {
    let old = studio();
    let ann = decide(&old, "publish:live/cam:ann:hush").await.expect("an admission");
    let viewer = decide(&old, "read:open/cam").await.expect("an admission");
    assert!(old.would_still_admit(&ann) && old.would_still_admit(&viewer));
    // The same entry, read again.
    assert!(studio().would_still_admit(&ann));
    let publisher = |password: &str, streams: &str| {
        of_users(vec![user("ann", password).with_permission(PUBLISH, pattern(streams))])
    };
    assert!(publisher("hush", "live/cam").would_still_admit(&ann));
    assert!(!publisher("hush", "other").would_still_admit(&ann), "the right is gone");
    assert!(!publisher("changed", "live/cam").would_still_admit(&ann), "the password changed");
    assert!(!publisher("hush", "live/cam").would_still_admit(&viewer));
    let all = of_users(vec![User::new("any").with_permission(PUBLISH, pattern("*"))]);
    assert!(all.would_still_admit(&ann), "everybody may");

    let keys = |keys| access(AccessConfig { signing_keys: keys, ..Default::default() });
    let token = Token::new(pattern("a"), crate::now() + HOUR).allow(READ);
    let text = token.sign(&key()).expect("a token");
    let holder = decide(&keys(vec![key()]), &format!("read:a?token={text}")).await;
    let holder = holder.expect("an admission");
    let other = SigningKey::random();
    assert!(keys(vec![other.clone(), key()]).would_still_admit(&holder));
    assert!(!keys(vec![other]).would_still_admit(&holder));
    let open = decide(&access(AccessConfig::default()), "read:a").await;
    assert!(!old.would_still_admit(&open.expect("an admission")));
}

#[tokio::test]
async fn a_ticket_ends_with_the_right_of_its_user() {
    let ticket_key = TicketKey::random();
    let with = |users| {
        let config = AccessConfig { users, ..AccessConfig::default() };
        Access::new(config, ticket_key.clone()).expect("valid rules")
    };
    let ann = || user("ann", "hush").with_permission(READ, pattern("*"));
    let access = with(vec![ann()]);
    let admitted = decide(&access, "read:a:ann:hush").await.expect("an admission");
    let ticket = access.ticket(&admitted, HOUR).expect("a ticket");
    let player = decide(&access, &format!("read:a?token={ticket}")).await.expect("an admission");
    assert!(with(vec![ann()]).would_still_admit(&player));
    assert!(
        !with(vec![user("bob", "x").with_permission(READ, pattern("*"))])
            .would_still_admit(&player)
    );
}

#[test]
fn rules_that_cannot_be_are_refused() {
    let config = AccessConfig { users: vec![User::new("ann")], ..AccessConfig::default() };
    let error = Access::new(config, TicketKey::random()).expect_err("no rules");
    assert!(matches!(error, AccessError::User(_)) && error.to_string().contains("`ann`"));
}
