//! A view of the connections of a route.

use punctual_uri::Uri;

use crate::end::Observed;

/// The direction of a stream at a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamDirection {
    /// The connection receives the stream.
    In,
    /// The connection sends the stream.
    Out,
}

/// Sees the connections of a route: for statistics, a display, an interface of operators. `()` sees
/// nothing.
pub trait RouteObserver: Send + Sync + 'static {
    /// Is dropped when an end that was absent has a connection again.
    type Absence: Send;

    /// Does all the `work` with a connection, which carries the stream to or from `name`, and sees
    /// the connection meanwhile.
    fn observe<T: Send>(
        &self,
        name: &str,
        connection: &Observed,
        way: StreamDirection,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send;

    /// The end that `uri` names has no connection until the result is dropped.
    fn absent(&self, uri: &Uri) -> Self::Absence;

    /// The end that `uri` names was lost for good.
    fn lost(&self, uri: &Uri);
}

impl RouteObserver for () {
    type Absence = ();

    fn observe<T: Send>(
        &self,
        _: &str,
        _: &Observed,
        _: StreamDirection,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send {
        work
    }

    fn absent(&self, _: &Uri) {}

    fn lost(&self, _: &Uri) {}
}
