//! The errors of the calls: libsrt's numbers and our words.

/// An error of a call: its number in libsrt's `SRT_ERRNO`, and the system's error if there was one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The error.
    pub code: Code,
    /// The number of the system's error (`errno`); 0 without one.
    pub system: i32,
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Self { code, system: 0 }
    }
}

impl Failure {
    /// An error that the system reported.
    pub fn of_system(code: Code, error: &std::io::Error) -> Self {
        Self { code, system: error.raw_os_error().unwrap_or(0) }
    }
}

macro_rules! codes {
    ($( $name:ident = $number:literal $text:literal, )*) => {
        /// The number of an error in libsrt's `SRT_ERRNO`.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[repr(i32)]
        pub enum Code {
            $( #[doc = concat!($text, ".")] $name = $number, )*
        }

        impl Code {
            /// The error with this number.
            pub const fn from_number(number: i32) -> Option<Self> {
                match number {
                    $( $number => Some(Self::$name), )*
                    _ => None,
                }
            }

            /// The error in words.
            pub const fn text(self) -> &'static str {
                match self {
                    $( Self::$name => $text, )*
                }
            }
        }
    };
}

codes! {
    Unknown = -1 "an unknown error",
    Success = 0 "no error",
    ConnectSetup = 1000 "the connection could not be set up",
    NoServer = 1001 "the peer did not answer in time",
    ConnectionRejected = 1002 "the peer refused the connection",
    SocketFailed = 1003 "the UDP port could not be opened",
    Security = 1004 "the encryption could not be set up",
    ClosedWhileConnecting = 1005 "the socket was closed by another thread meanwhile",
    ConnectionFailed = 2000 "the connection failed",
    ConnectionLost = 2001 "the connection is broken",
    NotConnected = 2002 "the socket is not connected",
    Resource = 3000 "a resource of the system is exhausted",
    Thread = 3001 "no thread could be started",
    NoBuffer = 3002 "no memory is left for a buffer",
    SystemObject = 3003 "an object of the system could not be made",
    File = 4000 "a file could not be used",
    ReadOffset = 4001 "the file cannot be read from this offset",
    ReadPermission = 4002 "the file cannot be read",
    WriteOffset = 4003 "the file cannot be written from this offset",
    WritePermission = 4004 "the file cannot be written",
    InvalidOperation = 5000 "this operation is not supported",
    Bound = 5001 "this is not possible once the socket is bound",
    Connected = 5002 "this is not possible once the socket connects, is connected or listens",
    InvalidParameter = 5003 "an argument is not valid",
    InvalidSocket = 5004 "there is no socket with this number",
    NotBound = 5005 "the socket must be bound first",
    NotListening = 5006 "the socket does not listen",
    RendezvousNoServer = 5007 "a socket for a rendezvous cannot listen or accept",
    RendezvousUnbound = 5008 "a socket must be bound before a rendezvous",
    InvalidMessageCall = 5009 "this call does not fit the message mode",
    InvalidBufferCall = 5010 "this call does not fit the stream mode",
    AlreadyListening = 5011 "another socket listens on this port",
    LargeMessage = 5012 "the message is too large",
    InvalidEventSet = 5013 "there is no event set with this number",
    EmptyEventSet = 5014 "the event set has no socket",
    BindConflict = 5015 "the address is taken by a socket with other options",
    Again = 6000 "the call would have to wait",
    AgainSend = 6001 "there is no room to send now",
    AgainReceive = 6002 "there is nothing to receive now",
    Timeout = 6003 "the time of the call has run out",
    Congestion = 6004 "the network is congested",
    Peer = 7000 "the peer has reported an error",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_error() {
        assert_eq!(Code::from_number(5004), Some(Code::InvalidSocket));
        assert_eq!(Code::InvalidSocket as i32, 5004);
        assert_eq!(Code::from_number(1), None);
    }
}
