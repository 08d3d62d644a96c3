//! Requests to one URL: one after the other, tried a few times, in a queue with limited room.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use punctual_relay_access::{Secret, Url, Web, WebError};
use punctual_units::UtcTime;
use thiserror::Error;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::counts::{HookCounts, HookResult};
use crate::event::{HookEvent, HookEventKind};
use crate::request::{body, headers};

/// The queue of a URL. No call waits.
#[derive(Debug)]
pub(crate) struct Deliveries {
    queue: Sender<HookDelivery>,
    worker: JoinHandle<()>,
    counts: Arc<HookCounts>,
    title: String,
    is_full: bool,
}

#[derive(Debug)]
struct HookDelivery {
    id: String,
    kind: HookEventKind,
    body: Bytes,
}

/// The way to the server.
struct HookTarget {
    web: Web,
    key: Option<Secret>,
    title: String,
    counts: Arc<HookCounts>,
}

#[derive(Debug, Error)]
enum DeliveryError {
    #[error("the server answered with {0}")]
    Status(u16),
    #[error(transparent)]
    Web(#[from] WebError),
}

impl Deliveries {
    /// A queue to this URL, whose worker runs on the runtime at hand.
    pub(crate) fn new(
        url: &Url,
        key: Option<&Secret>,
        timeout: Option<Duration>,
        counts: &Arc<HookCounts>,
    ) -> Result<Self, WebError> {
        let web = Web::new(url.clone(), timeout.unwrap_or(TIMEOUT))?;
        let title = url.to_string();
        let (key, counts) = (key.cloned(), Arc::clone(counts));
        let target = HookTarget { web, key, title: title.clone(), counts: Arc::clone(&counts) };
        let (queue, waiting) = channel(QUEUE);
        let worker = tokio::spawn(target.work(waiting));
        Ok(Self { queue, worker, counts, title, is_full: false })
    }

    /// Sends an event, which has this ID.
    pub(crate) fn send(&mut self, id: String, event: &HookEvent) {
        let (kind, body) = (event.kind, body(&id, event));
        match self.queue.try_send(HookDelivery { id, kind, body }) {
            Ok(()) => self.is_full = false,
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {
                self.counts.add(kind, HookResult::LeftOut);
                if !std::mem::replace(&mut self.is_full, true) {
                    tracing::warn!("{}: {QUEUE} requests wait; more are left out", self.title);
                }
            }
        }
    }

    /// Takes no more events. The worker ends once all that wait are sent.
    pub(crate) fn close(self) -> JoinHandle<()> {
        self.worker
    }
}

impl HookTarget {
    async fn work(self, mut waiting: Receiver<HookDelivery>) {
        while let Some(delivery) = waiting.recv().await {
            self.deliver(&delivery).await;
        }
    }

    async fn deliver(&self, delivery: &HookDelivery) {
        let mut pauses = PAUSES.iter();
        loop {
            let Err(error) = self.try_once(delivery).await else {
                return self.counts.add(delivery.kind, HookResult::Done);
            };
            let pause = pauses.next().filter(|_| error.is_worth_another_try());
            let Some(pause) = pause else {
                tracing::warn!("{}: {}: {error}; given up", self.title, delivery.kind);
                return self.counts.add(delivery.kind, HookResult::Failed);
            };
            tracing::debug!("{}: {}: {error}; trying again", self.title, delivery.kind);
            sleep(*pause).await;
        }
    }

    async fn try_once(&self, delivery: &HookDelivery) -> Result<(), DeliveryError> {
        let HookDelivery { id, body, .. } = delivery;
        let headers = headers(self.key.as_ref(), id, UtcTime::from(SystemTime::now()), body);
        let status = self.web.send(headers, body.clone()).await?;
        if status.is_success() { Ok(()) } else { Err(DeliveryError::Status(status.as_u16())) }
    }
}

impl DeliveryError {
    /// Whether the same request may succeed later.
    fn is_worth_another_try(&self) -> bool {
        match self {
            Self::Status(status) => matches!(status, 408 | 425 | 429 | 500..),
            Self::Web(_) => true,
        }
    }
}

/// The most requests that wait.
const QUEUE: usize = 256;
/// The longest time of a request, if no other is set.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pauses before a request is tried again.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];
