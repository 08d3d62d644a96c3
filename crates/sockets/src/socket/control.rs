//! The fields of a message that a call sets or reads.

/// The fields of libsrt's `SRT_MSGCTRL`: a call sets some for the message that it sends, and reads
/// others of a message that was sent or received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MessageControl {
    /// Time to live of a message to send, milliseconds; negative for no limit.
    pub ttl: i32,
    /// Whether a message to send is delivered in order.
    pub in_order: bool,
    /// Of a message to send its origin time; of a received one its due time; microseconds of the
    /// library's clock. 0 stands for the present time.
    pub time: i64,
    /// The sequence number of the first packet of a message that was sent, or of a packet that was
    /// received; -1 before.
    pub sequence: i32,
    /// The message number; to send, -1 lets the library count.
    pub number: i32,
}

impl Default for MessageControl {
    fn default() -> Self {
        Self { ttl: -1, in_order: false, time: 0, sequence: -1, number: -1 }
    }
}
