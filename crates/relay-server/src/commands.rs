//! Commands beside the relay itself.

use std::path::Path;

use punctual_program::exit::Failure;
use punctual_program::output::{message, print};
use punctual_relay_access::{Action, SigningKey, Token};
use punctual_relay_config::{Environment, explain, load};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::args::TokenArgs;
use crate::start::{ASK, told};
use crate::wall;

/// Checks a configuration, or explains a key.
pub(crate) fn check(file: Option<&Path>, key: Option<&str>) -> Result<(), Failure> {
    if let Some(key) = key {
        return print(explain(key).map_err(Failure::usage)?);
    }
    let loaded = load(file, Environment::of_process());
    loaded.map_err(|all| told(&all))?;
    let name = file.map_or("the default configuration".to_owned(), |it| it.display().to_string());
    print(format!("{name} is valid\n"))
}

/// Prints the configuration in force.
pub(crate) fn print_config(file: Option<&Path>) -> Result<(), Failure> {
    let loaded = load(file, Environment::of_process());
    print(loaded.map_err(|all| told(&all))?.print())
}

/// Makes a signed token.
pub(crate) fn token(args: &TokenArgs) -> Result<(), Failure> {
    let text = std::fs::read_to_string(&args.key_file).map_err(|error| {
        Failure::usage(format!("the key file {} cannot be read: {error}", args.key_file.display()))
    })?;
    let keys = SigningKey::list(&text).map_err(|error| Failure::usage(error.to_string()))?;
    let key = keys.first().ok_or_else(|| Failure::usage("the key file has no key"))?;
    let streams = args.stream.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let end = wall::now() + args.lifetime;
    let mut token = Token::new(streams, end);
    for (is_wanted, action) in [
        (args.publish, Action::Publish),
        (args.read, Action::Read),
        (args.playback, Action::Playback),
    ] {
        if is_wanted {
            token = token.allow(action);
        }
    }
    if let Some(user) = &args.user {
        token = token.with_user(user);
    }
    let signed = token.sign(key).map_err(|error| Failure::usage(error.to_string()))?;
    print(format!("{signed}\n"))
}

/// Turns a configuration of `MediaMTX` into ours.
pub(crate) fn import(file: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))?;
    let imported = punctual_relay_config::import(&text).map_err(Failure::usage)?;
    for left in &imported.left {
        let advice =
            if left.advice.is_empty() { String::new() } else { format!("; {}", left.advice) };
        message(format!("{}: {}{advice}\n", left.key, left.reason));
    }
    print(imported.toml)
}

/// Asks a running relay whether it is ready.
///
/// # Errors
///
/// It is not, or does not answer.
pub(crate) async fn health(url: String) -> Result<(), Failure> {
    let address = url.strip_prefix("http://").unwrap_or(&url);
    let address = address.split('/').next().unwrap_or(address).to_owned();
    let asked = tokio::time::timeout(ASK, ask(&address)).await;
    let answer = asked
        .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
        .map_err(|error| Failure::runtime(format!("{address} does not answer: {error}")))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let is_ready = head.split(' ').nth(1) == Some("200");
    print(format!("{}\n", body.trim_end()))?;
    match is_ready {
        true => Ok(()),
        false => Err(Failure::runtime(format!("the relay at {address} is not ready"))),
    }
}

async fn ask(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(65_536).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
