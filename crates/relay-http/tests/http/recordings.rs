//! Recordings as files, and the rights to them.

use crate::client::{Reply, Service};

const PATH: &str = "/v1/recordings/live%2Fstudio?from=2026-11-27T20:15:00";

async fn part(service: &Service, headers: &str) -> Reply {
    service.request("GET", PATH, headers, "").await
}

#[tokio::test]
async fn an_excerpt_is_a_file_with_a_name_and_a_type() {
    let service = Service::open().await;
    let path = "/v1/recordings/live%2Fstudio?from=2026-11-27T21:15:00+01:00&until=2026-11-28";
    let file = service.get(path).await;
    assert_eq!((file.status, file.body.as_str()), (200, "0123456789"));
    for header in [
        "content-type: video/mp2t",
        "content-length: 10",
        "content-disposition: attachment; filename=\"live-studio_1970-01-01_00-00-00.ts\"",
        "accept-ranges: bytes",
        "etag: \"v7\"",
    ] {
        assert!(file.head.contains(header), "{header}: {}", file.head);
    }
    let asked = "excerpt 2026-11-27T21:15:00+01:00 Some(\"2026-11-28\")";
    assert_eq!(service.relay.done(), [asked]);
    assert_eq!(service.get("/v1/recordings/live%2Fstudio").await.status, 400);
    assert_eq!(service.get("/v1/recordings/tower?from=2026-11-27T20:15:00").await.status, 404);
    let head = service.request("HEAD", PATH, "", "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(head.head.contains("content-length: 10"), "{}", head.head);
}

#[tokio::test]
async fn a_range_of_an_excerpt_is_sent_if_the_file_is_still_the_same() {
    let service = Service::open().await;
    let middle = part(&service, "Range: bytes=2-4\r\n").await;
    assert_eq!((middle.status, middle.body.as_str()), (206, "234"));
    assert!(middle.head.contains("content-range: bytes 2-4/10"), "{}", middle.head);
    assert!(middle.head.contains("content-length: 3"), "{}", middle.head);
    let same = part(&service, "Range: bytes=8-\r\nIf-Range: \"v7\"\r\n").await;
    assert_eq!((same.status, same.body.as_str()), (206, "89"));
    let other = part(&service, "Range: bytes=8-\r\nIf-Range: \"v6\"\r\n").await;
    assert_eq!((other.status, other.body.as_str()), (200, "0123456789"));
    let beyond = part(&service, "Range: bytes=10-\r\n").await;
    assert_eq!(beyond.status, 416);
    assert!(beyond.head.contains("content-range: bytes */10"), "{}", beyond.head);
}

#[tokio::test]
async fn recordings_are_for_those_who_may_take_them() {
    let service = Service::by_token().await;
    let list = "/v1/recordings?stream=live/studio";
    assert_eq!(service.get(PATH).await.status, 401);
    assert_eq!(service.get(list).await.status, 401);
    let reader = "Authorization: Bearer reader\r\n";
    let all = service.request("GET", "/v1/recordings", reader, "").await;
    assert!(all.json()[0]["file"].as_str().is_some_and(|file| !file.is_empty()), "{all:?}");

    // The ticket `R` takes the recordings of one stream, and reads nothing else.
    assert_eq!(service.get(&format!("{PATH}&ticket=R")).await.status, 200);
    assert_eq!(service.get("/v1/recordings/tower?from=2026&ticket=R").await.status, 403);
    assert_eq!(service.get("/v1/recordings?ticket=R").await.status, 403);
    let shown = service.get(&format!("{list}&ticket=R")).await.json();
    assert_eq!(shown[0]["stream"], "live/studio");
    assert!(shown[0]["file"] == "" && shown[0]["free_bytes"].is_null(), "{shown}");
}

#[tokio::test]
async fn a_ticket_is_for_a_stream_or_for_its_recordings() {
    let service = Service::by_token().await;
    let reader = "Authorization: Bearer reader\r\nContent-Type: application/json\r\n";
    for (body, ticket) in [
        (r#"{"stream":"live/studio"}"#, "T"),
        (r#"{"stream":"live/studio","recordings":true}"#, "R"),
    ] {
        let made = service.request("POST", "/v1/tickets", reader, body).await;
        assert_eq!(made.json()["ticket"], ticket, "{made:?}");
    }
}
