//! The relays that are measured: their programs, their configurations, and requests by HTTP.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::Result;
use crate::probe::Usage;
use crate::program::{self, Folder, Running};

/// A relay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Server {
    Punctual,
    Srtrelay,
    Mediamtx,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Server {
    /// All.
    pub(super) const ALL: [Self; 3] = [Self::Punctual, Self::Srtrelay, Self::Mediamtx];

    /// The name of the program.
    const fn name(self) -> &'static str {
        match self {
            Self::Punctual => "punctual-relay",
            Self::Srtrelay => "srtrelay",
            Self::Mediamtx => "mediamtx",
        }
    }

    /// The stream IDs of publishers and of viewers; `{}` stands for the number of the stream.
    pub(super) const fn stream_ids(self) -> [&'static str; 2] {
        match self {
            Self::Punctual => ["#!::r=live/{},m=publish", "#!::r=live/{},m=request"],
            Self::Srtrelay => ["publish/live{}", "play/live{}"],
            Self::Mediamtx => ["publish:live{}", "read:live{}"],
        }
    }

    /// The configuration with SRT at this port, and HTTP at the two after it.
    fn configuration(self, port: u16) -> String {
        let (api, metrics) = (port + 1, port + 2);
        match self {
            // The limits are those of a relay that serves many.
            Self::Punctual => format!(
                "[[listen]]\nsrt = \"127.0.0.1:{port}\"\nmax-callers = 20000\n\
                 calls-per-second = 100000\n[http]\nlisten = \"127.0.0.1:{api}\"\n"
            ),
            // The backlog of 10 would refuse viewers that call at the same time.
            Self::Srtrelay => format!(
                "[app]\naddresses = [\"127.0.0.1:{port}\"]\nlatency = 120\nlistenBacklog = 100\n\
                 [api]\naddress = \"127.0.0.1:{api}\"\n[auth.static]\nallow = [\"*\"]\n"
            ),
            // Protocols that nobody uses here are off.
            Self::Mediamtx => format!(
                "logLevel: warn\nrtsp: no\nrtmp: no\nhls: no\nwebrtc: no\nmoq: no\n\
                 srtAddress: 127.0.0.1:{port}\napi: yes\napiAddress: 127.0.0.1:{api}\n\
                 metrics: yes\nmetricsAddress: 127.0.0.1:{metrics}\npaths:\n  all_others:\n"
            ),
        }
    }

    /// The requests of each second: the distance of the port from that of SRT, and the path. An
    /// open page of Punctual asks for the same lists.
    const fn requests(self) -> &'static [(u16, &'static str)] {
        match self {
            Self::Punctual => &[(1, "/metrics"), (1, "/v1/streams"), (1, "/v1/server")],
            Self::Srtrelay => &[(1, "/metrics"), (1, "/streams"), (1, "/sockets")],
            Self::Mediamtx => &[(2, "/metrics"), (1, "/v3/paths/list"), (1, "/v3/srtconns/list")],
        }
    }
}

/// The programs of the relays.
pub(super) struct Servers {
    punctual: PathBuf,
    srtrelay: Option<PathBuf>,
    mediamtx: Option<PathBuf>,
}

impl Servers {
    /// Builds Punctual's program, and looks for the others.
    ///
    /// # Errors
    ///
    /// The program cannot be built.
    pub(super) fn find() -> Result<Self> {
        let punctual = program::build_relay()?;
        let peer = |server: Server| {
            let found = program::installed(server.name());
            if found.is_none() {
                eprintln!("relay: {server} is in no folder of PATH, so it is not measured");
            }
            found
        };
        let (srtrelay, mediamtx) = (peer(Server::Srtrelay), peer(Server::Mediamtx));
        Ok(Self { punctual, srtrelay, mediamtx })
    }

    /// Whether this relay can be measured here.
    pub(super) const fn has(&self, server: Server) -> bool {
        self.program(server).is_some()
    }

    const fn program(&self, server: Server) -> Option<&PathBuf> {
        match server {
            Server::Punctual => Some(&self.punctual),
            Server::Srtrelay => self.srtrelay.as_ref(),
            Server::Mediamtx => self.mediamtx.as_ref(),
        }
    }

    /// Starts a relay at this port, and waits until it answers.
    ///
    /// # Errors
    ///
    /// It does not answer within 10 s.
    pub(super) async fn start(&self, server: Server, port: u16) -> Result<RunningServer> {
        let program = self.program(server).ok_or_else(|| format!("{server} is missing"))?;
        let folder = Folder::new(server.name())?;
        let file = folder.path().join("configuration");
        fs::write(&file, server.configuration(port))?;
        let file = file.display().to_string();
        let arguments = match server {
            Server::Punctual => vec!["--quiet".to_owned(), "--config".to_owned(), file],
            Server::Srtrelay => vec!["-config".to_owned(), file],
            Server::Mediamtx => vec![file],
        };
        let running = RunningServer {
            process: Running::start(program, &arguments)?,
            server,
            port,
            scraping: None,
            _folder: folder,
        };
        let begun = Instant::now();
        while let Err(failure) = running.scrape().await {
            if begun.elapsed() > START {
                return Err(format!("{server} does not answer: {failure}").into());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(running)
    }
}

/// A relay that runs.
pub(super) struct RunningServer {
    process: Running,
    server: Server,
    port: u16,
    scraping: Option<JoinHandle<()>>,
    _folder: Folder,
}

impl RunningServer {
    /// Its port for SRT.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// The CPU time and memory that it has used so far.
    pub(super) fn usage(&self) -> Result<Usage> {
        self.process.usage()
    }

    /// Asks for metrics and lists once a second from now on.
    pub(super) fn scrape_each_second(&mut self) {
        let (server, port) = (self.server, self.port);
        self.scraping = Some(tokio::spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_secs(1));
            loop {
                tick.tick().await;
                if let Err(failure) = scrape(server, port).await {
                    eprintln!("relay: {server}: {failure}");
                }
            }
        }));
    }

    async fn scrape(&self) -> Result<()> {
        scrape(self.server, self.port).await
    }

    /// The answer to a request to Punctual's API.
    pub(super) async fn ask(&self, path: &str) -> Result<serde_json::Value> {
        Ok(serde_json::from_str(&get(self.port + 1, path).await?)?)
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if let Some(scraping) = &self.scraping {
            scraping.abort();
        }
    }
}

async fn scrape(server: Server, port: u16) -> Result<()> {
    for (distance, path) in server.requests() {
        get(port + distance, path).await?;
    }
    Ok(())
}

/// The body of the answer to `GET path` at this port.
async fn get(port: u16, path: &str) -> Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let request =
            format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(ANSWER, exchange).await.map_err(|_| format!("{path}: no answer"))??;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("an answer without a head")?;
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(format!("{path}: {}", head.lines().next().unwrap_or_default()).into()),
    }
}

/// Time for a relay to start.
const START: Duration = Duration::from_secs(10);
/// Time for an answer.
const ANSWER: Duration = Duration::from_secs(5);
