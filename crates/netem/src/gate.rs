/// An end of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkEnd {
    /// Packets enter the link here, before they can be lost.
    Entrance,
    /// Packets that were not lost leave the link here.
    Exit,
}
