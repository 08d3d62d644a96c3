//! Bare QUIC datagrams, Punctual's and quinn's: a sending and a receiving process of each.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use punctual::quic::{
    ClientTls, Identity, Protocol, QuicConfig, QuicConnection, QuicListener, ServerTls, Trust,
};
use punctual::{Carriage, PortConfig, Timer, now};
use serde::{Deserialize, Serialize};
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::Result;

/// Datagrams at a constant rate over one connection on loopback.
#[derive(Args, Clone, Debug)]
pub(crate) struct Datagrams {
    /// UDP port of the listener on 127.0.0.1.
    #[arg(long)]
    pub(crate) port: u16,
    /// Datagrams a second.
    #[arg(long)]
    pub(crate) rate: f64,
    /// The time to send for, seconds.
    #[arg(long)]
    pub(crate) seconds: f64,
    /// quinn in place of Punctual.
    #[arg(long)]
    pub(crate) quinn: bool,
    /// The file of the listener's certificate, by which quinn's caller verifies it.
    #[arg(long)]
    pub(crate) certificate: PathBuf,
}

/// The number of datagrams that one end has sent or received.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct DatagramReport {
    pub(crate) datagrams: u64,
}

impl Datagrams {
    /// The flags that say this.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--port={}", self.port),
            format!("--rate={}", self.rate),
            format!("--seconds={}", self.seconds),
            format!("--certificate={}", self.certificate.display()),
        ];
        flags.extend(self.quinn.then(|| "--quinn".to_owned()));
        flags
    }

    /// The number of datagrams that are sent in this time.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floor is meant")]
    pub(crate) fn count(&self, time: Duration) -> u64 {
        (self.rate * time.as_secs_f64()) as u64
    }

    /// The number of all datagrams.
    pub(crate) fn total(&self) -> u64 {
        self.count(Duration::from_secs_f64(self.seconds))
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }
}

/// Connects, prints `started`, sends, and prints the report.
pub(crate) fn send(datagrams: &Datagrams) -> Result<()> {
    crate::runtime()?.block_on(async {
        let sent = if datagrams.quinn {
            let (_endpoint, connection) = quinn_caller(datagrams).await?;
            println!("started");
            let send = async |datagram| Ok(connection.send_datagram_wait(datagram).await?);
            let sent = paced(datagrams, send).await?;
            sleep(REST).await;
            connection.close(0_u32.into(), b"");
            // The peer hears of it.
            sleep(REST).await;
            sent
        } else {
            let client = Some(ClientTls::new(Trust::Insecure, &[Protocol::Datagrams]));
            let port = port(QuicConfig { client, ..QuicConfig::default() }, 0);
            let connection = QuicConnection::connect(port, datagrams.address()).await?;
            println!("started");
            let sent =
                paced(datagrams, async |datagram| Ok(connection.send(datagram).await?)).await?;
            sleep(REST).await;
            connection.close().await;
            sent
        };
        report(sent)
    })
}

/// Listens, prints `ready`, counts the datagrams of one connection, and prints the report.
pub(crate) fn receive(datagrams: &Datagrams) -> Result<()> {
    crate::runtime()?.block_on(async {
        let mut received = 0;
        if datagrams.quinn {
            let endpoint = quinn_listener(datagrams)?;
            println!("ready");
            let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
            while connection.read_datagram().await.is_ok() {
                received += 1;
            }
        } else {
            let identity = Identity::self_signed(&[NAME])?;
            let server = Some(ServerTls::new(identity, &[Protocol::Datagrams]));
            let port = port(QuicConfig { server, ..QuicConfig::default() }, datagrams.port);
            let listener = QuicListener::bind(port).await?;
            println!("ready");
            let connection = listener.accept().await?;
            while connection.recv().await.is_ok() {
                received += 1;
            }
        }
        report(received)
    })
}

fn report(datagrams: u64) -> Result<()> {
    println!("{}", serde_json::to_string(&DatagramReport { datagrams })?);
    Ok(())
}

/// Sends the datagrams that are due each millisecond. Returns their number.
async fn paced(
    datagrams: &Datagrams,
    mut send: impl AsyncFnMut(Bytes) -> Result<()>,
) -> Result<u64> {
    let payload = Bytes::from_static(&[7; PAYLOAD]);
    let mut timer = Timer::new()?;
    let (start, length) = (now(), Duration::from_secs_f64(datagrams.seconds));
    let (mut sent, mut wake) = (0, start);
    while sent < datagrams.total() && now() < start + length {
        let due = datagrams.count(now() - start).min(sent + AT_ONCE).min(datagrams.total());
        while sent < due {
            send(payload.clone()).await?;
            sent += 1;
        }
        wake += Duration::from_millis(1);
        if wake > now() {
            timer.sleep_until(wake).await;
        } else {
            yield_now().await;
        }
    }
    Ok(sent)
}

/// A port with this configuration of QUIC.
fn port(quic: QuicConfig, port: u16) -> PortConfig {
    let local = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    PortConfig { local, carriage: Carriage::Quic(Arc::new(quic)), ..PortConfig::default() }
}

async fn quinn_caller(datagrams: &Datagrams) -> Result<(quinn::Endpoint, quinn::Connection)> {
    let certificate = std::fs::read(&datagrams.certificate)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.into())?;
    let mut config = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(quinn_transport());
    let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(datagrams.address(), NAME)?.await?;
    Ok((endpoint, connection))
}

fn quinn_listener(datagrams: &Datagrams) -> Result<quinn::Endpoint> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    std::fs::write(&datagrams.certificate, made.cert.der())?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let chain = vec![made.cert.der().clone()];
    let mut config = quinn::ServerConfig::with_single_cert(chain, key.into())?;
    config.transport_config(quinn_transport());
    Ok(quinn::Endpoint::server(config, datagrams.address())?)
}

/// quinn's defaults, with the congestion control that Punctual uses for bare datagrams.
fn quinn_transport() -> Arc<quinn::TransportConfig> {
    let mut transport = quinn::TransportConfig::default();
    let bbr = quinn::congestion::BbrConfig::default();
    transport.congestion_controller_factory(Arc::new(bbr));
    Arc::new(transport)
}

const NAME: &str = "localhost";
/// Bytes of a datagram. It fits into the smallest QUIC packets.
const PAYLOAD: usize = 1_100;
/// Datagrams after which the connection's driver, which runs on the same thread, gets its turn.
const AT_ONCE: u64 = 256;
/// Longer than datagrams need to arrive.
const REST: Duration = Duration::from_millis(300);
