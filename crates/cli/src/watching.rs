//! The view of the program on its connections: the live line, the summaries, and the statistics.

use punctual_ends::Observed;
use punctual_ends::route::{RouteObserver, StreamDirection};
use punctual_uri::Uri;

use crate::live::{Absence, Live};
use crate::stats::StatsFiles;

/// Shows the connections of a command, and writes their statistics.
pub(crate) struct Watching {
    pub(crate) live: Live,
    pub(crate) stats: Option<StatsFiles>,
}

impl RouteObserver for Watching {
    type Absence = Absence;

    async fn observe<T: Send>(
        &self,
        name: &str,
        connection: &Observed,
        way: StreamDirection,
        work: impl Future<Output = T> + Send,
    ) -> T {
        let _watch = self.live.watch(name, connection, way);
        match (&self.stats, connection.stats_end()) {
            (Some(stats), Some(end)) => stats.observe(&end, work).await,
            _ => work.await,
        }
    }

    fn absent(&self, uri: &Uri) -> Absence {
        self.live.absent(uri)
    }

    fn lost(&self, uri: &Uri) {
        self.live.lost(uri);
    }
}
