use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

use crate::program::punctual_relay;
use crate::{Folder, Process};

/// A relay that runs on ports of its own choice.
#[derive(Debug)]
pub struct Relay {
    process: Process,
    config: PathBuf,
    /// The port of SRT.
    pub port: u16,
    http: SocketAddr,
}

/// The answer to a request: its status, and its body.
pub type HttpAnswer = (u16, Vec<u8>);

impl Relay {
    /// Starts a relay whose configuration has these lines beside its listener and its API.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(folder: &Folder, lines: &str) -> Self {
        let config = folder.file("relay.toml");
        fs::write(&config, full(lines)).expect("a file can be written in the test's folder");
        let mut command = Command::new(punctual_relay());
        command.arg("--config").arg(&config).current_dir(folder.file("."));
        let mut process = Process::start("relay", command, folder);
        let play = process.wait_for_line("play ");
        let port = play.split(['?', ':']).nth(2).and_then(|port| port.parse().ok());
        let page = process.wait_for_line("page ");
        let http = page.split('/').nth(2).and_then(|address| address.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no port in {play:?}"));
        let http = http.unwrap_or_else(|| panic!("no address in {page:?}"));
        Self { process, config, port, http }
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Writes another configuration into its file. The relay reads it at its next reload.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn rewrite(&self, lines: &str) {
        fs::write(&self.config, full(lines)).expect("the file of the relay can be written");
    }

    /// The URI with this stream ID, with more of the query behind it: `&key=value`.
    pub fn uri(&self, stream_id: &str, query: &str) -> String {
        format!("srt://127.0.0.1:{}?streamid={stream_id}{query}", self.port)
    }

    /// The URL of a path of its HTTP.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }

    /// Asks its API, and returns the body as JSON.
    ///
    /// # Panics
    ///
    /// If the answer is not 200 or no JSON.
    pub fn json(&self, path: &str) -> Value {
        let (status, body) = self.request("GET", path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).expect("the API answers in JSON")
    }

    /// Sends a request without a body.
    ///
    /// # Panics
    ///
    /// If the relay does not answer.
    pub fn request(&self, method: &str, path: &str) -> HttpAnswer {
        let mut stream = TcpStream::connect(self.http).expect("the relay serves HTTP");
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.http
        );
        stream.write_all(head.as_bytes()).expect("the relay reads requests");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the relay answers");
        let end = answer.windows(4).position(|it| it == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("an answer has a status"), answer.split_off(end + 4))
    }

    /// Waits until the answer at `path` is as `is_wanted` says, and returns it.
    ///
    /// # Panics
    ///
    /// If it is not within twenty seconds.
    pub fn wait_for(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let (status, body) = self.request("GET", path);
            let value = serde_json::from_slice(&body).unwrap_or_default();
            if status == 200 && is_wanted(&value) {
                return value;
            }
            assert!(Instant::now() < deadline, "{path} stays at {status} {value}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a stream is online.
    ///
    /// # Panics
    ///
    /// If it is not within twenty seconds.
    pub fn wait_online(&self, stream: &str) {
        self.wait_for(&format!("/v1/streams/{stream}"), |it| it["state"] == "online");
    }

    /// Waits until a refusal for this reason is listed, and returns it.
    ///
    /// # Panics
    ///
    /// If none is within twenty seconds.
    pub fn wait_refused(&self, reason: &str) -> Value {
        let is = |it: &&Value| it["reason"] == reason;
        let find = |all: &Value| all.as_array().and_then(|all| all.iter().find(is).cloned());
        let all = self.wait_for("/v1/refusals", |all| find(all).is_some());
        find(&all).expect("it was there")
    }
}

fn full(lines: &str) -> String {
    format!("[[listen]]\nsrt = \"127.0.0.1:0\"\n[http]\nlisten = \"127.0.0.1:0\"\n{lines}\n")
}
