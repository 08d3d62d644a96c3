//! The shapes of MediaMTX and srt-live-server, by what programs read of them.

use serde::Deserialize;
use serde_json::json;

use crate::client::Service;

/// The fields of MediaMTX's path that NOALBS reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PathThatIsRead {
    name: String,
    source: Reference,
    bytes_received: u64,
}

#[derive(Deserialize)]
struct Reference {
    r#type: String,
    id: String,
}

/// The whole numbers of MediaMTX's SRT connection that NOALBS reads; one that is missing makes it
/// take the stream for offline.
const COUNTS: &[&str] = &[
    "packetsSent",
    "packetsReceived",
    "packetsSentUnique",
    "packetsReceivedUnique",
    "packetsSendLoss",
    "packetsReceivedLoss",
    "packetsRetrans",
    "packetsReceivedRetrans",
    "packetsSentACK",
    "packetsReceivedACK",
    "packetsSentNAK",
    "packetsReceivedNAK",
    "packetsSentKM",
    "packetsReceivedKM",
    "usSndDuration",
    "packetsSendDrop",
    "packetsReceivedDrop",
    "packetsReceivedUndecrypt",
    "bytesSent",
    "bytesReceived",
    "bytesSentUnique",
    "bytesReceivedUnique",
    "bytesReceivedLoss",
    "bytesRetrans",
    "bytesReceivedRetrans",
    "bytesSendDrop",
    "bytesReceivedDrop",
    "bytesReceivedUndecrypt",
    "packetsFlowWindow",
    "packetsFlightSize",
    "bytesAvailSendBuf",
    "bytesAvailReceiveBuf",
    "byteMSS",
    "packetsSendBuf",
    "bytesSendBuf",
    "msSendBuf",
    "msSendTsbPdDelay",
    "packetsReceiveBuf",
    "bytesReceiveBuf",
    "msReceiveBuf",
    "msReceiveTsbPdDelay",
    "packetsReorderTolerance",
    "packetsReceivedAvgBelatedTime",
];
const MEASURES: &[&str] = &[
    "usPacketsSendPeriod",
    "msRTT",
    "mbpsSendRate",
    "mbpsReceiveRate",
    "mbpsLinkCapacity",
    "mbpsMaxBW",
    "packetsSendLossRate",
    "packetsReceivedLossRate",
];
const TEXTS: &[&str] = &["id", "created", "remoteAddr", "state", "path", "query", "user"];

#[tokio::test]
async fn noalbs_reads_our_path_and_its_connection() {
    let service = Service::open().await;
    let reply = service.get("/v3/paths/get/live/studio").await;
    let path: PathThatIsRead = serde_json::from_str(&reply.body).unwrap();
    assert_eq!((path.name.as_str(), path.source.r#type.as_str()), ("live/studio", "srtConn"));
    assert!(path.bytes_received > 0);
    let reply = service.get(&format!("/v3/srtconns/get/{}", path.source.id)).await;
    let connection = reply.json();
    for name in COUNTS {
        assert!(connection[name].is_u64(), "{name}: {connection:#}");
    }
    for name in MEASURES {
        assert!(connection[name].is_number(), "{name}: {connection:#}");
    }
    for name in TEXTS {
        assert!(connection[name].is_string(), "{name}: {connection:#}");
    }
    assert_eq!((&connection["state"], &connection["msRTT"]), (&json!("publish"), &json!(20.125)));
}

#[tokio::test]
async fn each_connection_has_one_address_also_that_of_a_group() {
    let service = Service::open().await;
    let list = service.get("/v3/srtconns/list").await.json();
    let items = list["items"].as_array().expect("a list");
    assert!(items.len() > 2, "{list:#}");
    for item in items {
        let address = item["remoteAddr"].as_str().map(str::parse::<std::net::SocketAddr>);
        assert!(matches!(address, Some(Ok(_))), "{item:#}");
    }
}

#[tokio::test]
async fn a_path_has_new_and_deprecated_fields() {
    let service = Service::open().await;
    let path = service.get("/v3/paths/get/live/studio").await.json();
    for (field, old) in [
        ("available", "ready"),
        ("availableTime", "readyTime"),
        ("inboundBytes", "bytesReceived"),
        ("outboundBytes", "bytesSent"),
    ] {
        assert!(!path[field].is_null() && path[field] == path[old], "{field}: {path:#}");
    }
    assert_eq!(path["tracks"], json!(["H264", "MPEG-4 Audio", "SCTE-35"]));
    assert_eq!(path["tracks2"][0]["codecProps"]["width"], 1920);
    assert_eq!(path["readers"].as_array().unwrap().len(), 11);
    let offline = service.get("/v3/paths/get/live/backup").await.json();
    assert_eq!((&offline["ready"], &offline["source"]), (&json!(false), &json!(null)));
}

#[tokio::test]
async fn lists_have_pages() {
    let service = Service::open().await;
    let all = service.get("/v3/paths/list").await.json();
    assert_eq!((&all["itemCount"], &all["pageCount"]), (&json!(5), &json!(1)));
    let second = service.get("/v3/paths/list?page=1&itemsPerPage=2").await.json();
    assert_eq!((&second["itemCount"], &second["pageCount"]), (&json!(5), &json!(3)));
    assert_eq!(second["items"][0]["name"], "live/studio");
    let far = service.get("/v3/srtconns/list?page=18446744073709551615").await.json();
    assert_eq!(far["items"], json!([]));
    assert_eq!(service.get("/v3/paths/list?itemsPerPage=0").await.status, 400);
}

#[tokio::test]
async fn a_connection_is_kicked_by_mediamtxs_verb() {
    let service = Service::open().await;
    let list = service.get("/v3/srtconns/list").await.json();
    let id = list["items"][0]["id"].as_str().unwrap();
    let done = service.request("POST", &format!("/v3/srtconns/kick/{id}"), "", "").await;
    assert_eq!((done.status, done.json()), (200, json!({ "status": "ok" })));
    assert_eq!(service.relay.done(), [format!("kick {id} None")]);
    let missing = service.request("POST", "/v3/srtconns/kick/7", "", "").await;
    assert_eq!((missing.status, &missing.json()["status"]), (404, &json!("error")));
}

#[tokio::test]
async fn other_endpoints_of_mediamtx_name_ours() {
    let service = Service::open().await;
    for (method, path, ours) in [
        ("GET", "/v3/config/global/get", "/v1/config"),
        ("POST", "/v3/config/paths/add/live", "/v1/config/streams/{name}"),
        ("GET", "/v3/recordings/list", "/v1/recordings"),
        ("GET", "/v3/paths/forward/list", "/v1/streams/{name}"),
        ("GET", "/v3/nothing", "openapi.json"),
    ] {
        let reply = service.request(method, path, "", "").await;
        let error = reply.json()["error"].as_str().unwrap().to_owned();
        assert!(reply.status == 501 && error.contains(ours), "{path}: {reply:?}");
    }
    let info = service.get("/v3/info").await.json();
    assert!(info["version"].is_string() && info["started"].is_string());
}

/// The fields of srt-live-server's publisher that NOALBS reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "to be there is enough")]
struct PublisherThatIsRead {
    bitrate: i64,
    bytes_rcv_drop: u64,
    bytes_rcv_loss: u64,
    mbps_bandwidth: f64,
    mbps_recv_rate: f64,
    ms_rcv_buf: i32,
    pkt_rcv_drop: i32,
    pkt_rcv_loss: i32,
    rtt: f64,
    uptime: i64,
}

#[tokio::test]
async fn noalbs_reads_our_statistics_as_those_of_srt_live_server() {
    let service = Service::open().await;
    let all = service.get("/stats").await.json();
    assert_eq!(all["status"], "ok");
    assert_eq!(all["publishers"].as_object().unwrap().len(), 3);
    let studio = all["publishers"]["publish/live/studio"].clone();
    let studio: PublisherThatIsRead = serde_json::from_value(studio).unwrap();
    assert_eq!((studio.bitrate, studio.rtt), (7_072, 20.125));
    for asked in ["publish/live/studio", "live/studio"] {
        let one = service.get(&format!("/stats/{asked}")).await.json();
        assert_eq!(one["publishers"][asked]["bitrate"], 7_072, "{one}");
        // OpenIRL's fork.
        for field in ["bitrate", "buffer", "dropped_pkts", "uptime", "latency"] {
            assert!(one["publisher"][field].is_u64(), "{field}: {one}");
        }
    }
    let offline = service.get("/stats/publish/live/backup").await.json();
    assert_eq!(offline, json!({ "publishers": {}, "status": "ok" }));
}
