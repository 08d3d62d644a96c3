//! The groups whose links call the relay.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use punctual::{AcceptedGroups, CallerInfo, Group, Listener};

/// The groups that call, whichever of the relay's listeners their links call.
#[derive(Default)]
pub(crate) struct GroupCalls {
    /// The groups that are connected, which further links join.
    connected: AcceptedGroups,
    admitted: Mutex<HashMap<GroupName, Weak<AdmittedGroup>>>,
}

/// A group of which a link was admitted.
#[derive(Default)]
struct AdmittedGroup {
    /// The group, once its first link is connected.
    group: OnceLock<Group>,
}

/// The name of a group: its caller's number of it, and the stream ID that all its links send.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct GroupName {
    peer_group: u32,
    stream_id: String,
}

/// Keeps a group known while a link of it is admitted.
pub(crate) struct HeldGroup(Arc<AdmittedGroup>);

/// The group has as many links as a group may have.
#[derive(Debug)]
pub(crate) struct TooManyLinks;

impl GroupCalls {
    /// Lets links that call `listener` join the groups of all listeners.
    pub(crate) fn share_with(&self, listener: &Listener) {
        listener.share_groups(&self.connected);
    }

    /// Whether the caller is a further link of a group that was admitted: it is no further
    /// publisher and no further viewer.
    pub(crate) fn knows(&self, caller: &CallerInfo) -> bool {
        let Some(name) = GroupName::of(caller) else { return false };
        let admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.get(&name).is_some_and(|held| held.strong_count() > 0)
    }

    /// Notes that the caller was admitted, if it is a link of a group.
    ///
    /// # Errors
    ///
    /// Its group has [`MOST_LINKS`].
    pub(crate) fn admit(&self, caller: &CallerInfo) -> Result<Option<HeldGroup>, TooManyLinks> {
        let Some(name) = GroupName::of(caller) else { return Ok(None) };
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.retain(|_, held| held.strong_count() > 0);
        let held = admitted.get(&name).and_then(Weak::upgrade).unwrap_or_default();
        let connected = held.group.get().map_or(0, |group| group.links().len());
        // One holder is here, and the others are links that are about to connect, or the first.
        if connected + Arc::strong_count(&held) > MOST_LINKS {
            return Err(TooManyLinks);
        }
        admitted.insert(name, Arc::downgrade(&held));
        Ok(Some(HeldGroup(held)))
    }
}

impl HeldGroup {
    /// Notes that the first link is connected.
    pub(crate) fn connected(&self, group: &Group) {
        // There is one first link.
        let _ = self.0.group.set(group.clone());
    }
}

impl GroupName {
    fn of(caller: &CallerInfo) -> Option<Self> {
        let peer_group = caller.group?.peer_group;
        Some(Self { peer_group, stream_id: caller.stream_id.clone() })
    }
}

/// The most links of one group: each is a connection, of which an address may have few.
const MOST_LINKS: usize = 16;

#[cfg(test)]
mod tests {
    use punctual::{GroupKind, GroupOffer};

    use super::*;

    fn caller(peer_group: u32, stream_id: &str) -> CallerInfo {
        let group = GroupOffer { peer_group, kind: GroupKind::Broadcast, weight: 0 };
        CallerInfo {
            remote: ([192, 0, 2, 1], 40_000).into(),
            stream_id: stream_id.to_owned(),
            peer_version: 0x0001_0500,
            group: Some(group),
        }
    }

    #[test]
    fn a_group_is_known_while_one_of_its_links_is_admitted() {
        let groups = GroupCalls::default();
        let link = caller(1, "publish:a");
        assert!(!groups.knows(&link));
        let first = groups.admit(&link).unwrap();
        let second = groups.admit(&link).unwrap();
        assert!(groups.knows(&link));
        assert!(!groups.knows(&caller(2, "publish:a")) && !groups.knows(&caller(1, "publish:b")));
        drop(first);
        assert!(groups.knows(&link), "the second link is still there");
        drop(second);
        assert!(!groups.knows(&link));
        assert!(groups.admit(&CallerInfo { group: None, ..link }).unwrap().is_none());
    }

    #[test]
    fn the_links_of_a_group_are_bounded() {
        let groups = GroupCalls::default();
        let link = caller(1, "publish:a");
        let held: Vec<_> = (0..MOST_LINKS).map(|_| groups.admit(&link).unwrap()).collect();
        assert!(groups.admit(&link).is_err());
        assert!(groups.admit(&caller(2, "publish:a")).is_ok());
        drop(held);
        assert!(groups.admit(&link).is_ok());
    }
}
