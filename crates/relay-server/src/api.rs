//! The relay as the API sees it.

use std::sync::Arc;
use std::time::Duration;

use punctual_relay_http::report::{
    ConfigProblem, ConnectionReport, HealthReport, RecordingReport, RefusalReport, ReloadReport,
    ServerReport, StreamReport, Tally,
};
use punctual_relay_http::{
    Answer, ConfigSection, Done, EventLog, ExcerptFile, ExcerptTimes, Fault, HlsFile, PlayMessage,
    Relay, SectionChange, StreamAct, View,
};
use tokio::sync::mpsc;

use crate::hub::Hub;
use crate::operation::Operation;
use crate::play::Players;
use crate::wall;
use crate::{play, playback, recording, report};

/// The relay behind the API: its reports, and the verbs of an operator.
pub(crate) struct Api {
    hub: Arc<Hub>,
    operation: Arc<Operation>,
    players: Arc<Players>,
}

impl Api {
    pub(crate) fn new(hub: Arc<Hub>, operation: Arc<Operation>) -> Self {
        Self { hub, operation, players: Arc::default() }
    }

    fn stream_report(&self, name: &str) -> Option<StreamReport> {
        let stream = self.hub.find(name)?;
        let (forwards, recording) = self.operation.attached().reports(&self.hub, name);
        Some(report::stream(&self.hub, &stream, forwards, recording))
    }

    fn stream_reports(&self) -> Vec<StreamReport> {
        let streams = self.hub.streams();
        streams.iter().filter_map(|stream| self.stream_report(stream.name())).collect()
    }

    fn server_report(&self) -> ServerReport {
        let streams = self.stream_reports();
        let refused = self.hub.refusals(|all| {
            let tally = |(reason, count): (&str, u64)| Tally { reason: reason.to_owned(), count };
            all.by_reason().map(tally).collect()
        });
        let is_online = |it: &&StreamReport| it.source.is_some();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        ServerReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.hub.started_at.into(),
            draining: self.hub.is_draining(),
            listeners: self.operation.listeners(),
            streams_online: count(streams.iter().filter(is_online).count()),
            viewers: streams.iter().map(StreamReport::viewer_count).sum(),
            inbound_bps: report::rate(&self.hub, true),
            outbound_bps: report::rate(&self.hub, false),
            calls_admitted: self.hub.calls_admitted(),
            calls_refused: refused,
            hook_runs: self.operation.hook_runs(&self.hub),
            auth_requests: self.operation.auth_requests(),
            publish_uri: self.operation.publish_uri(),
            play_uri: self.operation.play_uri(),
        }
    }

    fn refusal_reports(&self) -> Vec<RefusalReport> {
        self.hub.refusals(|all| {
            let report = |it: &punctual_relay::RefusedCall| RefusalReport {
                at: wall::at(it.at).into(),
                address: it.peer.to_string(),
                stream_id: it.stream_id.clone(),
                stream: None,
                reason: it.reason.to_owned(),
                code: u16::try_from(it.code).ok(),
                text: it.text.clone(),
                count: 1,
            };
            all.latest().map(report).collect()
        })
    }

    fn kicked(&self, id: &str, ban: Option<Duration>) -> Done {
        let absent = || Fault::NotFound(format!("there is no connection `{id}`"));
        let connection = self.hub.by_api_id(id).ok_or_else(absent)?;
        if let Some(time) = ban {
            let peer = connection.peer();
            peer.split(" + ").for_each(|address| self.hub.ban(address, time));
        }
        connection.end("an operator ended it");
        Ok(())
    }

    fn acted(&self, name: &str, act: StreamAct) -> Done {
        let absent = || Fault::NotFound(format!("there is no stream `{name}`"));
        let stream = self.hub.find(name).ok_or_else(absent)?;
        match act {
            StreamAct::Switch { .. } => Err(Fault::Unsupported(
                "the stream has one input; there is nothing to switch to".to_owned(),
            )),
            StreamAct::Record(start) => self.operation.attached().record(&self.hub, name, start),
            StreamAct::Forward { id, start } => {
                self.operation.attached().forward(&self.hub, &stream, &id, start)
            }
            StreamAct::ResetCounters => {
                stream.reset_counters();
                Ok(())
            }
        }
    }
}

impl Relay for Api {
    fn server(&self) -> Answer<'_, ServerReport> {
        Box::pin(async { self.server_report() })
    }

    fn health(&self) -> Answer<'_, HealthReport> {
        Box::pin(async { self.operation.health(&self.hub) })
    }

    fn streams(&self) -> Answer<'_, Vec<StreamReport>> {
        Box::pin(async { self.stream_reports() })
    }

    fn stream<'a>(&'a self, name: &'a str) -> Answer<'a, Option<StreamReport>> {
        Box::pin(async { self.stream_report(name) })
    }

    fn connections<'a>(&'a self, stream: Option<&'a str>) -> Answer<'a, Vec<ConnectionReport>> {
        Box::pin(async move {
            let connections = self.hub.connections.of(stream);
            connections.iter().map(|it| report::connection(&self.hub, it)).collect()
        })
    }

    fn connection<'a>(&'a self, id: &'a str) -> Answer<'a, Option<ConnectionReport>> {
        Box::pin(async { Some(report::connection(&self.hub, &*self.hub.by_api_id(id)?)) })
    }

    fn refusals(&self) -> Answer<'_, Vec<RefusalReport>> {
        Box::pin(async { self.refusal_reports() })
    }

    fn recordings<'a>(&'a self, stream: Option<&'a str>) -> Answer<'a, Vec<RecordingReport>> {
        Box::pin(recording::all(&self.hub, stream))
    }

    fn events(&self) -> &EventLog {
        &self.hub.events
    }

    fn kick<'a>(&'a self, id: &'a str, ban: Option<Duration>) -> Answer<'a, Done> {
        Box::pin(async move { self.kicked(id, ban) })
    }

    fn act<'a>(&'a self, stream: &'a str, act: StreamAct) -> Answer<'a, Done> {
        Box::pin(async move { self.acted(stream, act) })
    }

    fn configuration(&self) -> Answer<'_, serde_json::Value> {
        Box::pin(async { self.operation.configuration() })
    }

    fn stream_section<'a>(&'a self, name: &'a str) -> Answer<'a, Option<ConfigSection>> {
        Box::pin(async { self.operation.section(name) })
    }

    fn change_section(&self, change: SectionChange) -> Answer<'_, Result<ConfigSection, Fault>> {
        Box::pin(async { self.operation.change_section(&self.hub, change).await })
    }

    fn check<'a>(&'a self, file: &'a str) -> Answer<'a, Vec<ConfigProblem>> {
        Box::pin(async { self.operation.check(file) })
    }

    fn reload(&self) -> Answer<'_, Result<ReloadReport, Fault>> {
        Box::pin(async { self.operation.reload(&self.hub).await })
    }

    fn drain(&self) -> Answer<'_, Done> {
        Box::pin(async {
            self.operation.drain(&self.hub);
            Ok(())
        })
    }

    fn view_ts(&self, view: View) -> Answer<'_, Result<mpsc::Receiver<bytes::Bytes>, Fault>> {
        Box::pin(async { play::packets(&self.hub, view).await })
    }

    fn view_player(&self, view: View) -> Answer<'_, Result<mpsc::Receiver<PlayMessage>, Fault>> {
        Box::pin(async { play::player(&self.hub, &self.players, view).await })
    }

    fn view_recording<'a>(
        &'a self,
        view: View,
        at: &'a str,
    ) -> Answer<'a, Result<mpsc::Receiver<PlayMessage>, Fault>> {
        Box::pin(playback::player(&self.hub, view, at))
    }

    fn excerpt<'a>(
        &'a self,
        view: View,
        times: &'a ExcerptTimes,
    ) -> Answer<'a, Result<ExcerptFile, Fault>> {
        Box::pin(playback::excerpt(&self.hub, view, times))
    }

    fn hls<'a>(&'a self, view: View, file: &'a str) -> Answer<'a, Result<HlsFile, Fault>> {
        Box::pin(async { play::hls(&self.hub, &self.players, view, file).await })
    }
}
