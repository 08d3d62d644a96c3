//! The groups whose links call the relay.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use punctual::{AcceptedGroups, CallerInfo, Listener};

/// The groups that call, whichever of the relay's listeners their links call.
#[derive(Default)]
pub(crate) struct GroupCalls {
    /// The groups that are connected, which further links join.
    connected: AcceptedGroups,
    admitted: Mutex<HashMap<GroupName, Weak<()>>>,
}

/// The name of a group: its caller's number of it, and the stream ID that all its links send.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct GroupName {
    peer_group: u32,
    stream_id: String,
}

/// Keeps a group known while a link of it is admitted.
#[derive(Clone)]
pub(crate) struct HeldGroup(#[expect(dead_code, reason = "it counts holders")] Arc<()>);

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
    pub(crate) fn admit(&self, caller: &CallerInfo) -> Option<HeldGroup> {
        let name = GroupName::of(caller)?;
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.retain(|_, held| held.strong_count() > 0);
        let held = admitted.get(&name).and_then(Weak::upgrade).unwrap_or_default();
        admitted.insert(name, Arc::downgrade(&held));
        Some(HeldGroup(held))
    }
}

impl GroupName {
    fn of(caller: &CallerInfo) -> Option<Self> {
        let peer_group = caller.group?.peer_group;
        Some(Self { peer_group, stream_id: caller.stream_id.clone() })
    }
}

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
        let first = groups.admit(&link);
        let second = groups.admit(&link);
        assert!(groups.knows(&link));
        assert!(!groups.knows(&caller(2, "publish:a")) && !groups.knows(&caller(1, "publish:b")));
        drop(first);
        assert!(groups.knows(&link), "the second link is still there");
        drop(second);
        assert!(!groups.knows(&link));
        assert!(groups.admit(&CallerInfo { group: None, ..link }).is_none());
    }
}
