//! Why a stream takes no further publisher or viewer.

/// Why a stream takes no further publisher or viewer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NotAdmitted {
    /// Another publisher is active, and the rules keep it.
    #[error("another publisher is active")]
    InUse,
    /// The stream has as many viewers as it may have.
    #[error("the stream has as many viewers as it may have")]
    TooManyViewers,
    /// The user views the stream as often as it may.
    #[error("the user views the stream as often as it may")]
    TooManyOfUser,
    /// The address has as many connections as it may have.
    #[error("the address has as many connections as it may have")]
    TooManyOfAddress,
    /// The stream has no publisher and no viewer any more.
    #[error("the stream has ended")]
    Ended,
}
