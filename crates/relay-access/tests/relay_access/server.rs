//! A small server of HTTP/1.1, which answers as a test wants and records the questions.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A status, a content type and a body.
    Now(u16, &'static str, String),
    /// Nothing for this time, then status 200.
    After(Duration),
    /// Bytes that are no HTTP.
    Garbage,
    /// A body without end.
    Endless,
    /// The connection ends.
    Close,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self::Now(status, "text/plain", String::new())
    }

    pub(crate) fn json(body: &impl ToString) -> Self {
        Self::Now(200, "application/json", body.to_string())
    }
}

/// A server on a port of this host.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    reply: RwLock<Reply>,
    questions: RwLock<Vec<String>>,
}

impl Server {
    pub(crate) async fn start(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared { reply: RwLock::new(reply), questions: RwLock::default() });
        let server = Self { port, shared: Arc::clone(&shared) };
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        server
    }

    pub(crate) fn url(&self, rest: &str) -> String {
        format!("http://127.0.0.1:{}{rest}", self.port)
    }

    /// Changes the answer.
    pub(crate) fn answer(&self, reply: Reply) {
        *self.shared.reply.write().expect("no test panicked") = reply;
    }

    /// The heads and bodies of all questions.
    pub(crate) fn questions(&self) -> Vec<String> {
        self.shared.questions.read().expect("no test panicked").clone()
    }
}

/// Answers the questions of one connection.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    while let Some(question) = question(&mut stream).await {
        shared.questions.write().expect("no test panicked").push(question);
        let reply = shared.reply.read().expect("no test panicked").clone();
        if !write(&mut stream, &reply).await {
            return;
        }
    }
}

/// Writes an answer; whether the connection goes on.
pub(crate) async fn write(stream: &mut (impl AsyncWrite + Unpin), reply: &Reply) -> bool {
    let text = match reply {
        Reply::Now(status, kind, body) => {
            let length = body.len();
            format!(
                "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        }
        Reply::After(time) => {
            tokio::time::sleep(*time).await;
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        Reply::Garbage => "\x01\x02\x03 nothing\r\n\r\n".to_owned(),
        Reply::Endless => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
            let mut is_open = stream.write_all(head.as_bytes()).await.is_ok();
            while is_open {
                is_open = stream.write_all(&[b' '; 4096]).await.is_ok();
            }
            return false;
        }
        Reply::Close => return false,
    };
    stream.write_all(text.as_bytes()).await.is_ok() && !matches!(reply, Reply::Garbage)
}

/// The next question of a connection: its head and its body.
pub(crate) async fn question(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next()?.trim().parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(length) => bytes.extend(&piece[..length]),
        }
    }
}
