//! Sends a stream at its times.

use bytes::Bytes;
use punctual::{Instant, Timer, now};
use punctual_metrics::write_stamp;

use crate::backend::real::{StreamTimes, micros};
use crate::run::Setup;

/// Sends stamped messages at their times from `start` on, each by `message`, until that says that
/// there is no use. Gives how many there were.
pub(crate) async fn send<F>(
    setup: &Setup,
    start: Instant,
    mut message: impl FnMut(Bytes) -> F,
) -> Result<u64, String>
where
    F: Future<Output = bool>,
{
    let mut timer = Timer::new().map_err(|error| format!("a timer: {error}"))?;
    let mut sent = 0;
    for due in StreamTimes::new(setup) {
        timer.sleep_until(start + due).await;
        let mut payload = vec![0; setup.payload];
        let at = micros(now());
        write_stamp(&mut payload, sent, at, at).map_err(|error| error.to_string())?;
        if !message(payload.into()).await {
            break;
        }
        sent += 1;
    }
    Ok(sent)
}
