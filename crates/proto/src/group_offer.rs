//! The kinds of groups, and the request of a caller that its connection becomes a link of one.

use punctual_wire::{GroupExtension, RejectReason};

/// The bit that distinguishes the ID of a group from a socket ID.
pub(crate) const GROUP_BIT: u32 = 1 << 30;

/// The wire number of balancing groups, which only this implementation knows. libsrt uses 1 and 2,
/// has reserved two more, and rejects every other.
const BALANCE: u8 = 80;

/// The kind of a group: how it uses its links \[grouptype\].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GroupKind {
    /// Every message is sent over every link: nothing is lost while one of them delivers it.
    Broadcast,
    /// One link carries the stream: the stable one of the highest weight. When it fails, another
    /// link takes over.
    Backup,
    /// Each message is sent over one link, in proportion to the capacity of the links. A message
    /// that a link loses, or does not deliver in time, is sent over another link. Only between two
    /// ends of this implementation.
    Balance,
}

impl GroupKind {
    /// The number of the kind in a handshake.
    pub(crate) const fn wire(self) -> u8 {
        match self {
            Self::Broadcast => 1,
            Self::Backup => 2,
            Self::Balance => BALANCE,
        }
    }

    pub(crate) const fn from_wire(kind: u8) -> Option<Self> {
        match kind {
            1 => Some(Self::Broadcast),
            2 => Some(Self::Backup),
            BALANCE => Some(Self::Balance),
            _ => None,
        }
    }
}

/// A caller's request to become a link of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GroupOffer {
    /// The peer's ID of the group.
    pub peer_group: u32,
    /// The kind of the group.
    pub kind: GroupKind,
    /// The link's weight.
    pub weight: u16,
}

impl GroupOffer {
    /// Checks the request: the kind must be known, the ID must be that of a group, and
    /// synchronisation by message numbers is not supported.
    pub(crate) fn check(extension: &GroupExtension) -> Result<Self, RejectReason> {
        let kind = GroupKind::from_wire(extension.kind).ok_or(RejectReason::GROUP)?;
        let is_group = extension.group_id & GROUP_BIT != 0 && extension.group_id >> 31 == 0;
        if !is_group || extension.flags & 1 != 0 {
            return Err(RejectReason::GROUP);
        }
        Ok(Self { peer_group: extension.group_id, kind, weight: extension.weight })
    }
}
