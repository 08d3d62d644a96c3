use crate::SeqNo;

/// Why bytes from the network are not a packet: what was wrong, and what would be right.
///
/// A packet that fails to parse is to be counted and ignored. It says nothing about its sender:
/// anyone can forge it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer bytes than the thing needs.
    #[error("{what}: {got} bytes, at least {need} are needed")]
    TooShort {
        /// The thing that was cut short.
        what: &'static str,
        /// Bytes it needs at least.
        need: usize,
        /// Bytes there were.
        got: usize,
    },
    /// A list of 32-bit words whose length is not a multiple of 4 bytes.
    #[error("{what}: {got} bytes, not a whole number of 4-byte words")]
    PartialWord {
        /// The list.
        what: &'static str,
        /// Its bytes.
        got: usize,
    },
    /// A data packet marked with both keys. Only a key message may name both.
    #[error("data packet: encrypted with both keys (KK = 11), must be none, even or odd")]
    BothKeys,
    /// A control packet of a type that SRT does not define.
    #[error("control packet: unknown type {0:#06x}, known are 0 to 8 and 0x7fff")]
    UnknownControl(u16),
    /// A sequence number of more than 31 bits.
    #[error("{what}: sequence number {word:#010x}, the largest is 0x7fffffff")]
    SeqTopBit {
        /// The packet or field that it was in.
        what: &'static str,
        /// The word found.
        word: u32,
    },
    /// A loss list whose last word opens a range.
    #[error("loss list: the range from {first} has no end, another word must follow")]
    OpenRange {
        /// The first sequence number of the range.
        first: SeqNo,
    },
    /// A range that ends before it begins.
    #[error("{what}: range from {first} to {last} is reversed")]
    ReversedRange {
        /// The packet or field that it was in.
        what: &'static str,
        /// The first sequence number.
        first: SeqNo,
        /// The last sequence number.
        last: SeqNo,
    },
    /// A handshake of a version before 4.
    #[error("handshake: version {0}, the smallest is 4")]
    HandshakeVersion(u32),
    /// An initial sequence number out of range.
    #[error("handshake: initial sequence number {0:#010x}, must be less than 0x7fffffff")]
    HandshakeIsn(u32),
    /// A maximum segment size in which no packet fits.
    #[error("handshake: MSS of {0} bytes, must be 32 to 2147483647")]
    HandshakeMss(u32),
    /// A flow window in which nothing can be under way.
    #[error("handshake: flow window of {0} packets, must be 2 to 2147483647")]
    HandshakeFlowWindow(u32),
    /// A handshake extension longer than what is left of the packet.
    #[error("handshake extension {command}: claims {need} bytes, {got} are left")]
    ExtensionOverrun {
        /// The extension's command.
        command: u16,
        /// Bytes its length field claims.
        need: usize,
        /// Bytes that are there.
        got: usize,
    },
    /// A string extension without a byte.
    #[error("handshake: empty {what}, must be left out instead")]
    EmptyString {
        /// The name of the string.
        what: &'static str,
    },
    /// A string extension over its limit.
    #[error("handshake: {what} of {got} bytes, at most {limit} are allowed")]
    StringTooLong {
        /// The name of the string.
        what: &'static str,
        /// Bytes allowed.
        limit: usize,
        /// Bytes on the wire.
        got: usize,
    },
    /// A handshake extension that may occur once and occurs twice.
    #[error("handshake: more than one {what}, at most one is allowed")]
    RepeatedExtension {
        /// The name of the extension.
        what: &'static str,
    },
}
