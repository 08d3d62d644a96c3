//! Decisions about the API, the page and the metrics.

use std::net::IpAddr;
use std::time::Duration;

use punctual_relay_access::{
    AccessConfig, Action, Credentials, Password, Refusal, Role, Token, User,
};

use crate::{access, key, of_users, pattern, user};

fn at(address: &str) -> IpAddr {
    address.parse().expect("an address")
}

fn token_user(name: &str, role: Role) -> User {
    let token = Password::new(format!("token-of-{name}")).expect("a token");
    User::new(name).with_token(token).with_permission(Action::Api(role), pattern("*"))
}

#[tokio::test]
async fn without_rules_this_host_may_everything_and_others_nothing() {
    let access = access(AccessConfig::default());
    for here in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        let operator = access.operator(&Credentials::default(), at(here)).await;
        assert_eq!(operator.expect("an operator").role(), Some(Role::Admin), "{here}");
    }
    let refused = access.operator(&Credentials::default(), at("192.0.2.1")).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!((refused.reason(), refused.http_status()), (Refusal::NoCredentials, 401));
}

#[tokio::test]
async fn bearer_tokens_and_passwords_have_roles() {
    let access = of_users(vec![
        token_user("desk", Role::Read),
        token_user("switcher", Role::Operate),
        user("ann", "hush").with_permission(Action::Api(Role::Admin), pattern("*")),
        user("prometheus", "x").with_permission(Action::Metrics, pattern("*")),
        user("cam", "y").with_permission(Action::Publish, pattern("*")),
    ]);
    let role = async |header: &str| {
        let credentials = Credentials::from_authorization(header);
        access.operator(&credentials, at("192.0.2.1")).await
    };
    let desk = role("Bearer token-of-desk").await.expect("an operator");
    assert_eq!((desk.user(), desk.role()), (Some("desk"), Some(Role::Read)));
    assert!(desk.may(Action::Metrics) && !desk.may(Action::Api(Role::Operate)));
    let switcher = role("Bearer token-of-switcher").await.expect("an operator");
    assert!(switcher.may(Action::Api(Role::Operate)) && !switcher.may(Action::Api(Role::Admin)));
    let ann = role("Basic YW5uOmh1c2g=").await.expect("an operator");
    assert!(ann.may(Action::Api(Role::Admin)) && !ann.may(Action::Publish));
    let prometheus = role("Basic cHJvbWV0aGV1czp4").await.expect("an operator");
    assert!(prometheus.may(Action::Metrics) && prometheus.role().is_none());
    for (header, reason, status) in [
        ("Bearer guess", Refusal::UnknownUser, 401),
        ("Basic YW5uOmd1ZXNz", Refusal::WrongPassword, 401),
        ("Basic Y2FtOnk=", Refusal::NoRight, 403),
        ("", Refusal::NoCredentials, 401),
    ] {
        let refused = role(header).await.expect_err("a refusal");
        assert_eq!((refused.reason(), refused.http_status()), (reason, status), "{refused}");
    }
    // With users of the API, this host is an address like others.
    assert!(access.operator(&Credentials::default(), at("127.0.0.1")).await.is_err());
}

#[tokio::test]
async fn tickets_and_signed_tokens_give_the_rights_they_name() {
    let users = vec![token_user("switcher", Role::Operate)];
    let access = access(AccessConfig { users, signing_keys: vec![key()], ..Default::default() });
    let operator = access.operator(&Credentials::token("token-of-switcher"), at("192.0.2.1")).await;
    let operator = operator.expect("an operator");
    let ticket = access.api_ticket(&operator, Duration::from_secs(60)).expect("a ticket");
    let credentials = Credentials::from_query(&format!("token={ticket}"));
    let again = access.operator(&credentials, at("192.0.2.7")).await.expect("an operator");
    assert_eq!((again.user(), again.role()), (Some("switcher"), Some(Role::Operate)));

    let sign = |token: Token| Credentials::token(token.sign(&key()).expect("a token"));
    let (now, hour) = (crate::now(), Duration::from_secs(3600));
    let viewer = sign(Token::new(pattern("*"), now + hour).allow(Action::Read));
    let refused = access.operator(&viewer, at("192.0.2.1")).await.expect_err("a refusal");
    assert_eq!(refused.reason(), Refusal::NoRight);
    let old = sign(Token::new(pattern("*"), now - hour).allow(Action::Api(Role::Admin)));
    let refused = access.operator(&old, at("192.0.2.1")).await.expect_err("a refusal");
    assert_eq!(refused.reason(), Refusal::ExpiredToken);
}
