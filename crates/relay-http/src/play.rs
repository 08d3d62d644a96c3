//! The protocol between the relay and the player in the page, over a WebSocket.
//!
//! The relay speaks, the player listens:
//!
//! 1. A text message, before the first fragment and again whenever codecs, size or tracks change:
//!
//!    ```json
//!    {"type":"init","codecs":"video/mp4; codecs=\"avc1.64001f,mp4a.40.2\"",
//!     "video":{"name":"H.264","codec":"avc1.64001f","width":1280,"height":720},
//!     "audio":{"name":"AAC","codec":"mp4a.40.2","sampleRate":48000,"channels":2},
//!     "leftOut":[],"play":"ffplay srt://…"}
//!    ```
//!
//!    `codecs` is the type to ask `MediaSource.isTypeSupported` for. `video` or `audio` is `null`
//!    in a stream without. `leftOut` names picture or sound that no browser decodes. `play` is the
//!    command that shows the stream elsewhere, for a browser that cannot.
//! 2. A binary message with the initialization segment.
//! 3. Binary messages, a fragment each. The first begins with the newest key frame, so that there
//!    is a picture at once. The times of the fragments go on for as long as the connection does.
//!
//! Or, if no browser decodes any of the stream: `{"type":"unplayable","reason":…,"play":…}`.
//!
//! With `?sound=no` in the address the sound is left out, for browsers that decode only the
//! picture. With `?at=2026-11-27T20:15:00` the recordings of the stream come from this time on, at
//! their own pace and a second ahead; 4410 then means that they end here.
//!
//! Close codes, each with a reason in words that the player shows: 4401 and 4403 the viewer may not
//! watch, 4404 the stream is not there, 4503 the relay cannot serve it now, 4410 the stream ended.
//! After all but 4401 and 4403 the player calls again, after half a second at first and at most
//! after 15.

use bytes::Bytes;
use punctual_fmp4::{Init, Output, Recent, Track};
use serde_json::json;

/// A message for the player.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlayMessage {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Bytes),
}

/// The stream of one viewer: turns the output of a [`Fragmenter`](punctual_fmp4::Fragmenter) into
/// messages.
#[derive(Clone, Debug)]
pub struct PlayFeed {
    command: String,
    has_sound: bool,
    awaits_key: bool,
}

impl PlayFeed {
    /// A feed for a viewer that has got nothing yet; `command` plays the stream in another
    /// program. Without sound if the viewer asked for that.
    pub fn new(command: String, has_sound: bool) -> Self {
        Self { command, has_sound, awaits_key: true }
    }

    /// The first messages: what the stream had since its newest key frame.
    pub fn begin(&mut self, recent: &Recent) -> Vec<PlayMessage> {
        let mut messages = recent.init().map(|init| self.init(init)).unwrap_or_default();
        let fragments = recent.fragments().iter().cloned().map(Output::Fragment);
        messages.extend(fragments.flat_map(|fragment| self.next(&fragment)));
        messages
    }

    /// The messages for the next piece of output.
    pub fn next(&mut self, output: &Output) -> Vec<PlayMessage> {
        match output {
            Output::Init(init) => self.init(init),
            Output::Fragment(fragment) => {
                let is_left_out = fragment.track == Track::Audio && !self.has_sound;
                if fragment.is_key {
                    self.awaits_key = false;
                }
                if self.awaits_key || is_left_out {
                    return Vec::new();
                }
                vec![PlayMessage::Binary(fragment.bytes.clone())]
            }
            Output::Unplayable(names) => {
                let reason = format!("No browser plays {}.", names.join(" or "));
                let message = json!({"type": "unplayable", "reason": reason, "play": self.command});
                vec![PlayMessage::Text(message.to_string())]
            }
        }
    }

    /// Leaves everything out up to the next key frame: for a viewer that is too slow.
    pub fn skip_to_key_frame(&mut self) {
        self.awaits_key = true;
    }

    fn init(&mut self, init: &Init) -> Vec<PlayMessage> {
        self.awaits_key = true;
        let silent = if self.has_sound { None } else { init.without_audio() };
        let init = silent.as_ref().unwrap_or(init);
        let video = init.video.as_ref().map(|video| {
            json!({"name": video.name, "codec": video.codec,
                   "width": video.width, "height": video.height})
        });
        let audio = init.audio.as_ref().map(|audio| {
            json!({"name": audio.name, "codec": audio.codec,
                   "sampleRate": audio.sample_rate, "channels": audio.channels})
        });
        let message = json!({
            "type": "init", "codecs": init.mime_type(), "video": video, "audio": audio,
            "leftOut": init.left_out, "play": self.command,
        });
        vec![PlayMessage::Text(message.to_string()), PlayMessage::Binary(init.bytes.clone())]
    }
}

/// The player: a module for the page, without dependencies.
pub const PLAYER_JS: &str = include_str!("page/player.js");
