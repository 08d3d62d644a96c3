//! Callers that may not: other hosts, other origins, and callers without a token.

use std::sync::Arc;

use punctual_relay_http::report::HealthReport;
use punctual_relay_http::{Limits, Settings};

use crate::client::Service;
use crate::stand_in::Open;

async fn with_origin() -> Service {
    let origins = vec!["https://panel.example".to_owned()];
    let settings = Settings { origins, ..Settings::default() };
    Service::start(Arc::new(Open), settings, Limits::default(), None).await
}

#[tokio::test]
async fn a_foreign_host_gets_nothing_but_health() {
    let service = with_origin().await;
    for (host, path, status) in [
        ("localhost:9997", "/v1/streams", 200),
        ("[::1]", "/v1/streams", 200),
        ("panel.example", "/v1/streams", 200),
        ("evil.example", "/v1/streams", 421),
        ("evil.example", "/", 421),
        ("evil.example", "/metrics", 421),
        ("evil.example", "/v3/paths/list", 421),
        ("evil.example", "/live/live/studio.ts", 421),
        ("evil.example", "/readyz", 200),
        ("evil.example", "/livez", 200),
    ] {
        let reply = service.request("GET", path, &format!("Host: {host}\r\n"), "").await;
        assert_eq!(reply.status, status, "{host} {path}: {reply:?}");
    }
    let two = service.request("GET", "/v1/streams", "Host: localhost\r\nHost: a\r\n", "").await;
    assert_eq!(two.status, 400);
    let none = service.exchange(b"GET /v1/streams HTTP/1.0\r\n\r\n").await;
    assert_eq!(none.status, 400);
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let service = with_origin().await;
    let own = format!("Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", service.address);
    for (headers, status) in [
        ("", 202),
        (own.as_str(), 202),
        ("Origin: https://panel.example\r\nSec-Fetch-Site: cross-site\r\n", 202),
        ("Sec-Fetch-Site: none\r\n", 202),
        ("Origin: https://evil.example\r\n", 403),
        ("Origin: http://localhost:1\r\n", 403),
        ("Origin: null\r\n", 403),
        ("Sec-Fetch-Site: cross-site\r\n", 403),
        ("Sec-Fetch-Site: same-site\r\n", 403),
    ] {
        let reply = service.request("POST", "/v1/drain", headers, "").await;
        assert_eq!(reply.status, status, "{headers}: {reply:?}");
    }
    assert_eq!(service.relay.done().len(), 4);
}

#[tokio::test]
async fn a_websocket_of_another_origin_is_refused() {
    let service = with_origin().await;
    let headers = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: https://evil.example\r\n";
    let reply = service.request("GET", "/v1/play/live%2Fstudio", headers, "").await;
    assert_eq!(reply.status, 403);
}

#[tokio::test]
async fn only_listed_origins_read_answers() {
    let service = with_origin().await;
    let foreign = service.request("GET", "/v1/streams", "Origin: https://evil.example\r\n", "");
    assert!(!foreign.await.head.contains("access-control"));
    let listed = "Origin: https://panel.example\r\n";
    let reply = service.request("GET", "/v1/streams", listed, "").await;
    assert!(reply.head.contains("access-control-allow-origin: https://panel.example"));
    assert!(reply.head.contains("vary: origin"), "{reply:?}");
    let ask = "Access-Control-Request-Method: DELETE\r\n";
    let preflight = service.request("OPTIONS", "/v1/drain", &format!("{listed}{ask}"), "").await;
    assert!(preflight.status == 204 && preflight.head.contains("access-control-allow-methods"));
    let foreign = format!("Origin: https://evil.example\r\n{ask}");
    let preflight = service.request("OPTIONS", "/v1/drain", &foreign, "").await;
    assert!(!preflight.head.contains("access-control"), "{preflight:?}");
}

#[tokio::test]
async fn a_token_opens_what_its_role_may() {
    let service = Service::by_token().await;
    let section = "/v1/config/streams/radio";
    for (token, read, operate, administer) in [
        ("", 401, 401, 401),
        ("Authorization: Bearer wrong\r\n", 401, 401, 401),
        ("Authorization: Bearer reader\r\n", 200, 403, 403),
        ("Authorization: bearer operator\r\n", 200, 204, 403),
        ("Authorization: Bearer admin\r\n", 200, 204, 200),
        // nina, a:b
        ("Authorization: Basic bmluYTphOmI=\r\n", 200, 403, 403),
        ("Authorization: Basic !\r\n", 401, 401, 401),
    ] {
        for path in ["/v1/streams", "/v1/server", "/metrics", "/v3/paths/list", "/stats"] {
            let reply = service.request("GET", path, token, "").await;
            assert_eq!(reply.status, read, "{path} {token}");
            assert_eq!(reply.head.contains("www-authenticate: bearer"), read == 401);
        }
        let reset = "/v1/streams/radio/reset-counters";
        assert_eq!(service.request("POST", reset, token, "").await.status, operate, "{token}");
        assert_eq!(service.request("PUT", section, token, "{}").await.status, administer);
        let config = service.request("GET", "/v1/config", token, "").await;
        assert_eq!(config.status, administer, "{token}");
    }
    let kick =
        service.request("POST", "/v3/srtconns/kick/7", "Authorization: Bearer reader\r\n", "");
    assert_eq!(kick.await.status, 403);
}

#[tokio::test]
async fn a_caller_learns_the_own_rights() {
    let service = Service::by_token().await;
    let session = service.get("/v1/session").await.json();
    assert_eq!((&session["read"], &session["operate"]), (&false.into(), &false.into()));
    let token = "Authorization: Bearer operator\r\n";
    let session = service.request("GET", "/v1/session", token, "").await.json();
    assert_eq!((&session["user"], &session["operate"]), (&"nina".into(), &true.into()));
    assert_eq!(session["administer"], false);
}

#[tokio::test]
async fn a_ticket_views_one_stream() {
    let service = Service::by_token().await;
    let token = "Authorization: Bearer reader\r\n";
    let body = r#"{"stream":"live/studio"}"#;
    assert_eq!(service.request("POST", "/v1/tickets", "", body).await.status, 401);
    let ticket = service.request("POST", "/v1/tickets", token, body).await.json();
    assert_eq!(ticket["ticket"], "T");
    assert_eq!(service.get("/hls/live/studio/index.m3u8?ticket=T").await.status, 200);
    assert_eq!(service.get("/hls/live/studio/index.m3u8?ticket=U").await.status, 401);
    assert_eq!(service.get("/hls/tower/index.m3u8?ticket=T").await.status, 403);
    assert_eq!(service.get("/v1/streams?ticket=T").await.status, 403);
    let full = service.request("POST", "/v1/tickets", token, r#"{"stream":"full"}"#).await;
    assert_eq!(full.status, 503);
}

#[tokio::test]
async fn health_needs_no_token_and_tells_reasons() {
    let service = Service::by_token().await;
    assert_eq!(service.get("/livez").await.body, "ok\n");
    assert_eq!(service.get("/readyz").await.body, "ok\n");
    let problems = vec!["the folder `recordings` cannot be written".to_owned()];
    service.relay.set_health(HealthReport { problems, ..HealthReport::default() });
    let ready = service.get("/readyz").await;
    assert_eq!((ready.status, &*ready.body), (503, "the folder `recordings` cannot be written\n"));
    let health = service.get("/health").await;
    assert_eq!((health.status, &health.json()["ready"]), (503, &false.into()));
    assert_eq!(service.get("/livez").await.status, 200, "the process lives");
}
