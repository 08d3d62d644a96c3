use std::fmt;
use std::sync::Arc;

/// Creates a policy for each connection. It is a closure, so it holds the policy's parameters, and
/// any state that several connections share.
///
/// Two factories are equal if one is a clone of the other.
pub struct Factory<P: ?Sized>(Arc<dyn Fn() -> Box<P> + Send + Sync>);

impl<P: ?Sized> Factory<P> {
    /// A factory that calls `make` for each connection.
    pub fn new(make: impl Fn() -> Box<P> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// Creates the policy of one connection.
    pub fn make(&self) -> Box<P> {
        (self.0)()
    }
}

impl<P: ?Sized> Clone for Factory<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: ?Sized> PartialEq for Factory<P> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<P: ?Sized> fmt::Debug for Factory<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_gets_a_policy_with_the_parameters_of_the_factory() {
        let limit = String::from("half the rate");
        let factory = Factory::<str>::new(move || limit.clone().into_boxed_str());
        assert_eq!(&*factory.make(), "half the rate");
        assert_eq!(&*factory.make(), "half the rate");
    }

    #[test]
    fn a_clone_equals_its_factory_and_another_factory_does_not() {
        let factory = || Factory::<str>::new(|| "a policy".into());
        let first = factory();
        assert_eq!(first.clone(), first);
        assert_ne!(factory(), first);
    }
}
