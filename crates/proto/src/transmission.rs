/// The kind of data of a connection, on which both ends must agree \[congestion\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Transmission {
    /// Live messages of one packet each, delivered at their time (congestion "live", messages).
    #[default]
    Live,
    /// Messages of any size, each delivered whole or not at all (congestion "file", messages).
    Messages,
    /// A stream of bytes (congestion "file", no messages).
    Stream,
}
