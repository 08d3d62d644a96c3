//! Sources that the relay calls: always, or while somebody views.

use std::sync::Arc;
use std::time::Duration;

use punctual_ends::{Connection, Failure, Opener, Pacing, Role, SrtEnd, Stop};
use punctual_relay::PublisherId;
use punctual_relay_access::StreamName;
use punctual_relay_config::{RetryRange, SourceSettings, StreamUri};
use punctual_relay_http::report::{ConnectionRole, EventKind};
use punctual_uri::{Target, Uri};
use tokio::time::Instant;

use crate::connections::NewConnection;
use crate::hub::Hub;
use crate::live_stream::LiveStream;
use crate::serve::{StreamSource, carry};
use crate::settings::Backoff;

/// Pulls a source into its stream until `stop`: again and again, with pauses.
pub(crate) async fn pull(hub: Arc<Hub>, name: StreamName, source: SourceSettings, stop: Stop) {
    match source.uri.as_ref().map(StreamUri::parse) {
        Some(Ok(uri)) => pull_uri(hub, name, uri, source.retry, stop).await,
        Some(Err(error)) => tracing::error!("the source of `{name}`: {error}"),
        None => {}
    }
}

/// Pulls the source at a URI until `stop`.
pub(crate) async fn pull_uri(
    hub: Arc<Hub>,
    name: StreamName,
    uri: Uri,
    retry: RetryRange,
    stop: Stop,
) {
    let mut backoff = Backoff::new(retry);
    while !stop.is_told() && !hub.is_draining() {
        let begun = Instant::now();
        let ended = pull_once(&hub, &name, &uri, &stop).await;
        backoff.was_open(begun.elapsed());
        if stop.is_told() || hub.is_draining() {
            return;
        }
        let pause = backoff.pause();
        let seconds = pause.as_secs_f64();
        let text = match ended {
            Ok(()) => format!("the source of `{name}` has ended; again in {seconds:.1} s"),
            Err(failure) => format!("the source of `{name}`: {failure}; again in {seconds:.1} s"),
        };
        hub.tell(EventKind::Offline, Some(name.as_str()), None, text);
        stop.or(tokio::time::sleep(pause)).await;
    }
}

/// Calls the source once and carries its stream.
async fn pull_once(
    hub: &Arc<Hub>,
    name: &StreamName,
    uri: &Uri,
    stop: &Stop,
) -> Result<(), Failure> {
    let mut opener = opener(uri, stop);
    let Some(opened) = stop.or(opener.open()).await else { return Ok(()) };
    let connection = opened?;
    let known = hub.connected(new(name, uri, &connection));
    let id = PublisherId(known.id);
    match hub.publish(name, id, None, false) {
        Ok(stream) => {
            let mut source = StreamSource::of(connection);
            let is_file = matches!(uri.target, Target::File(_));
            let carried = async {
                loop {
                    carry(hub, &stream, id, &mut source).await;
                    if !is_file {
                        return Ok(());
                    }
                    // The file once more: its clock begins anew, as that of another source.
                    stream.next_source(id);
                    source = StreamSource::of(opener.open().await?);
                }
            };
            let carried = tokio::select! {
                carried = carried => carried,
                () = known.stop.told() => Ok(()),
                () = stop.told() => Ok(()),
            };
            let turn = stream.unpublish(id);
            hub.settle(&stream, turn);
            hub.disconnected(&known);
            carried
        }
        Err(refused) => {
            known.end(refused.to_string());
            hub.disconnected(&known);
            Ok(())
        }
    }
}

/// Opens the source at a URI. A file is read at the pace of its clock.
fn opener(uri: &Uri, stop: &Stop) -> Opener {
    let pacing = Pacing { to_live: true, to_network: true, ..Pacing::default() };
    Opener::new(uri, Role::Source, MESSAGE).with_stop(stop.clone()).with_pacing(pacing)
}

/// Pulls a source while somebody views its stream.
pub(crate) async fn pull_on_demand(
    hub: Arc<Hub>,
    name: StreamName,
    source: SourceSettings,
    stop: Stop,
) {
    let own = Stop::default();
    let close_after = source.close_after;
    let ended = pull(Arc::clone(&hub), name.clone(), source, own.clone());
    tokio::pin!(ended);
    let mut viewed = Instant::now();
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            () = &mut ended => return,
            () = stop.told() => own.tell(),
            _ = look.tick() => {
                let stream = hub.find(name.as_str());
                let viewers = stream.map_or(0, |it: Arc<LiveStream>| it.state().viewers);
                if viewers > 0 {
                    viewed = Instant::now();
                } else if viewed.elapsed() > close_after {
                    own.tell();
                }
            }
        }
    }
}

fn new(name: &StreamName, uri: &Uri, connection: &Connection) -> NewConnection {
    NewConnection {
        role: ConnectionRole::Pull,
        protocol: protocol(uri),
        stream: name.shared(),
        user: None,
        address: connection.socket.as_ref().map_or_else(|| source_name(uri), SrtEnd::peer),
        stream_id: String::new(),
        latency_wish_ms: latency_wish_ms(uri),
        end: connection.socket.clone(),
        traffic: Arc::clone(&connection.traffic),
        admitted: None,
    }
}

/// The name of a source without an address: a file has that of the file.
fn source_name(uri: &Uri) -> String {
    match &uri.target {
        Target::File(file) => {
            let name = file.path.file_name().unwrap_or(file.path.as_os_str());
            name.to_string_lossy().into_owned()
        }
        _ => uri.to_string(),
    }
}

/// The protocol of a URI in one word.
pub(crate) fn protocol(uri: &Uri) -> &'static str {
    match &uri.target {
        Target::Srt(target) if !target.port_config.carriage.is_udp() => "srt+quic",
        Target::Srt(_) => "srt",
        Target::Udp(_) => "udp",
        Target::Tcp(_) => "tcp",
        _ => "file",
    }
}

/// The latency that a URI asks for, in milliseconds.
pub(crate) fn latency_wish_ms(uri: &Uri) -> u32 {
    match &uri.target {
        Target::Srt(target) => {
            u32::try_from(target.config.receive_latency().as_millis()).unwrap_or(u32::MAX)
        }
        _ => 0,
    }
}

/// The longest message that is read: datagrams of a source may be larger than those of SRT.
const MESSAGE: usize = 1_456;

/// The time between two looks at the viewers of a source on demand.
const LOOK: Duration = Duration::from_millis(500);
