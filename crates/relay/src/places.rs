//! How many connections each user and each address has.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::NotAdmitted;

/// Counts the connections of each user and of each address.
#[derive(Clone, Debug, Default)]
pub struct Places {
    users: BTreeMap<String, usize>,
    addresses: BTreeMap<IpAddr, usize>,
}

/// A place that a connection has: it is given back with [`Places::leave`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use = "the place is counted until it is given back"]
pub struct Place {
    user: Option<String>,
    address: IpAddr,
}

impl Places {
    /// Takes a place for a connection of `user` from `address`, if neither has as many as it may
    /// have; `None` is no limit.
    ///
    /// # Errors
    ///
    /// [`NotAdmitted::TooManyConnections`].
    pub fn enter(
        &mut self,
        user: Option<&str>,
        address: IpAddr,
        most_of_user: Option<usize>,
        most_of_address: Option<usize>,
    ) -> Result<Place, NotAdmitted> {
        let of_user = user.and_then(|user| self.users.get(user)).copied().unwrap_or(0);
        let of_address = self.addresses.get(&address).copied().unwrap_or(0);
        let is_full = |count: usize, most: Option<usize>| most.is_some_and(|most| count >= most);
        if user.is_some() && is_full(of_user, most_of_user) || is_full(of_address, most_of_address)
        {
            return Err(NotAdmitted::TooManyConnections);
        }
        if let Some(user) = user {
            self.users.insert(user.to_owned(), of_user + 1);
        }
        self.addresses.insert(address, of_address + 1);
        Ok(Place { user: user.map(str::to_owned), address })
    }

    /// Gives a place back.
    pub fn leave(&mut self, place: Place) {
        if let Some(user) = place.user {
            release(&mut self.users, &user);
        }
        release(&mut self.addresses, &place.address);
    }

    /// The connections of this user.
    pub fn of_user(&self, user: &str) -> usize {
        self.users.get(user).copied().unwrap_or(0)
    }
}

/// Counts one less, and forgets who has none.
fn release<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn a_user_has_at_most_its_number_of_connections_from_all_addresses() {
        let mut places = Places::default();
        let first = places.enter(Some("eve"), HERE, Some(2), None).unwrap();
        let second = places.enter(Some("eve"), THERE, Some(2), None).unwrap();
        assert!(places.enter(Some("eve"), THERE, Some(2), None).is_err());
        let other = places.enter(Some("bob"), THERE, Some(2), None).unwrap();
        places.leave(first);
        let third = places.enter(Some("eve"), THERE, Some(2), None).unwrap();
        for place in [second, other, third] {
            places.leave(place);
        }
        assert_eq!(places.of_user("eve"), 0);
        assert!(places.users.is_empty() && places.addresses.is_empty(), "nobody is remembered");
    }

    #[test]
    fn an_address_has_at_most_its_number_of_connections_of_all_users() {
        let mut places = Places::default();
        let place = places.enter(None, HERE, None, Some(1)).unwrap();
        assert!(places.enter(Some("eve"), HERE, None, Some(1)).is_err());
        assert_eq!(places.of_user("eve"), 0, "a refused caller has no place");
        places.leave(place);
        assert!(places.enter(Some("eve"), HERE, None, Some(1)).is_ok());
    }
}
