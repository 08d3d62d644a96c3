use bytes::Bytes;
use punctual_proto::SendOptions;

/// A message to send, with its options.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// The payload.
    pub payload: Bytes,
    /// The options of the message, such as its origin time if it waited since.
    pub options: SendOptions,
}

impl From<Bytes> for Outgoing {
    /// A message whose origin time is the time of sending.
    fn from(payload: Bytes) -> Self {
        Self { payload, options: SendOptions::default() }
    }
}
