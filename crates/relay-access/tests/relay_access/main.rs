//! Decisions about callers: by users of a file, tokens, JSON web tokens and callouts, the last two
//! beside a real server of HTTP.

#![expect(clippy::disallowed_methods, reason = "tokens end by the time of day")]

mod callout;
mod https;
mod jwt;
mod operator;
mod server;
mod users;

use std::time::SystemTime;

use punctual_relay_access::{
    Access, AccessConfig, Action, Call, CallDefaults, Caller, Decision, Password, Refused,
    SigningKey, StreamPattern, TicketKey, User,
};

fn now() -> SystemTime {
    SystemTime::now()
}

fn access(config: AccessConfig) -> Access {
    Access::new(config, TicketKey::random()).expect("valid rules")
}

fn of_users(users: Vec<User>) -> Access {
    access(AccessConfig { users, ..AccessConfig::default() })
}

fn user(name: &str, password: &str) -> User {
    User::new(name).with_password(Password::new(password).expect("a password"))
}

fn pattern(text: &str) -> StreamPattern {
    text.parse().expect("a pattern")
}

fn key() -> SigningKey {
    SigningKey::new("0123456789abcdef").expect("long enough")
}

fn call(stream_id: &str) -> Call {
    Call::parse(&stream_id.into(), &CallDefaults::default()).expect("a call")
}

fn caller(address: &str) -> Caller {
    Caller::srt(address.parse().expect("an address"), "7")
}

async fn decide(access: &Access, stream_id: &str) -> Decision {
    access.decide(&call(stream_id), &caller("192.0.2.1")).await
}

#[track_caller]
fn refused(decision: Decision) -> Refused {
    decision.expect_err("a refusal")
}

const PUBLISH: Action = Action::Publish;
const READ: Action = Action::Read;
