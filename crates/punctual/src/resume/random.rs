//! Random bytes for the secrets of streams and for their proofs.

use std::io;

use punctual_resume::{Nonce, StreamSecret};

/// The secret of a new stream.
pub(super) fn random_secret() -> io::Result<StreamSecret> {
    loop {
        if let Some(secret) = StreamSecret::new(random_nonce()?) {
            return Ok(secret);
        }
    }
}

/// Random bytes for one connection.
pub(super) fn random_nonce() -> io::Result<Nonce> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}
