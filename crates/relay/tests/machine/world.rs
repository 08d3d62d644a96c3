//! A stream in virtual time, with an encoder and viewers.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::PACKET_LEN;
use punctual_relay::{
    Publisher, PublisherId, Start, Stream, StreamEvent, StreamRules, Viewer, ViewerId,
};
use punctual_units::Instant;

use crate::receiver::{CLIP, Receiver};

/// A publisher with the rights of all others.
pub(crate) const ANY: Publisher = Publisher { may_replace: true, is_backup: false };

/// The encoder's messages: seven packets.
pub(crate) const MESSAGE: usize = 7 * PACKET_LEN;

/// The time between two messages of the clip, which has 2 Mb/s.
pub(crate) const STEP: Duration = Duration::from_micros(5_264);

/// A stream and its time.
pub(crate) struct World {
    pub(crate) stream: Stream,
    pub(crate) now: Instant,
    /// The publisher that sends, and where in the clip it is.
    encoder: Option<(PublisherId, usize)>,
    pub(crate) viewers: BTreeMap<ViewerId, Place>,
    pub(crate) events: Vec<StreamEvent>,
}

/// A viewer.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) receiver: Receiver,
    /// It takes nothing until then.
    pub(crate) stalls_until: Instant,
    /// When it got its latest message, and a digest of when it got which.
    pub(crate) latest: Option<Instant>,
    pub(crate) digest: u64,
}

impl World {
    /// A stream with these rules, and an encoder that begins at the clip's start.
    pub(crate) fn new(rules: StreamRules) -> Self {
        let now = Instant::from_millis(1_000);
        let stream = Stream::new("live", rules, now);
        let (viewers, events) = (BTreeMap::new(), Vec::new());
        let mut world = Self { stream, now, encoder: None, viewers, events };
        world.publish(1, 0);
        world
    }

    /// A publisher comes, and sends the clip from this packet on.
    pub(crate) fn publish(&mut self, id: u64, packet: usize) {
        let id = PublisherId(id);
        self.stream.publish(self.now, id, ANY).expect("all have the same rights");
        self.encoder = Some((id, packet * PACKET_LEN));
    }

    /// The next message of the encoder is lost on its way.
    pub(crate) fn lose(&mut self) {
        let (_, at) = self.encoder.as_mut().expect("an encoder sends");
        *at += MESSAGE;
    }

    /// The encoder is gone.
    pub(crate) fn unpublish(&mut self) {
        let (id, _) = self.encoder.take().expect("an encoder sends");
        self.stream.unpublish(self.now, id);
    }

    pub(crate) fn view(&mut self, id: u64) {
        self.view_from(id, None);
    }

    pub(crate) fn view_from(&mut self, id: u64, start: Option<Start>) {
        let viewer = Viewer { start, ..Viewer::default() };
        self.stream.view(ViewerId(id), viewer).expect("there is room");
        self.viewers.insert(ViewerId(id), Place::default());
    }

    pub(crate) fn viewer(&mut self, id: u64) -> &mut Place {
        self.viewers.get_mut(&ViewerId(id)).expect("it views")
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// One message, and the viewers' turn.
    pub(crate) fn step(&mut self) {
        self.now += STEP;
        if let Some((id, at)) = &mut self.encoder {
            if *at >= CLIP.bytes.len() {
                // The clip once more: its clock begins anew.
                *at = 0;
                self.stream.next_source(*id);
            }
            let end = (*at + MESSAGE).min(CLIP.bytes.len());
            let message = CLIP.bytes.slice(*at..end);
            *at = end;
            self.stream.push(self.now, *id, self.now, message);
        }
        self.stream.handle_timeout(self.now);
        self.serve();
    }

    /// Takes a message of the encoder's place instead of the clip's.
    pub(crate) fn push(&mut self, origin: Instant, payload: impl Into<Bytes>) {
        let (id, _) = self.encoder.expect("an encoder sends");
        self.stream.push(self.now, id, origin, payload.into());
    }

    pub(crate) fn serve(&mut self) {
        let now = self.now;
        for (id, place) in &mut self.viewers {
            self.stream.feed(now, *id, |message| {
                if now < place.stalls_until {
                    return false;
                }
                place.receiver.push(message);
                place.latest = Some(now);
                let length = message.payload.len() as u64;
                place.digest = place.digest.wrapping_mul(31) ^ now.as_nanos() ^ length;
                true
            });
        }
        self.events.extend(std::iter::from_fn(|| self.stream.poll_event()));
    }

    /// The viewers that skipped, in order.
    pub(crate) fn skipped(&self) -> Vec<(u64, Duration)> {
        let skip = |event: &StreamEvent| match event {
            StreamEvent::Skipped { viewer, lag } => Some((viewer.0, *lag)),
            _ => None,
        };
        self.events.iter().filter_map(skip).collect()
    }
}
