//! Streams by HTTP.

use punctual_relay_http::Ticket;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::client::{PATIENCE, Service};

type Player = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

async fn player(service: &Service, path: &str) -> Player {
    let url = format!("ws://{}{path}", service.address);
    timeout(PATIENCE, connect_async(url)).await.unwrap().unwrap().0
}

/// The next message; pings are left out.
async fn next(player: &mut Player) -> Message {
    let next = async {
        loop {
            let message = std::future::poll_fn(|context| {
                futures_core::Stream::poll_next(std::pin::Pin::new(&mut *player), context)
            });
            let message = message.await.expect("a message comes").unwrap();
            if !message.is_ping() {
                return message;
            }
        }
    };
    timeout(PATIENCE, next).await.expect("a message comes in time")
}

async fn close_code(service: &Service, path: &str) -> (u16, String) {
    match next(&mut player(service, path).await).await {
        Message::Close(Some(frame)) => (frame.code.into(), frame.reason.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_player_gets_messages_in_order_and_the_end() {
    let service = Service::open().await;
    let mut player = player(&service, "/v1/play/live%2Fstudio?sound=no").await;
    assert_eq!(next(&mut player).await, Message::text(r#"{"sound":false,"type":"init"}"#));
    assert_eq!(next(&mut player).await, Message::binary(vec![1, 2, 3]));
    let Message::Close(Some(frame)) = next(&mut player).await else { panic!("no close") };
    assert_eq!(u16::from(frame.code), 4_410);
}

#[tokio::test]
async fn a_refused_player_gets_the_status_as_close_code() {
    let service = Service::by_token().await;
    let (code, _) = close_code(&service, "/v1/play/live%2Fstudio").await;
    assert_eq!(code, 4_401);
    let (code, _) = close_code(&service, "/v1/play/tower?ticket=T").await;
    assert_eq!(code, 4_403);
    let open = Service::open().await;
    let name = "ü".repeat(200);
    let (code, reason) = close_code(&open, &format!("/v1/play/{}", "%C3%BC".repeat(200))).await;
    assert!(code == 4_404 && reason.len() <= 123, "{code} {reason}");
    assert!(format!("there is no stream `{name}`").starts_with(&reason));
}

#[tokio::test]
async fn hls_and_words_about_other_files() {
    let service = Service::open().await;
    let playlist = service.get("/hls/live/studio/index.m3u8").await;
    assert!(playlist.head.contains("application/vnd.apple.mpegurl"), "{playlist:?}");
    assert!(playlist.head.contains("cache-control: max-age=1"), "{playlist:?}");
    assert_eq!(service.get("/hls/live/studio/7.m4s").await.status, 404);
    assert_eq!(service.get("/live/live/studio").await.status, 404);
    assert_eq!(service.get("/live/nothing.ts").await.status, 404);
    let ticket = Ticket { ticket: "T".to_owned(), expires_in_s: 60 };
    assert_eq!(serde_json::to_value(ticket).unwrap()["expires_in_s"], 60);
}

#[tokio::test]
async fn a_recording_is_played_with_the_right_to_it() {
    let service = Service::by_token().await;
    let path = "/v1/play/live%2Fstudio?at=2026-11-27T21:15:00+01:00&ticket=";
    assert_eq!(close_code(&service, &format!("{path}T")).await.0, 4_403);
    assert_eq!(close_code(&service, &format!("{path}R")).await.0, 4_410);
    let played = "play live/studio at 2026-11-27T21:15:00+01:00";
    assert_eq!(service.relay.done(), [played]);
}
