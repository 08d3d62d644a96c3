//! Commands beside the relay itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use punctual_program::exit::Failure;
use punctual_program::output::{message, print};
use punctual_relay_access::{Action, SigningKey, Token, Url, UrlError, Web};
use punctual_relay_config::{Environment, explain, load};

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

/// Asks a running relay whether it is ready: the one at `url`, or the one with this configuration.
///
/// # Errors
///
/// It is not, or does not answer.
pub(crate) async fn health(url: Option<String>, config: Option<PathBuf>) -> Result<(), Failure> {
    let (address, web) = match url {
        Some(url) => at_url(&url)?,
        None => of_configuration(config.as_deref())?,
    };
    let (status, text) = web
        .read()
        .await
        .map_err(|error| Failure::runtime(format!("{address} does not answer: {error}")))?;
    print(format!("{}\n", text.trim_end()))?;
    match status.is_success() {
        true => Ok(()),
        false => Err(Failure::runtime(format!("the relay at {address} is not ready"))),
    }
}

/// The address of the relay at a URL, of which the path does not matter, and a client that asks
/// whether it is ready.
fn at_url(url: &str) -> Result<(String, Web), Failure> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let address = rest.split('/').next().unwrap_or(rest);
    let web = Web::new(readiness(scheme, address)?, ASK);
    Ok((address.to_owned(), web.map_err(|error| Failure::runtime(error.to_string()))?))
}

/// The same for the relay with this configuration, on this machine.
fn of_configuration(file: Option<&Path>) -> Result<(String, Web), Failure> {
    let loaded = load(file, Environment::of_process()).map_err(|all| told(&all))?;
    let http = &loaded.configuration.http;
    let mut address = http.listen.or(http.metrics).ok_or_else(|| {
        Failure::usage("the configuration has no `http.listen`, so that nobody can ask the relay")
    })?;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    let address = address.to_string();
    let web = match &http.tls.certificate {
        Some(file) => Web::of_certificate(readiness("https", &address)?, ASK, file),
        None => Web::new(readiness("http", &address)?, ASK),
    };
    Ok((address, web.map_err(|error| Failure::usage(error.to_string()))?))
}

fn readiness(scheme: &str, address: &str) -> Result<Url, Failure> {
    let url = format!("{scheme}://{address}/readyz").parse();
    url.map_err(|error: UrlError| Failure::usage(error.to_string()))
}
