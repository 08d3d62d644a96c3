//! The relay's own API.

use punctual_relay_http::report::EventKind;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{PATIENCE, Service};

#[test]
fn the_openapi_document_is_the_snapshot() {
    let document = punctual_relay_http::openapi().to_pretty_json().unwrap();
    insta::assert_snapshot!("openapi", document);
}

#[tokio::test]
async fn the_served_document_has_every_route() {
    let service = Service::open().await;
    let served = service.get("/v1/openapi.json").await;
    let snapshot: serde_json::Value =
        serde_json::from_str(&punctual_relay_http::openapi().to_pretty_json().unwrap()).unwrap();
    assert_eq!(served.json()["paths"], snapshot["paths"]);
    assert_eq!(served.json()["openapi"], "3.1.0");
}

#[tokio::test]
async fn a_name_with_slashes_and_spaces_is_one_segment() {
    let service = Service::open().await;
    let stream = service.get("/v1/streams/live%2Ffield%20cam").await;
    assert_eq!((stream.status, &stream.json()["name"]), (200, &json!("live/field cam")));
    assert_eq!(stream.json()["state"], "waiting");
    let connections = service.get("/v1/connections?stream=live%2Fstudio").await.json();
    assert_eq!(connections.as_array().unwrap().len(), 12);
    assert_eq!(connections[0]["role"], "publisher");
}

#[tokio::test]
async fn statistics_have_libsrts_names_and_the_rate_of_the_last_second() {
    let service = Service::open().await;
    let all = service.get("/v1/connections?stream=radio").await.json();
    let statistics = &all[0]["statistics"];
    assert!(statistics["pktRecv"].as_u64().unwrap() > 300_000, "since the handshake: {statistics}");
    assert!((statistics["mbpsRecvRate"].as_f64().unwrap() - 7.072).abs() < 0.01, "{statistics}");
    assert_eq!(statistics["msRTT"], 20.125);
}

#[tokio::test]
async fn errors_are_problems() {
    let service = Service::open().await;
    for (method, path, body, status, words) in [
        ("GET", "/v1/streams/nothing", "", 404, "`nothing`"),
        ("GET", "/v1/connections/7", "", 404, "`7`"),
        ("GET", "/v1/nothing", "", 404, "openapi.json"),
        ("GET", "/v1/streams/%ff", "", 400, "UTF-8"),
        ("GET", "/v1/events?numbers=perhaps", "", 400, "numbers"),
        ("PUT", "/v1/streams", "", 405, "PUT"),
        ("POST", "/v1/streams/radio/switch", "{", 400, "body"),
        ("POST", "/v1/streams/radio/switch", "{}", 400, "`input`"),
        ("PUT", "/v1/config/streams/radio", "[]", 400, "object"),
        ("DELETE", "/v1/connections/7?ban_s=100000", "", 400, "86400"),
    ] {
        let reply = service.request(method, path, "", body).await;
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        assert!(reply.head.contains("application/problem+json"), "{reply:?}");
        let problem = reply.json();
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].as_str().unwrap().contains(words), "{path}: {problem}");
    }
}

/// The requests of the page about the API: method, path, and header lines.
fn documented_requests() -> Vec<(String, String, String)> {
    let page = include_str!("../../../../docs/relay-api.md");
    let lines = page.lines().filter_map(|line| line.strip_prefix("curl "));
    let requests = lines.map(|line| {
        let (mut method, mut path, mut headers) = ("GET".to_owned(), None, String::new());
        let mut words = line.split('\'').enumerate().flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().collect::<Vec<_>>(),
            _ => vec![part],
        });
        while let Some(word) = words.next() {
            match word {
                "-X" => method = words.next().unwrap().to_owned(),
                "-H" => headers += &format!("{}\r\n", words.next().unwrap()),
                "-N" => {}
                url => path = url.strip_prefix("http://127.0.0.1:9997").map(str::to_owned),
            }
        }
        (method, path.expect("each request names the default port"), headers)
    });
    requests.collect()
}

#[tokio::test]
async fn documented_requests_are_answered() {
    let service = Service::open().await;
    let id = service.get("/v1/connections").await.json()[0]["id"].as_str().unwrap().to_owned();
    let requests = documented_requests();
    assert!(requests.len() >= 6, "{requests:?}");
    for (method, path, headers) in requests {
        if path == "/v1/events" {
            // It does not end.
            events_until(&mut follow(&service, "", "").await, "event: numbers").await;
            continue;
        }
        let path = path.replace("ID?", &format!("{id}?"));
        let reply = service.request(&method, &path, &headers, "").await;
        assert!([200, 204].contains(&reply.status), "{method} {path}: {reply:?}");
    }
}

#[tokio::test]
async fn each_verb_reaches_the_relay() {
    let service = Service::open().await;
    let id = service.get("/v1/connections").await.json()[0]["id"].as_str().unwrap().to_owned();
    let kick = format!("/v1/connections/{id}?ban_s=60");
    for (method, path, body, status) in [
        ("DELETE", kick.as_str(), "", 204),
        ("POST", "/v1/streams/live%2Fstudio/switch", r#"{"input":"b"}"#, 204),
        ("POST", "/v1/streams/live%2Fstudio/record/start", "", 204),
        ("POST", "/v1/streams/live%2Fstudio/record/stop", "", 204),
        ("POST", "/v1/streams/live%2Fstudio/forward/cdn/start", "", 204),
        ("POST", "/v1/streams/live%2Fstudio/forward/cdn/stop", "", 204),
        ("POST", "/v1/streams/live%2Fstudio/reset-counters", "", 204),
        ("POST", "/v1/reload", "", 200),
        ("POST", "/v1/drain", "", 202),
    ] {
        let reply = service.request(method, path, "", body).await;
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
    }
    let expected = [
        format!("kick {id} Some(60s)"),
        "live/studio: Switch { input: \"b\" }".to_owned(),
        "live/studio: Record(true)".to_owned(),
        "live/studio: Record(false)".to_owned(),
        "live/studio: Forward { id: \"cdn\", start: true }".to_owned(),
        "live/studio: Forward { id: \"cdn\", start: false }".to_owned(),
        "live/studio: ResetCounters".to_owned(),
        "reload".to_owned(),
        "drain".to_owned(),
    ];
    assert_eq!(service.relay.done(), expected);
}

#[tokio::test]
async fn a_section_changes_only_in_the_version_that_was_read() {
    let service = Service::open().await;
    let section = service.get("/v1/config/streams/live%2F*").await;
    assert!(section.head.contains("etag: \"v7\""), "{section:?}");
    let path = "/v1/config/streams/live%2F*?persist=true";
    let put = |tag: &'static str, body: &'static str| service.request("PATCH", path, tag, body);
    let stale = put("If-Match: \"v6\"\r\n", r#"{"latency":"1s"}"#).await;
    assert_eq!(stale.status, 412);
    let wrong = put("", r#"{"latencie":"1s"}"#).await;
    assert_eq!(wrong.status, 422);
    let error = &wrong.json()["errors"][0];
    assert_eq!(error["message"], "unknown key; did you mean `latency`?");
    let done = put("If-Match: \"v7\"\r\n", r#"{"latency":"1s"}"#).await;
    assert!(done.status == 200 && done.head.contains("etag: \"v8\""), "{done:?}");
    let expected = r#"live/* Patch(Object {"latency": String("1s")}) true"#;
    assert_eq!(service.relay.done(), [expected]);
}

#[tokio::test]
async fn a_file_is_checked_without_a_change() {
    let service = Service::open().await;
    let check = |body: &'static str| service.request("POST", "/v1/config:check", "", body);
    let wrong = check("[defaults]\nlatencie = \"1s\"\n").await.json();
    assert_eq!((&wrong["valid"], &wrong["errors"][0]["line"]), (&json!(false), &json!(2)));
    assert_eq!(check("").await.json(), json!({ "valid": true, "errors": [] }));
    assert!(service.relay.done().is_empty());
}

/// Reads server-sent events until one contains `end`.
async fn events_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let reading = async {
        while !text.contains(end) {
            let mut bytes = [0; 65_536];
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "the events ended: {text}");
            text += &String::from_utf8_lossy(&bytes[..count]);
        }
    };
    timeout(PATIENCE, reading).await.expect("the event comes");
    text
}

async fn follow(service: &Service, query: &str, header: &str) -> TcpStream {
    let mut stream = service.connect().await;
    let request = format!("GET /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn events_come_at_once_and_numbers_each_second() {
    let service = Service::open().await;
    let mut stream = follow(&service, "", "").await;
    let text = events_until(&mut stream, "\"name\":\"tower\"").await;
    assert!(text.contains("text/event-stream") && text.contains("event: numbers"), "{text}");
    service.relay.tell(EventKind::Online, "radio", "the stream has a source");
    let text = events_until(&mut stream, "the stream has a source").await;
    assert!(text.contains("event: online") && text.contains("id: "), "{text}");
    let text = events_until(&mut stream, "event: numbers").await;
    assert!(text.contains("\"in_bps\":192000"), "{text}");
}

#[tokio::test]
async fn a_client_that_comes_back_goes_on_after_its_last_event() {
    let service = Service::open().await;
    service.relay.tell(EventKind::Online, "radio", "one");
    let mut stream = follow(&service, "?numbers=false", "Last-Event-ID: 1-1\r\n").await;
    let text = events_until(&mut stream, "\"text\":\"one\"").await;
    assert!(text.contains("event: gap"), "the place is of another run: {text}");
    let place = text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(stream);
    service.relay.tell(EventKind::Offline, "radio", "two");
    service.relay.tell(EventKind::Online, "other", "three");
    let header = format!("Last-Event-ID: {place}\r\n");
    let mut stream = follow(&service, "?numbers=false", &header).await;
    let text = events_until(&mut stream, "\"text\":\"three\"").await;
    assert!(text.contains("\"text\":\"two\"") && !text.contains("\"text\":\"one\""), "{text}");
    assert!(!text.contains("event: gap"), "{text}");
    let mut of_radio = follow(&service, "?numbers=false&stream=radio", &header).await;
    service.relay.tell(EventKind::Skip, "radio", "four");
    let text = events_until(&mut of_radio, "\"text\":\"four\"").await;
    assert!(!text.contains("\"text\":\"three\""), "{text}");
}
