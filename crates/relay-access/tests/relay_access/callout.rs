//! Decisions by a server of the operator's.

use std::time::Duration;

use punctual_proto::RejectReason;
use punctual_relay_access::{
    Access, AccessConfig, CalloutConfig, CalloutFormat, Refusal, Secret, User,
};
use punctual_units::Bitrate;
use serde_json::json;

use crate::server::{Reply, Server};
use crate::{PUBLISH, access, decide, pattern, refused, user};

const SHORT: Duration = Duration::from_millis(300);

fn asking(url: &str, timeout: Duration, format: CalloutFormat) -> Access {
    let url = url.parse().expect("a URL");
    let callout = Some(CalloutConfig { url, format, timeout });
    let users = vec![user("ann", "hush").with_permission(PUBLISH, pattern("*"))];
    access(AccessConfig { users, callout, ..AccessConfig::default() })
}

fn json_asking(server: &Server) -> Access {
    asking(&server.url("/auth"), Duration::from_secs(10), CalloutFormat::MediaMtx)
}

#[tokio::test]
async fn a_callout_admits_by_its_status_and_gets_all_fields() {
    let server = Server::start(Reply::status(204)).await;
    let access = json_asking(&server);
    let admitted = decide(&access, "publish:live/cam:bob:secret:k=v").await.expect("an admission");
    assert_eq!((admitted.user(), admitted.stream().as_str()), (Some("bob"), "live/cam"));
    let question = server.questions().pop().expect("a question");
    assert!(question.starts_with("POST /auth HTTP/1.1\r\n"), "{question}");
    assert!(question.to_lowercase().contains("content-type: application/json"), "{question}");
    let (_, body) = question.split_once("\r\n\r\n").expect("a body");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!((&body["user"], &body["password"]), (&json!("bob"), &json!("secret")));
    assert_eq!((&body["ip"], &body["id"]), (&json!("192.0.2.1"), &json!("7")));
}

#[tokio::test]
async fn users_of_the_file_are_not_told_to_the_callout() {
    let server = Server::start(Reply::status(403)).await;
    let access = json_asking(&server);
    assert!(decide(&access, "publish:a:ann:hush").await.is_ok());
    assert!(server.questions().is_empty());
    // Those whom the file does not know are.
    assert_eq!(refused(decide(&access, "publish:a").await).reason(), Refusal::Callout);
    assert_eq!(server.questions().len(), 1);
}

#[tokio::test]
async fn the_form_of_nginx_has_a_login_in_its_address() {
    let server = Server::start(Reply::status(200)).await;
    let url = format!("http://relay:pass@127.0.0.1:{}/on_publish?x=1", server.port);
    let access = asking(&url, Duration::from_secs(10), CalloutFormat::Nginx);
    assert!(decide(&access, "publish/cam/secret").await.is_ok());
    let question = server.questions().pop().expect("a question");
    assert!(question.starts_with("POST /on_publish?x=1 HTTP/1.1\r\n"), "{question}");
    assert!(
        question.to_lowercase().contains("authorization: basic cmvsyxk6cgfzcw=="),
        "{question}"
    );
    assert!(
        question.ends_with(
            "call=publish&app=stream&name=cam&username=&auth=secret&\
                                addr=192.0.2.1&clientid=7"
        ),
        "{question}"
    );
    assert!(!format!("{access:?}").contains("pass@"), "{access:?}");
}

#[tokio::test]
async fn an_answer_sets_the_terms_of_the_connection() {
    let body = json!({
        "passphrase": "correct horse", "lifetime": 60, "max-bitrate": "6Mbps",
        "stream": "live/other", "user": "guest",
    });
    let server = Server::start(Reply::json(&body)).await;
    let admitted = decide(&json_asking(&server), "read:live/cam").await.expect("an admission");
    assert_eq!((admitted.user(), admitted.stream().as_str()), (Some("guest"), "live/other"));
    assert_eq!(admitted.passphrase().map(Secret::expose), Some("correct horse"));
    assert_eq!(admitted.lifetime(), Some(Duration::from_secs(60)));
    assert_eq!(admitted.max_bitrate(), Some(Bitrate::from_mbps(6)));
    assert!(!format!("{admitted:?}").contains("horse"), "{admitted:?}");
}

#[tokio::test]
async fn each_status_refuses_with_its_code_and_the_reason_given() {
    let server = Server::start(Reply::status(200)).await;
    let access = json_asking(&server);
    for (status, reason, code) in [
        (401, Refusal::Callout, RejectReason::UNAUTHORIZED),
        (403, Refusal::Callout, RejectReason::FORBIDDEN),
        (404, Refusal::Callout, RejectReason::NOT_FOUND),
        (409, Refusal::Callout, RejectReason::CONFLICT),
        (418, Refusal::Callout, RejectReason::FORBIDDEN),
        (429, Refusal::Callout, RejectReason::OVERLOAD),
        (302, Refusal::CalloutFailed, RejectReason::BAD_GATEWAY),
        (500, Refusal::CalloutFailed, RejectReason::BAD_GATEWAY),
    ] {
        let body = r#"{"reason": "no\nplan"}"#.replace('\n', "\\n");
        server.answer(Reply::Now(status, "application/json", body));
        let refused = refused(decide(&access, "read:a").await);
        assert_eq!((refused.reason(), refused.code()), (reason, code), "{status}");
        let text = format!("/auth answered {status}: no\\nplan");
        assert!(refused.text().ends_with(&text), "{refused}");
    }
}

#[tokio::test]
async fn a_server_that_is_slow_wrong_or_endless_refuses_with_a_reason() {
    let server = Server::start(Reply::status(200)).await;
    let access = asking(&server.url("/auth?key=hush"), SHORT, CalloutFormat::MediaMtx);
    let whole = r#"{"passphrase": "hush"}"#.to_owned();
    for (reply, code, part) in [
        (
            Reply::After(Duration::from_secs(60)),
            RejectReason::GATEWAY_TIMEOUT,
            "no answer came from http://127.0.0.1",
        ),
        (Reply::Garbage, RejectReason::BAD_GATEWAY, "the callout failed"),
        (Reply::Close, RejectReason::BAD_GATEWAY, "the callout failed"),
        (Reply::Endless, RejectReason::BAD_GATEWAY, "has more than 16384 bytes"),
        (Reply::json(&"x".repeat(20_000)), RejectReason::BAD_GATEWAY, "has more than 16384 bytes"),
        (Reply::json(&"{"), RejectReason::BAD_GATEWAY, "is no JSON at line 1"),
        (
            Reply::Now(200, "text/plain", whole),
            RejectReason::BAD_GATEWAY,
            "`passphrase` has 4 bytes, not 10 to 80",
        ),
    ] {
        server.answer(reply.clone());
        let refused = refused(decide(&access, "read:a").await);
        assert_eq!((refused.reason(), refused.code()), (Refusal::CalloutFailed, code), "{reply:?}");
        assert!(refused.text().contains(part), "{reply:?}: {refused}");
        assert!(!refused.text().contains("hush"), "{refused}");
    }
    server.answer(Reply::status(200));
    assert!(decide(&access, "read:a").await.is_ok(), "a later answer counts again");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_systems_words() {
    let access = asking("http://127.0.0.1:1/auth", SHORT, CalloutFormat::MediaMtx);
    let refused = refused(decide(&access, "read:a").await);
    let text = "the callout failed: http://127.0.0.1:1/auth: Connection refused";
    assert_eq!(refused.text(), text);
}

#[tokio::test]
async fn a_slow_answer_delays_no_other_caller() {
    let server = Server::start(Reply::After(Duration::from_secs(60))).await;
    let access = json_asking(&server);
    tokio::select! {
        biased;
        _ = decide(&access, "read:a") => panic!("the server is slow"),
        decision = async {
            while server.questions().is_empty() {
                tokio::task::yield_now().await;
            }
            decide(&access, "publish:a:ann:hush").await
        } => assert!(decision.is_ok()),
    }
}

#[tokio::test]
async fn no_more_callers_wait_than_there_are_places() {
    let server = Server::start(Reply::After(Duration::from_secs(60))).await;
    let access = std::sync::Arc::new(json_asking(&server));
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..1025 {
        let access = std::sync::Arc::clone(&access);
        waiting.spawn(async move { decide(&access, "read:a").await });
    }
    let first = waiting.join_next().await.expect("a caller").expect("no panic");
    let refused = refused(first);
    assert_eq!((refused.reason(), refused.code()), (Refusal::Overload, RejectReason::OVERLOAD));
    assert!(server.questions().len() <= 64, "{}", server.questions().len());
    // Callers that give up free their places.
    waiting.shutdown().await;
    server.answer(Reply::status(200));
    assert!(decide(&access, "read:a").await.is_ok());
}

#[tokio::test]
async fn the_word_of_the_same_server_stays() {
    let server = Server::start(Reply::status(200)).await;
    let admitted = decide(&json_asking(&server), "read:a").await.expect("an admission");
    assert!(json_asking(&server).would_still_admit(&admitted));
    let other = asking("http://127.0.0.1:1/auth", SHORT, CalloutFormat::MediaMtx);
    assert!(!other.would_still_admit(&admitted));
    let closed = crate::of_users(vec![User::new("any").with_permission(PUBLISH, pattern("b"))]);
    assert!(!closed.would_still_admit(&admitted));
}
