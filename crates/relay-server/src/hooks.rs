//! The hooks of the configuration, and the events that start them.

use punctual_relay_config::{Configuration, HookSettings};
use punctual_relay_hooks::{Hook, HookConnection, HookEvent, HookEventKind};
use punctual_relay_http::report::{ConnectionRole, EventKind};
use punctual_units::UtcTime;

use crate::connections::ServedConnection;
use crate::wall;

/// The hooks of a configuration.
///
/// # Errors
///
/// A hook cannot be, in a sentence.
pub(crate) fn of(configuration: &Configuration) -> Result<Vec<Hook>, String> {
    configuration.hooks.iter().map(hook).collect()
}

fn hook(settings: &HookSettings) -> Result<Hook, String> {
    let kinds: Vec<HookEventKind> =
        settings.on.iter().filter_map(|event| event.name().parse().ok()).collect();
    let made = match (&settings.run, &settings.url) {
        (Some(command), _) => Hook::run(&kinds, command.words().to_vec()),
        (None, Some(url)) => {
            let key = settings.secret.as_ref().map(|it| it.secret.clone());
            let url = url.secret.expose().parse();
            let url = url.map_err(|error: punctual_relay_access::UrlError| error.to_string())?;
            Hook::post(&kinds, url, key)
        }
        (None, None) => return Err("a hook has neither a command nor a URL".to_owned()),
    };
    let mut hook = made.map_err(|error| error.to_string())?.for_streams(settings.stream.clone());
    if !settings.timeout.is_zero() {
        hook = hook.with_timeout(settings.timeout);
    }
    if settings.restart {
        hook = hook.with_restart().map_err(|error| error.to_string())?;
    }
    Ok(hook)
}

/// The event of a hook for an event of the relay; `None` for one that only people read.
pub(crate) fn event(
    kind: EventKind,
    stream: Option<&str>,
    connection: Option<HookConnection>,
    text: &str,
) -> Option<HookEvent> {
    let kind = match kind {
        EventKind::Connect => HookEventKind::Connect,
        EventKind::Disconnect => HookEventKind::Disconnect,
        EventKind::Refused => HookEventKind::Refused,
        EventKind::Available => HookEventKind::Available,
        EventKind::Unavailable => HookEventKind::Unavailable,
        EventKind::Online => HookEventKind::Online,
        EventKind::Offline => HookEventKind::Offline,
        EventKind::Read => HookEventKind::Read,
        EventKind::Unread => HookEventKind::Unread,
        EventKind::ForwardUp => HookEventKind::ForwardUp,
        EventKind::ForwardDown => HookEventKind::ForwardDown,
        EventKind::RecordSegmentCreate => HookEventKind::RecordSegmentCreate,
        EventKind::RecordSegmentComplete => HookEventKind::RecordSegmentComplete,
        EventKind::Drain => HookEventKind::Drain,
        EventKind::Switch | EventKind::Skip | EventKind::RecordFailed | EventKind::Reload => {
            return None;
        }
    };
    let mut event = HookEvent::new(kind, UtcTime::from(wall::now()));
    if let Some(stream) = stream {
        event = event.of_stream(stream);
    }
    if let Some(connection) = connection {
        event = event.of_connection(connection);
    }
    event.reason = Some(text.to_owned());
    Some(event)
}

/// A connection as hooks get it, with its ID in the API.
pub(crate) fn described(connection: &ServedConnection, id: String) -> HookConnection {
    HookConnection {
        id,
        protocol: connection.protocol.to_owned(),
        is_pull: connection.role == ConnectionRole::Pull,
        address: Some(connection.address.clone()),
        user: connection.user.clone(),
        query: connection.stream_id.split_once('?').map(|(_, query)| query.to_owned()),
    }
}
