//! The secret of a stream, and the proofs that an end knows it.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The secret of a stream, by which two ends recognise it over a new connection: 128 random bits
/// that its sender chooses. The first connection tells it to the receiver; over the next ones each
/// end proves that it knows it, and does not send it.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct StreamSecret([u8; 16]);

/// Random bytes that an end draws for one connection, so that no proof is good for another one.
pub type Nonce = [u8; 16];

/// A proof that an end knows the secret of a stream: an HMAC-SHA-256.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Proof(pub(crate) [u8; 32]);

/// The nonces of both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonces {
    pub(crate) receiver: Nonce,
    pub(crate) sender: Nonce,
}

impl StreamSecret {
    /// The secret of these bytes; `None` if all are zero.
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// The bytes, to be kept where nobody else reads them.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

/// Does not show the secret.
impl fmt::Debug for StreamSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamSecret(..)")
    }
}

impl Nonces {
    /// The sender's proof.
    pub(crate) fn sender_proof(&self, secret: StreamSecret) -> Proof {
        proof(self.of_sender(secret))
    }

    /// Whether this is the sender's proof. The time of the comparison says nothing about it.
    pub(crate) fn is_sender_proof(&self, secret: StreamSecret, proof: &Proof) -> bool {
        self.of_sender(secret).verify_slice(&proof.0).is_ok()
    }

    /// The receiver's proof, at this position.
    pub(crate) fn receiver_proof(&self, secret: StreamSecret, written: u64, next: u64) -> Proof {
        proof(self.of_receiver(secret, written, next))
    }

    /// Whether this is the receiver's proof, at this position. The time of the comparison says
    /// nothing about it.
    pub(crate) fn is_receiver_proof(
        &self,
        secret: StreamSecret,
        written: u64,
        next: u64,
        proof: &Proof,
    ) -> bool {
        self.of_receiver(secret, written, next).verify_slice(&proof.0).is_ok()
    }

    fn of_sender(&self, secret: StreamSecret) -> Hmac<Sha256> {
        self.keyed(secret, b"punctual resume: sender")
    }

    fn of_receiver(&self, secret: StreamSecret, written: u64, next: u64) -> Hmac<Sha256> {
        let mut hash = self.keyed(secret, b"punctual resume: receiver");
        hash.update(&written.to_be_bytes());
        hash.update(&next.to_be_bytes());
        hash
    }

    /// The label tells the two ends apart, so that the proof of one does not serve the other.
    fn keyed(&self, secret: StreamSecret, label: &[u8]) -> Hmac<Sha256> {
        let mut hash =
            Hmac::<Sha256>::new_from_slice(&secret.0).expect("a key may have any length");
        hash.update(label);
        hash.update(&self.receiver);
        hash.update(&self.sender);
        hash
    }
}

fn proof(hash: Hmac<Sha256>) -> Proof {
    Proof(hash.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(number: u8) -> StreamSecret {
        StreamSecret::new([number; 16]).unwrap()
    }

    #[test]
    fn a_proof_is_good_for_one_secret_one_end_one_connection_and_one_position() {
        let nonces = Nonces { receiver: [1; 16], sender: [2; 16] };
        let of_sender = nonces.sender_proof(secret(1));
        assert!(nonces.is_sender_proof(secret(1), &of_sender));
        assert!(!nonces.is_sender_proof(secret(2), &of_sender));
        assert!(!nonces.is_receiver_proof(secret(1), 0, 0, &of_sender));
        let of_receiver = nonces.receiver_proof(secret(1), 5, 7);
        assert!(nonces.is_receiver_proof(secret(1), 5, 7, &of_receiver));
        assert!(!nonces.is_receiver_proof(secret(1), 6, 7, &of_receiver));
        assert!(!nonces.is_receiver_proof(secret(1), 5, 8, &of_receiver));
        for other in [
            Nonces { receiver: [3; 16], ..nonces },
            Nonces { sender: [3; 16], ..nonces },
            Nonces { receiver: [2; 16], sender: [1; 16] },
        ] {
            assert!(!other.is_sender_proof(secret(1), &of_sender));
            assert!(!other.is_receiver_proof(secret(1), 5, 7, &of_receiver));
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", secret(7)), "StreamSecret(..)");
        assert_eq!(StreamSecret::new([0; 16]), None);
    }
}
