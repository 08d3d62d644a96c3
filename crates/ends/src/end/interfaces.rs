//! The interfaces that an end is bound to.

use std::time::Duration;

use punctual_uri::{Target, Uri};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::end::resolve::interface_index;
use crate::failure::Failure;

/// The interfaces that the sockets of an end are bound to, by name and number. When an interface is
/// removed, as a modem or a tunnel is, its sockets hear nothing any more, also if an interface of
/// the same name comes, and the system does not tell them.
#[derive(Clone, Debug)]
pub(crate) struct Interfaces(Vec<(String, u32)>);

impl Interfaces {
    /// The interfaces among these [names], as they are now; `None` if there are none.
    pub(crate) async fn of(names: Vec<String>) -> Option<Self> {
        let mut all = Vec::new();
        for name in names {
            if let Ok(index) = interface_index(&name).await {
                all.push((name, index));
            }
        }
        Some(Self(all)).filter(|it| !it.0.is_empty())
    }

    /// Completes when one of them was removed.
    pub(crate) async fn removed(&self) -> Failure {
        loop {
            sleep(PERIOD).await;
            for (name, index) in &self.0 {
                if interface_index(name).await.ok() != Some(*index) {
                    return Failure::runtime(format!("the interface {name} was removed"));
                }
            }
        }
    }

    /// The same as a task, for an end that has no time to look.
    pub(crate) fn watch(self) -> InterfaceWatch {
        InterfaceWatch(tokio::spawn(async move { self.removed().await }))
    }
}

/// A task that completes when an interface was removed. Dropped, it ends.
pub(crate) struct InterfaceWatch(JoinHandle<Failure>);

impl InterfaceWatch {
    /// Completes when an interface was removed. Cancel safe.
    pub(crate) async fn removed(&mut self) -> Failure {
        (&mut self.0).await.unwrap_or_else(|error| Failure::runtime(error.to_string()))
    }
}

impl Drop for InterfaceWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The interfaces and the local addresses that a URI names.
pub(crate) fn names(uri: &Uri) -> Vec<String> {
    let names = match &uri.target {
        Target::Srt(target) => [target.local_host.as_deref(), target.port_config.device.as_deref()],
        Target::Tcp(target) => [target.adapter.as_deref(), None],
        Target::Udp(target) => [target.adapter.as_deref(), None],
        Target::File(_) | Target::Stdio => [None, None],
    };
    names.into_iter().flatten().map(str::to_owned).collect()
}

/// The time from one look to the next.
const PERIOD: Duration = Duration::from_secs(1);
