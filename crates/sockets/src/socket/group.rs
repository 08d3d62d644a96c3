//! Groups: one stream over several links.

use punctual::GroupKind;

use super::Socket;
use super::link::Link;

/// libsrt's numbers of the kinds of groups, and our own for the balancing one.
pub(crate) const BROADCAST: i32 = 1;
/// The number of backup groups.
pub(crate) const BACKUP: i32 = 2;
/// The number of balancing groups, which libsrt does not have.
pub(crate) const BALANCING: i32 = 1_000;

/// The kind of a group by its number.
pub(crate) const fn kind(number: i32) -> Option<GroupKind> {
    match number {
        BROADCAST => Some(GroupKind::Broadcast),
        BACKUP => Some(GroupKind::Backup),
        BALANCING => Some(GroupKind::Balance),
        _ => None,
    }
}

impl Socket {
    /// The number of the kind of the group that the socket is; 0 for a single connection.
    pub(super) fn group_type(&self) -> u64 {
        let group = self.link.get().and_then(Link::group);
        match group.map(punctual::Group::kind) {
            None => 0,
            Some(GroupKind::Broadcast) => 1,
            Some(GroupKind::Backup) => 2,
            Some(_) => 1_000,
        }
    }
}
