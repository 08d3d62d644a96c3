//! How many connections each address has.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::NotAdmitted;

/// Counts the connections of each address.
#[derive(Clone, Debug, Default)]
pub struct Places {
    addresses: BTreeMap<IpAddr, usize>,
}

/// A place that a connection has: it is given back with [`Places::leave`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use = "the place is counted until it is given back"]
pub struct Place {
    address: IpAddr,
}

impl Places {
    /// Takes a place for a connection from `address`, if the address has fewer than `most`; `None`
    /// is no limit.
    ///
    /// # Errors
    ///
    /// [`NotAdmitted::TooManyOfAddress`].
    pub fn enter(&mut self, address: IpAddr, most: Option<usize>) -> Result<Place, NotAdmitted> {
        let count = self.addresses.get(&address).copied().unwrap_or(0);
        if most.is_some_and(|most| count >= most) {
            return Err(NotAdmitted::TooManyOfAddress);
        }
        self.addresses.insert(address, count + 1);
        Ok(Place { address })
    }

    /// Gives a place back, and forgets an address that has none any more.
    pub fn leave(&mut self, Place { address }: Place) {
        if let Some(count) = self.addresses.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn an_address_has_at_most_its_number_of_connections() {
        let mut places = Places::default();
        let first = places.enter(HERE, Some(2)).unwrap();
        let second = places.enter(HERE, Some(2)).unwrap();
        assert_eq!(places.enter(HERE, Some(2)), Err(NotAdmitted::TooManyOfAddress));
        let other = places.enter(THERE, Some(2)).unwrap();
        places.leave(first);
        let third = places.enter(HERE, Some(2)).unwrap();
        for place in [second, other, third] {
            places.leave(place);
        }
        assert!(places.addresses.is_empty(), "nobody is remembered");
    }
}
