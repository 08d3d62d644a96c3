//! A relay from its start to its end.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use punctual_program::exit::Failure;
use punctual_program::output::message;
use punctual_relay_config::{
    ConfigProblem, Configuration, Environment, HttpSettings, Sources, check,
};
use punctual_relay_http::{App, Certificate, Limits, Settings, metrics_router, router, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::api::Api;
use crate::args::RunArgs;
use crate::demo;
use crate::hub::Hub;
use crate::operation::Operation;
use crate::rights::Rights;

/// Runs a relay until a signal ends it.
pub(crate) async fn run(args: RunArgs) -> Result<(), Failure> {
    let sources = Sources::read(args.config.as_deref(), Environment::of_process());
    let sources = sources.map_err(|all| told(&all))?;
    let loaded = check(&sources).map_err(|all| told(&all))?;
    let configuration = loaded.configuration.clone();
    let rights = Arc::new(Rights::new(&configuration).map_err(Failure::usage)?);
    let hub = Arc::new(Hub::new(configuration.clone()));
    let operation = Arc::new(Operation::new(sources, loaded, Arc::clone(&rights)));
    operation.begin(&hub).await?;
    tokio::spawn(Arc::clone(&hub).keep_time());
    let (close, closed) = watch::channel(false);
    let api = Arc::new(Api::new(Arc::clone(&hub), Arc::clone(&operation)));
    let http = listen_http(&configuration.http, api, rights, &closed).await?;
    let clip = if args.demo { Some(demo::publish(&hub)?) } else { None };
    greet(&configuration, &operation, http, args.demo);
    warn_small_buffer();
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    heed_signals(&hub, &operation).await?;
    drop(clip);
    let _ = close.send(true);
    Ok(())
}

/// Waits for the end, and does what signals ask for until then.
async fn heed_signals(hub: &Arc<Hub>, operation: &Arc<Operation>) -> Result<(), Failure> {
    let mut hangup = signal(SignalKind::hangup())?;
    let (mut term, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    // A task of its own, so that a long reload does not silence it.
    tokio::spawn(watchdog());
    loop {
        tokio::select! {
            _ = hangup.recv() => reload(hub, operation).await,
            () = ends(&mut term, &mut interrupt) => {
                let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
                if operation.is_draining() || hub.connections.of(None).is_empty() {
                    return Ok(());
                }
                message("punctual-relay: draining; a second signal ends at once\n");
                operation.drain(hub);
            }
            () = operation.stop.told() => return Ok(()),
        }
    }
}

async fn ends(term: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
}

async fn reload(hub: &Arc<Hub>, operation: &Arc<Operation>) {
    let now = sd_notify::NotifyState::monotonic_usec_now();
    let _ = now.map(|now| sd_notify::notify(&[sd_notify::NotifyState::Reloading, now]));
    if let Err(fault) = operation.reload(hub).await {
        tracing::error!("the configuration is not read again, and nothing changes: {fault}");
    }
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
}

/// Tells systemd again and again that the relay lives, if systemd asks for it.
async fn watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    loop {
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
        tokio::time::sleep(limit / 3).await;
    }
}

/// Serves the API and the page, and metrics at their own address if they have one. Returns the
/// address of the page.
async fn listen_http(
    settings: &HttpSettings,
    api: Arc<Api>,
    rights: Arc<Rights>,
    closed: &watch::Receiver<bool>,
) -> Result<Option<SocketAddr>, Failure> {
    let proxies = settings.trusted_proxies.clone();
    let trusts = move |ip: IpAddr| proxies.iter().any(|network| network.contains(ip));
    let own = Settings {
        origins: origins(settings),
        trusts_proxy: Arc::new(trusts),
        ..Settings::default()
    };
    let app = App::new(api, rights, own);
    let certificate = match (&settings.tls.certificate, &settings.tls.key) {
        (Some(certificate), Some(key)) => Some(
            Certificate::from_files(certificate, key)
                .map_err(|it| Failure::usage(it.to_string()))?,
        ),
        _ => None,
    };
    let mut page = None;
    for (address, routes) in
        [(settings.listen, router(&app)), (settings.metrics, metrics_router(&app))]
    {
        let Some(address) = address else { continue };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::runtime(format!("the address {address} for HTTP cannot be used: {error}"))
        })?;
        page.get_or_insert(listener.local_addr()?);
        let (certificate, mut closed) = (certificate.clone(), closed.clone());
        let stop = async move { drop(closed.wait_for(|closed| *closed).await) };
        tokio::spawn(serve(listener, routes, certificate, Limits::default(), stop));
    }
    Ok(page.filter(|_| settings.listen.is_some()))
}

/// The origins whose pages may use the API: those of the configuration, and this machine by its
/// name.
fn origins(settings: &HttpSettings) -> Vec<String> {
    let mut origins = settings.origins.clone();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let scheme = if settings.tls.certificate.is_some() { "https" } else { "http" };
    for port in [settings.listen, settings.metrics].into_iter().flatten().map(|it| it.port()) {
        if !name.is_empty() {
            origins.push(format!("{scheme}://{name}:{port}"));
            origins.push(format!("{scheme}://{name}.local:{port}"));
        }
    }
    origins
}

/// Prints what to paste into encoders, players and a browser.
fn greet(
    configuration: &Configuration,
    operation: &Operation,
    http: Option<SocketAddr>,
    has_demo: bool,
) {
    let mut text = String::new();
    if let Some(address) = operation.srt_address() {
        let host = if address.ip().is_unspecified() { own_address() } else { address.ip() };
        let host = SocketAddr::new(host, address.port());
        let stream = if has_demo { "demo" } else { "live" };
        text.push_str(&format!(
            "publish   srt://{host}?streamid=publish:live        (OBS: Server; FFmpeg: -f mpegts)\n\
             play      srt://{host}?streamid=read:{stream}\n"
        ));
    }
    for it in operation.listeners().iter().filter(|it| it.protocol == "srt+quic") {
        let hash = it.certhash.as_ref().map_or_else(String::new, |it| format!("?certhash={it}"));
        text.push_str(&format!("listening {}://{}{hash}\n", it.protocol, it.address));
    }
    if let Some(address) = http {
        let scheme = if configuration.http.tls.certificate.is_some() { "https" } else { "http" };
        text.push_str(&format!("page      {scheme}://{address}/\n"));
    }
    message(text);
}

/// The address of this machine for others, as far as it is known; else `127.0.0.1`.
fn own_address() -> IpAddr {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let probe = std::net::UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| {
        // No packet is sent: the system only says which address it would use.
        socket.connect(("192.0.2.1", 9))?;
        socket.local_addr()
    });
    probe.map_or(loopback, |address| address.ip())
}

/// Warns if the system gives less room for received packets than many streams need.
fn warn_small_buffer() {
    let Ok(text) = std::fs::read_to_string("/proc/sys/net/core/rmem_max") else { return };
    if text.trim().parse::<u64>().is_ok_and(|bytes| bytes < WANTED_BUFFER) {
        tracing::warn!(
            "the system gives a socket {} bytes for received packets, and bursts of many streams \
             need more: sudo sysctl -w net.core.rmem_max={WANTED_BUFFER}",
            text.trim()
        );
    }
}

/// All problems of a configuration as one failure.
pub(crate) fn told(all: &[ConfigProblem]) -> Failure {
    let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    Failure::usage(lines.join("\n"))
}

/// The receive buffer of a port that serves many streams.
const WANTED_BUFFER: u64 = 8 << 20;

/// The time that a check of a running relay may take.
pub(crate) const ASK: Duration = Duration::from_secs(5);
