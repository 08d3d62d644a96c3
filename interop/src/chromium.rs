use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::{Folder, Process};

/// A browser without a window, and pages in it that a test opens, asks and looks at, by Chromium's
/// DevTools protocol.
#[derive(Debug)]
pub struct Chromium {
    process: Process,
    address: String,
    browser: Session,
}

/// The window that a page is shown in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    /// Width in CSS pixels.
    pub width: u32,
    /// Height in CSS pixels.
    pub height: u32,
    /// Whether the user prefers dark pages.
    pub is_dark: bool,
}

impl Window {
    /// A window on a desk.
    pub const DESK: Self = Self { width: 1280, height: 800, is_dark: false };

    /// A phone.
    pub const PHONE: Self = Self { width: 390, height: 844, is_dark: false };

    /// The same for a user who prefers dark pages.
    #[must_use]
    pub fn dark(self) -> Self {
        Self { is_dark: true, ..self }
    }
}

impl Chromium {
    /// Starts a browser with a profile of its own in `folder`. The name `host` leads to this
    /// machine: a page at `http://host:port` is one by host name without TLS.
    ///
    /// # Panics
    ///
    /// If the browser does not start.
    pub fn start(folder: &Folder, host: &str) -> Self {
        let mut command = Command::new("chromium");
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--mute-audio",
            "--autoplay-policy=no-user-gesture-required",
            "--remote-debugging-port=0",
        ]);
        command.arg(format!("--host-resolver-rules=MAP {host} 127.0.0.1"));
        command.arg(format!("--user-data-dir={}", folder.file("profile").display()));
        command.arg("about:blank");
        let mut process = Process::start("chromium", command, folder);
        let line = process.wait_for_line("DevTools listening on ");
        let url = line.rsplit(' ').next().expect("the line ends with the address").to_owned();
        let address = url.split('/').nth(2).expect("the address has a port").to_owned();
        let browser = Session::connect(&address, &url);
        Self { process, address, browser }
    }

    /// Opens a page.
    ///
    /// # Panics
    ///
    /// If the browser does not.
    pub fn open(&mut self, url: &str, window: Window) -> Page {
        let target = self.browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let id = target["targetId"].as_str().expect("a target has an identifier");
        let path = format!("ws://{}/devtools/page/{id}", self.address);
        let mut page = Page { session: Session::connect(&self.address, &path) };
        page.session.call("Page.enable", &json!({}));
        page.session.call("Runtime.enable", &json!({}));
        let metrics = json!({
            "width": window.width, "height": window.height,
            "deviceScaleFactor": 1, "mobile": window.width < 600,
        });
        page.session.call("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if window.is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        page.session.call("Emulation.setEmulatedMedia", &features);
        page.session.call("Page.navigate", &json!({"url": url}));
        page
    }

    /// The number by which the system knows the browser.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

/// An open page.
#[derive(Debug)]
pub struct Page {
    session: Session,
}

impl Page {
    /// The value of an expression of JavaScript, or what the promise that it is becomes.
    ///
    /// # Panics
    ///
    /// If the expression throws.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.try_evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// The value of an expression, or the browser's error.
    fn try_evaluate(&mut self, expression: &str) -> Result<Value, Value> {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.session.try_call("Runtime.evaluate", &params)?;
        let exception = &answer["exceptionDetails"];
        assert!(exception.is_null(), "{expression}: {exception:#}");
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true, and tells how long that took. Where the page loads
    /// another document meanwhile, the expression is about that one.
    ///
    /// # Panics
    ///
    /// If it is not within `limit`.
    pub fn wait_for(&mut self, expression: &str, limit: Duration) -> Duration {
        let start = Instant::now();
        let condition = format!("Boolean({expression})");
        loop {
            match self.try_evaluate(&condition) {
                Ok(Value::Bool(true)) => break,
                Err(error) if error["message"] != NAVIGATED => panic!("{expression}: {error}"),
                Ok(_) | Err(_) => {}
            }
            let faults = &self.session.faults;
            assert!(start.elapsed() < limit, "{expression} was false for {limit:?}: {faults:?}");
            thread::sleep(Duration::from_millis(20));
        }
        start.elapsed()
    }

    /// Writes the page as it looks to a file, as PNG.
    ///
    /// # Panics
    ///
    /// If the browser gives no picture, or the file cannot be written.
    pub fn screenshot(&mut self, file: &Path) {
        let answer = self.session.call("Page.captureScreenshot", &json!({"format": "png"}));
        let data = answer["data"].as_str().expect("a screenshot is text");
        std::fs::write(file, from_base64(data)).expect("a screenshot can be written");
    }

    /// Makes the page's network slow: bytes in a second at most, and none if `is_offline`. Sockets
    /// that are open go on.
    pub fn throttle(&mut self, bytes_per_second: i64, is_offline: bool) {
        self.session.call("Network.enable", &json!({}));
        let conditions = json!({
            "offline": is_offline, "latency": 0,
            "downloadThroughput": bytes_per_second, "uploadThroughput": bytes_per_second,
        });
        self.session.call("Network.emulateNetworkConditions", &conditions);
    }

    /// Errors of the page's own: exceptions that nobody caught, and errors on its console.
    pub fn faults(&self) -> &[String] {
        &self.session.faults
    }
}

/// A connection to the browser or to one of its pages.
#[derive(Debug)]
struct Session {
    socket: WebSocket<TcpStream>,
    number: u64,
    faults: Vec<String>,
}

impl Session {
    fn connect(address: &str, url: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the browser listens");
        stream.set_read_timeout(Some(ANSWER_LIMIT)).expect("a socket has a time limit");
        let (socket, _) = client(url, stream).expect("the browser speaks the protocol");
        Self { socket, number: 0, faults: Vec::new() }
    }

    /// The answer to a command.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The answer to a command, or the browser's error.
    fn try_call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.number += 1;
        let command = json!({"id": self.number, "method": method, "params": params});
        let command = Message::text(command.to_string());
        self.socket.send(command).unwrap_or_else(|error| panic!("{method}: {error}"));
        loop {
            let message = self.socket.read().unwrap_or_else(|error| panic!("{method}: {error}"));
            let Message::Text(text) = message else { continue };
            let mut message: Value =
                serde_json::from_str(&text).expect("the browser speaks the protocol");
            if message["id"] == self.number {
                let error = message["error"].take();
                return if error.is_null() { Ok(message["result"].take()) } else { Err(error) };
            }
            self.note_fault(&message);
        }
    }

    fn note_fault(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.faults.push(params["exceptionDetails"].to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.faults.push(params["args"].to_string());
            }
            _ => {}
        }
    }
}

/// The bytes of base 64 (RFC 4648 section 4).
fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
        .filter_map(|digit| u32::try_from(digit).ok())
        .collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let value =
            group.iter().fold(0, |value, digit| value << 6 | digit) << (6 * (4 - group.len()));
        bytes.extend(&value.to_be_bytes()[1..group.len().max(1)]);
    }
    bytes
}

/// The browser's error for an expression during which the page left its document.
const NAVIGATED: &str = "Inspected target navigated or closed";

/// A busy machine decodes and draws slowly.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_is_read() {
        assert_eq!(from_base64("UHVuY3R1YWw="), b"Punctual");
        assert_eq!(from_base64("UHVuY3R1YQ=="), b"Punctua");
        assert_eq!(from_base64("UHVuY3R1"), b"Punctu");
    }
}
