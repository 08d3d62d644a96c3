//! The metrics, the dashboard, and the alerts.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use interop::{Tool, have_all};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::client::{PATIENCE, Service};

#[tokio::test]
async fn metrics_have_help_and_type_and_bounded_labels() {
    let service = Service::open().await;
    let reply = service.get("/metrics").await;
    assert!(reply.head.contains("text/plain; version=0.0.4"), "{reply:?}");
    for line in [
        "# TYPE punctual_relay_stream_online gauge",
        "punctual_relay_stream_online{stream=\"live/studio\"} 1.0",
        "punctual_relay_stream_online{stream=\"live/backup\"} 0.0",
        "punctual_relay_stream_viewers{stream=\"tower\",protocol=\"srt\"} 5.0",
        "# TYPE punctual_relay_stream_received_bytes_total counter",
        "# TYPE punctual_relay_stream_rtt_seconds histogram",
        "punctual_relay_stream_latency_seconds{stream=\"tower\",direction=\"in\"} 0.2",
        "punctual_relay_viewer_skips_total{stream=\"radio\",reason=\"slow\"} 2",
        "punctual_relay_forward_up{stream=\"live/studio\",destination=\"cdn\"} 1.0",
        "punctual_relay_build_info{version=\"0.1.0\"} 1.0",
    ] {
        assert!(reply.body.lines().any(|it| it == line), "{line}:\n{}", reply.body);
    }
    let allowed = [
        "stream",
        "direction",
        "reason",
        "protocol",
        "result",
        "event",
        "destination",
        "input",
        "version",
        "le",
    ];
    for line in reply.body.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, labels)) = line.split_once('{') else { continue };
        for label in labels.split("=\"").filter_map(|it| it.rsplit([',', '"']).next()) {
            let name = label.trim_start_matches(['{', ',']);
            let is_end = name.is_empty() || name.starts_with('}');
            assert!(is_end || allowed.contains(&name), "{name}: {line}");
        }
        assert!(!line.contains("192.0.2.") && !line.contains("00000000-0000-4000"), "{line}");
    }
}

#[tokio::test]
async fn promtool_accepts_the_metrics() {
    if !have_all(&[Tool::Prometheus]) {
        return;
    }
    let metrics = Service::open().await.get("/metrics").await.body;
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let problems =
        String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && problems.trim().is_empty(), "{problems}");
}

#[test]
fn each_alert_fires_for_its_fault_and_for_no_other() {
    if !have_all(&[Tool::Prometheus]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rules = contrib("prometheus/punctual-relay-rules.yml");
    let cases = include_str!("rules_test.yml").replace("RULES", &rules.display().to_string());
    fs::write(folder.path().join("cases.yml"), cases).unwrap();
    let mut promtool = Command::new("promtool");
    let cases = promtool.args(["test", "rules", "cases.yml"]).current_dir(folder.path());
    let output = cases.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[tokio::test]
async fn alerts_and_dashboard_name_metrics_that_exist() {
    let metrics = Service::open().await.get("/metrics").await.body;
    let series: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| line.split([' ', '{']).next())
        .filter(|name| name.starts_with("punctual_relay_"))
        .collect();
    let rules = fs::read_to_string(contrib("prometheus/punctual-relay-rules.yml")).unwrap();
    let texts = [rules, dashboard_queries().join("\n")];
    let mut named = 0;
    for name in texts.iter().flat_map(|text| names(text)) {
        assert!(series.contains(name), "no series is called {name}");
        named += 1;
    }
    assert!(named > 40, "{named}");
}

/// The names of our metrics in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("punctual_relay_").map(|(start, _)| {
        let rest = &text[start..];
        rest.split(|it: char| !it.is_ascii_alphanumeric() && it != '_').next().unwrap_or(rest)
    })
}

fn contrib(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(file)
}

/// The queries of the dashboard, as Grafana asks them for all streams.
fn dashboard_queries() -> Vec<String> {
    let text = fs::read_to_string(contrib("grafana/punctual-relay.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets
        .map(|target| target["expr"].as_str().unwrap())
        .map(|query| query.replace("$__rate_interval", "10s").replace("$stream", ".*"))
        .collect()
}

/// Debian's Prometheus, which is ended when this is dropped.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// Scrapes the service twice a second.
    async fn start(service: &Service) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 500ms }}\nscrape_configs:\n  - job_name: punctual-relay\n    \
             static_configs: [{{ targets: [\"{}\"] }}]\n",
            service.address
        );
        fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder.path())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { process, address, _folder: folder }
    }

    /// The values of the series of a query; none as long as it does not answer.
    async fn ask(&self, query: &str) -> Vec<f64> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let Ok(mut stream) = TcpStream::connect(self.address).await else { return Vec::new() };
        let request =
            format!("GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let mut text = String::new();
        if stream.write_all(request.as_bytes()).await.is_err()
            || stream.read_to_string(&mut text).await.is_err()
        {
            return Vec::new();
        }
        let body = text.split_once("\r\n\r\n").map_or("", |it| it.1);
        let answer: Value = serde_json::from_str(body).unwrap_or_default();
        let error = &answer["error"];
        assert!(error.is_null(), "{query}: {error}");
        let series = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        let values = series.iter().filter_map(|it| it["value"][1].as_str()?.parse().ok());
        values.collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn each_panel_shows_data_of_a_relay_that_prometheus_scrapes() {
    if !have_all(&[Tool::Prometheus]) {
        return;
    }
    let service = Service::open().await;
    let prometheus = Prometheus::start(&service).await;
    let begun = Instant::now();
    for query in dashboard_queries() {
        // A rate needs two scrapes; a share needs packets.
        while !prometheus.ask(&query).await.iter().any(|value| value.is_finite()) {
            assert!(begun.elapsed() < PATIENCE, "no data for {query}");
            sleep(Duration::from_millis(200)).await;
        }
    }
    // Once the whole time of the rate is scraped, the rate is right.
    let rate = "8 * sum(rate(punctual_relay_stream_received_bytes_total{stream=\"radio\"}[10s]))";
    let is_right = |values: &[f64]| values.first().is_some_and(|it| (170e3..210e3).contains(it));
    while !is_right(&prometheus.ask(rate).await) {
        assert!(begun.elapsed() < PATIENCE, "192 kb/s: {:?}", prometheus.ask(rate).await);
        sleep(Duration::from_millis(200)).await;
    }
    let dark = "count(up{job=\"punctual-relay\"} == 1)";
    assert_eq!(prometheus.ask(dark).await, [1.0]);
}
