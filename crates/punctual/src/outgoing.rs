use bytes::Bytes;
use punctual_proto::SendOptions;

/// A message that is to be sent, with options of its own.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// The payload.
    pub payload: Bytes,
    /// Such as the time when it originated, if it waited since.
    pub options: SendOptions,
}

impl From<Bytes> for Outgoing {
    /// A message that originates as it is sent.
    fn from(payload: Bytes) -> Self {
        Self { payload, options: SendOptions::default() }
    }
}
