//! The number of connections, in all and from each address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places for connections.
#[derive(Clone)]
pub(super) struct Places {
    most: usize,
    most_per_address: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// A place for one connection, which is free again when this is dropped.
pub(super) struct Place {
    places: Places,
    address: IpAddr,
}

/// The place of a connection, for tasks that go on with the connection after its request.
#[derive(Clone)]
pub(crate) struct HeldPlace {
    _place: Arc<Place>,
}

impl From<Place> for HeldPlace {
    fn from(place: Place) -> Self {
        Self { _place: Arc::new(place) }
    }
}

impl Places {
    /// This number of places, of which one address gets at most `per_address`.
    pub(super) fn new(most: usize, most_per_address: usize) -> Self {
        Self { most, most_per_address, taken: Arc::default() }
    }

    /// A place for a connection from this address, if there is one.
    pub(super) fn take(&self, address: IpAddr) -> Option<Place> {
        let address = address.to_canonical();
        let mut taken = self.lock();
        if taken.all >= self.most {
            return None;
        }
        let of_address = taken.by_address.entry(address).or_default();
        if *of_address >= self.most_per_address && !address.is_loopback() {
            return None;
        }
        *of_address += 1;
        taken.all += 1;
        Some(Place { places: self.clone(), address })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all -= 1;
        if let Some(of_address) = taken.by_address.get_mut(&self.address) {
            *of_address -= 1;
            if *of_address == 0 {
                taken.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_all_places() {
        let places = Places::new(4, 2);
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|it| it.parse::<IpAddr>().unwrap());
        let mut held: Vec<_> = (0..2).map(|_| places.take(one).unwrap()).collect();
        assert!(places.take(one).is_none());
        held.extend((0..2).map(|_| places.take(other).unwrap()));
        assert!(places.take("192.0.2.3".parse().unwrap()).is_none(), "all are taken");
        held.clear();
        assert!(places.take(one).is_some() && places.lock().by_address.is_empty());
    }

    #[test]
    fn proxies_on_loopback_have_all_places() {
        let places = Places::new(3, 1);
        let held: Vec<_> =
            (0..3).map_while(|_| places.take("::ffff:127.0.0.1".parse().unwrap())).collect();
        assert_eq!(held.len(), 3);
    }
}
