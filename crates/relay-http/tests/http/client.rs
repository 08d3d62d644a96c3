//! The service on a port of this machine, and requests to it, byte by byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_relay_http::{Access, App, Certificate, Limits, Settings, router, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::stand_in::{ByToken, Open, StandIn};

/// The time after which a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running service.
pub(crate) struct Service {
    pub(crate) relay: Arc<StandIn>,
    pub(crate) address: SocketAddr,
    /// Dropped to end the service.
    _stop: oneshot::Sender<()>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Service {
    /// Everybody may do everything.
    pub(crate) async fn open() -> Self {
        Self::start(Arc::new(Open), Settings::default(), Limits::default(), None).await
    }

    /// Tokens decide.
    pub(crate) async fn by_token() -> Self {
        Self::start(Arc::new(ByToken), Settings::default(), Limits::default(), None).await
    }

    pub(crate) async fn start(
        access: Arc<dyn Access>,
        settings: Settings,
        limits: Limits,
        certificate: Option<Certificate>,
    ) -> Self {
        let relay = StandIn::new();
        let app = App::new(Arc::clone(&relay) as _, access, settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            let _ = stopped.await;
        };
        tokio::spawn(serve(listener, router(&app), certificate, limits, stopped));
        Self { relay, address, _stop: stop }
    }

    /// A connection to the port.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.request("GET", path, "", "").await
    }

    /// A request with more header lines, each ended by `\r\n`.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Reply {
        let host = match headers.to_ascii_lowercase().contains("host: ") {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        self.exchange(request.as_bytes()).await
    }

    /// Sends these bytes, and reads until the service ends the connection.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect().await;
        // The service may have ended the connection already.
        let _ = stream.write_all(bytes).await;
        read_reply(&mut stream).await
    }
}

/// Reads an answer until the end of the connection.
pub(crate) async fn read_reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the service answers");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { whole(body) } else { body.to_owned() };
    Reply { status, head: head.to_ascii_lowercase(), body }
}

/// The text of chunks.
fn whole(mut chunks: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|it| !it.is_empty()) else { break };
        text += chunk;
        chunks = rest.get(size + 2..).unwrap_or_default();
    }
    text
}

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
