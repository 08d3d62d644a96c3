//! The listening end of a probe: measures, and reports to the caller.

use punctual::{Listener, RejectReason, Socket, Timer, now};
use punctual_ends::{EndLog, srt};
use punctual_probe::Reporter;
use punctual_units::DisplayBytes;
use punctual_uri::{Mode, SrtTarget};

use crate::exit::Failure;
use crate::stop;

/// Serves one probe after the other until it is stopped, or one with `once`. A rendezvous is with
/// one peer and ends with its probe.
pub(super) async fn run(target: SrtTarget, once: bool) -> Result<(), Failure> {
    let stop = stop::on_signals(None);
    if target.mode == Mode::Rendezvous {
        let Some(met) = stop.or(srt::call(&target, super::LARGEST_PAYLOAD)).await else {
            return Ok(());
        };
        let socket = met?;
        srt::announce(&socket);
        let served = stop.or(serve(&socket)).await;
        tracing::info!("{}", sum_up(&socket));
        return served.unwrap_or(Ok(()));
    }
    let listener = srt::listen(&target, super::LARGEST_PAYLOAD, None).await?;
    let log = EndLog::new(listener.local_addr(), false);
    while let Some(accepted) = stop.or(listener.accept()).await {
        let socket = accepted?;
        log.connected(|| srt::announce(&socket));
        let busy = turn_away(&listener, &log);
        let served = tokio::select! {
            served = stop.or(serve(&socket)) => served,
            error = busy => return Err(error),
        };
        log.ended(|| sum_up(&socket));
        match served {
            None => break,
            Some(Err(failure)) => log.lost(failure),
            Some(Ok(())) => {}
        }
        if once {
            break;
        }
    }
    Ok(())
}

/// The packets that have arrived, in words.
fn sum_up(socket: &Socket) -> String {
    let statistics = socket.statistics();
    format!(
        "{}: {} packets arrived, {:#}; {} were missing on the way",
        socket.peer_addr(),
        statistics.packets_received_unique,
        DisplayBytes(statistics.bytes_received),
        statistics.packets_receive_lost,
    )
}

/// Refuses callers during a probe, because two probes at once would measure each other.
async fn turn_away(listener: &Listener, log: &EndLog) -> Failure {
    loop {
        match listener.incoming().await {
            Ok(call) => {
                let remote = call.remote();
                log.refused(format_args!("{remote} must wait: a probe is under way"));
                call.reject(RejectReason::OVERLOAD);
            }
            Err(error) => return error.into(),
        }
    }
}

/// Reports on a connection until it ends.
async fn serve(socket: &Socket) -> Result<(), Failure> {
    let mut reporter = Reporter::new(now());
    let mut timer = Timer::new()?;
    let mut messages = Vec::new();
    loop {
        let moment = now();
        if moment >= reporter.poll_timeout() {
            reporter.observe(moment, &socket.statistics());
        }
        if let Some(report) = reporter.poll_message(moment) {
            // A full buffer shows in the next report, a closed connection when receiving.
            let _ = socket.try_send(&report);
        }
        tokio::select! {
            received = socket.recv_many(&mut messages, BATCH) => {
                // The end of the connection is the end of the probe.
                if received.is_err() {
                    return Ok(());
                }
                for message in messages.drain(..) {
                    reporter.handle_message(message.payload.len());
                }
            }
            () = timer.sleep_until(reporter.poll_timeout()) => {}
        }
    }
}

/// The number of messages that are received at once.
const BATCH: usize = 64;
