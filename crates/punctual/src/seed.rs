use crate::error::Error;

/// A seed for the protocol's random numbers, from the operating system.
pub(crate) fn seed() -> Result<[u8; 32], Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(std::io::Error::other)?;
    Ok(seed)
}
