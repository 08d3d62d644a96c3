//! The model of glitches beside streams in virtual time that are recovered as it says.

#![forbid(unsafe_code)]

mod recovered;
mod setting;

use std::time::Duration;

use punctual_probe::model::glitch::{Effort, WantedTime};

use setting::Setting;

const ONCE: Effort = Effort::ONCE;
const TWICE: Effort = Effort { datagrams: 2, copies: 0 };
const COPIED: Effort = Effort { datagrams: 4, copies: 1 };

/// 8 Mb/s in packets of 1000 bytes over 50 ms, which loses 5 % each way.
const USUAL: Setting = Setting {
    loss: 0.05,
    return_loss: 0.05,
    burst: 1.0,
    buffer: Duration::from_millis(130),
    usual: ONCE,
    last: ONCE,
    wanted: WantedTime::ByPacket,
    chunks: 2_000,
};

#[test]
fn single_losses_glitch_as_often_as_the_model_says() {
    for (buffer, loss) in [(80, 0.02), (130, 0.05), (190, 0.1)] {
        USUAL.with_buffer(buffer).with_loss(loss, loss).agrees(0.97);
    }
    USUAL.with_loss(0.05, 0.2).agrees(0.97);
}

/// Packets that are lost side by side share a NAK here, and so are late together; the model has a
/// NAK for each of them.
#[test]
fn naks_in_two_datagrams_and_copies_do_as_much_as_the_model_says() {
    let twice = Setting { usual: TWICE, last: TWICE, ..USUAL };
    twice.agrees(0.95);
    for copies in [1, 2] {
        let last = Effort { datagrams: 4, copies };
        Setting { usual: TWICE, last, chunks: 4_000, ..USUAL }.with_loss(0.1, 0.1).agrees(0.9);
    }
    // With copies in all rounds.
    let copied = Effort { datagrams: 2, copies: 1 };
    Setting { usual: copied, last: copied, ..USUAL }.with_loss(0.1, 0.1).agrees(0.9);
}

#[test]
fn short_bursts_glitch_as_often_as_the_model_says() {
    let bursts = Setting { burst: 2.0, ..USUAL };
    bursts.with_loss(0.1, 0.0).agrees(0.97);
    bursts.agrees(0.9);
    let copied = Setting { usual: TWICE, last: COPIED, ..bursts };
    copied.with_loss(0.1, 0.0).agrees(0.97);
    copied.with_loss(0.1, 0.1).agrees(0.85);
}

/// A burst on the way back takes the NAKs of several runs at once, which the model
/// counts one by one.
#[test]
fn long_bursts_glitch_no_more_often_than_the_model_says_and_a_third_of_it() {
    for (burst, buffer, lossless_back, least) in [(5.0, 130, 0.85, 0.6), (15.0, 190, 0.5, 0.35)] {
        let bursts = Setting { burst, ..USUAL }.with_buffer(buffer);
        bursts.with_loss(0.1, 0.0).agrees(lossless_back);
        bursts.agrees(least);
        let copied = Setting { usual: TWICE, last: COPIED, ..bursts };
        copied.with_loss(0.1, 0.0).agrees(lossless_back);
        copied.with_loss(0.1, 0.1).agrees(least);
    }
}

#[test]
fn chunks_that_are_wanted_as_a_whole_glitch_as_the_model_says() {
    let whole = Setting { wanted: WantedTime::ByChunk, ..USUAL };
    whole.agrees(0.95);
    whole.with_buffer(70).with_loss(0.02, 0.02).agrees(0.95);
    Setting { burst: 5.0, ..whole }.with_loss(0.1, 0.05).agrees(0.7);
}
