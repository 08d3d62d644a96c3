//! Groups: several URIs that are one end of a stream.

use punctual::{Group, GroupKind, GroupLink, Listener, ListenerConfig, RejectReason};
use punctual_uri::{Mode, SrtTarget, Target, Uri};

use crate::end::addresses::{addresses, from_turn};
use crate::end::quic;
use crate::end::srt::{CallEnds, not_bound};
use crate::failure::Failure;

/// The URIs of a command by ends: one end for all of them if the first has a group, else one for
/// each.
pub(crate) fn bundle<'a>(uris: impl Iterator<Item = &'a Uri>) -> Result<Vec<Vec<Uri>>, Failure> {
    let uris: Vec<Uri> = uris.cloned().collect();
    let Some(first) = uris.first().and_then(target).filter(|it| is_grouped(it)) else {
        if let Some(uri) = uris.iter().find(|uri| target(uri).is_some_and(is_grouped)) {
            let failure = "a group needs all URIs of a command as its links";
            return Err(Failure::usage(failure).at(uri));
        }
        return Ok(uris.into_iter().map(|uri| vec![uri]).collect());
    };
    for uri in &uris {
        let fits = target(uri).is_some_and(|link| {
            link.mode == first.mode && link.group.is_none_or(|kind| Some(kind) == first.group)
        });
        if !fits {
            let failure = "it cannot be a link of the first URI's group, which needs srt:// of \
                           the same mode and grouptype";
            return Err(Failure::usage(failure).at(uri));
        }
    }
    Ok(vec![uris])
}

/// Whether an end is a group, or a listener that accepts groups.
pub(crate) fn is_grouped(target: &SrtTarget) -> bool {
    target.group.is_some() || target.mode == Mode::Listener && target.config.group_connect()
}

/// Calls over every link, with the options of the first one. Of a name with several addresses, each
/// `turn` calls the next.
pub(crate) async fn call(
    kind: GroupKind,
    links: &[Uri],
    payload_size: usize,
    turn: usize,
) -> Result<Group, Failure> {
    let mut targets = links.iter().filter_map(target).peekable();
    let first = *targets.peek().ok_or_else(|| Failure::usage("a group needs a link"))?;
    let config = first.config_for_payload(payload_size).map_err(punctual::Error::from)?;
    let mut calls = Vec::new();
    for target in targets {
        let remote = from_turn(addresses(&target.host, target.port).await?, turn)[0];
        let CallEnds { port, remote } = CallEnds::of_call(target, remote).await?;
        calls.push(GroupLink { port, ..GroupLink::to(remote).with_weight(target.weight) });
    }
    let group = Group::connect(kind, calls, config).await.map_err(|error| explain(kind, error))?;
    tracing::info!(
        "the group is established with {} of {} links, {}",
        group.links().len(),
        links.len(),
        encryption(first)
    );
    Ok(group)
}

/// Adds other causes of a refusal of a group to the failure.
fn explain(kind: GroupKind, error: punctual::Error) -> Failure {
    let refused = error.reject_reason() == Some(RejectReason::GROUP);
    let failure = Failure::from(error);
    match kind {
        GroupKind::Balance if refused => {
            failure.with_advice("and must be Punctual: other programs know no grouptype=balance")
        }
        _ => failure,
    }
}

/// Listens at every port of a group.
pub(crate) async fn listen(links: &[Uri], payload_size: usize) -> Result<Listener, Failure> {
    let mut ports = Vec::new();
    for target in links.iter().filter_map(target) {
        let port = CallEnds::of_listener(target).await?;
        let config = target.config_for_payload(payload_size).map_err(punctual::Error::from)?;
        ports.push(ListenerConfig {
            port,
            connection: config.with_group_connect(true),
            ..ListenerConfig::default()
        });
    }
    let local = ports.first().and_then(|port| port.port.local);
    let bound = Listener::bind_all(ports).await;
    let listener = bound.map_err(|error| not_bound(error, local.filter(|_| links.len() == 1)))?;
    tracing::info!("listening on {}, also for groups", listener.local_addr());
    let ports = links.iter().filter_map(target).map(|target| &target.port_config);
    ports.for_each(quic::announce_certificate);
    Ok(listener)
}

/// Logs the links of a group that called the listener of `target`.
pub(crate) fn announce(group: &Group, target: &SrtTarget) {
    let encryption = encryption(target);
    for link in group.links() {
        let (peer, weight) = (link.remote, link.weight);
        tracing::info!("a group called from {peer}, with a weight of {weight}, {encryption}");
    }
}

/// The encryption that this end has for its links, in words.
fn encryption(target: &SrtTarget) -> &'static str {
    match target.config.passphrase() {
        Some(_) if target.config.enforced_encryption() => "encrypted",
        Some(_) => "encrypted if the other end has the passphrase",
        None if !target.port_config.carriage.is_udp() => "encrypted by QUIC",
        None => "not encrypted",
    }
}

fn target(uri: &Uri) -> Option<&SrtTarget> {
    match &uri.target {
        Target::Srt(target) => Some(target),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundles(uris: &[&str]) -> Result<Vec<usize>, String> {
        let uris: Vec<Uri> = uris.iter().map(|uri| uri.parse().unwrap()).collect();
        let bundles = bundle(uris.iter()).map_err(|failure| failure.to_string())?;
        Ok(bundles.iter().map(Vec::len).collect())
    }

    #[test]
    fn the_first_uri_says_whether_all_are_one_group() {
        let (a, b) = ("srt://a:1?grouptype=backup&weight=2", "srt://b:1?weight=1");
        assert_eq!(bundles(&[a, b]), Ok(vec![2]));
        assert_eq!(bundles(&["srt://a:1", "srt://b:1"]), Ok(vec![1, 1]));
        assert_eq!(bundles(&["srt://:1?groupconnect=1", "srt://:2"]), Ok(vec![2]));
        assert!(bundles(&["srt://a:1", a]).unwrap_err().contains("needs all URIs"));
        assert!(bundles(&[a, "udp://b:1"]).unwrap_err().contains("cannot be a link"));
        assert!(
            bundles(&[a, "srt://b:1?grouptype=broadcast"])
                .unwrap_err()
                .contains("cannot be a link")
        );
        assert!(bundles(&[a, "srt://:1"]).unwrap_err().contains("cannot be a link"));
    }
}
