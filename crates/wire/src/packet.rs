use crate::words::{HEADER_LEN, header_words};
use crate::{ControlPacket, DataPacket, ParseError, SocketId};

/// A datagram that was checked: data or control, told apart by the first bit (draft section 3).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Packet<'a> {
    /// Carries payload.
    Data(DataPacket<'a>),
    /// Carries the protocol's own word.
    Control(ControlPacket<'a>),
}

impl<'a> Packet<'a> {
    /// Checks `datagram`, the payload of one UDP datagram.
    ///
    /// # Errors
    ///
    /// Says what broke the layout. Such a datagram is to be counted and dropped.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let Some((header, body)) = datagram.split_first_chunk() else {
            return Err(ParseError::TooShort {
                what: "packet header",
                need: HEADER_LEN,
                got: datagram.len(),
            });
        };
        let header = header_words(header);
        if header[0] & CONTROL_BIT == 0 {
            DataPacket::from_words(header, body).map(Packet::Data)
        } else {
            ControlPacket::from_words(header, body).map(Packet::Control)
        }
    }
}

/// The destination socket ID of a datagram, without a look at the rest; `None` if it is too short
/// for a header of 16 bytes.
#[inline]
pub fn destination(datagram: &[u8]) -> Option<SocketId> {
    let header = datagram.first_chunk()?;
    Some(SocketId::new(header_words(header)[3]))
}

/// Set in the first word of a control packet.
pub(crate) const CONTROL_BIT: u32 = 0x8000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_datagrams_are_refused() {
        for len in 0..HEADER_LEN {
            let datagram = vec![0x80; len];
            let error = ParseError::TooShort { what: "packet header", need: 16, got: len };
            assert_eq!(Packet::parse(&datagram), Err(error));
            assert_eq!(destination(&datagram), None);
        }
    }

    #[test]
    fn destination_is_the_fourth_word() {
        let mut datagram = vec![0xFF; 40];
        datagram[12..16].copy_from_slice(&[0x01, 0x02, 0x03, 0x04]);
        assert_eq!(destination(&datagram), Some(SocketId::new(0x0102_0304)));
    }
}
