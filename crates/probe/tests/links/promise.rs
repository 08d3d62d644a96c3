//! A stream that is set up as a probe of its link recommends does as well as promised.

use std::time::Duration;

use punctual_netem::{Loss, PathProfile, presets};
use punctual_probe::{
    BothEnds, Constraints, Expected, Measurement, OtherPrograms, ProbeConfig, ProbePeer,
    RateVerdict, Recommendation, StepKind, StepResult, document, recommend,
};
use punctual_proto::{Config, MaxBandwidth, RetransmitAlgorithm};
use punctual_sim::{End, HostConfig, RateSchedule, StreamConfig, StreamOutcome, Transport, World};
use punctual_units::Bitrate;

use crate::probing::probe;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// The options that a recommendation means for two Punctual ends.
fn options_of_punctual(recommendation: &Recommendation, both_ends: &BothEnds) -> Config {
    options(recommendation)
        .with_latency(both_ends.need.latency)
        .and_then(|config| config.with_loss_target(both_ends.need.sender_target))
        .expect("a recommendation is legal")
        .with_retransmit_algorithm(RetransmitAlgorithm::Deadline)
}

/// The options of both ends that a recommendation means for any SRT program.
fn options(recommendation: &Recommendation) -> Config {
    Config::default()
        .with_latency(recommendation.latency)
        .and_then(|config| config.with_reorder_tolerance(recommendation.reorder_tolerance))
        .and_then(|config| config.with_payload_size(recommendation.payload))
        .expect("a recommendation is legal")
        .with_max_bandwidth(MaxBandwidth::Absolute(recommendation.max_bandwidth))
        .with_retransmit_algorithm(recommendation.algorithm.into())
}

/// Three minutes of a stream over the path, with the same options at both ends.
pub(crate) fn stream_with(
    path: &PathProfile,
    seed: u64,
    config: &Config,
    rate: Bitrate,
    payload: usize,
) -> StreamOutcome {
    let mut world = World::new(seed);
    let (from, to) = (world.add_host(HostConfig::default()), world.add_host(HostConfig::default()));
    let there = world.add_link(path.up.clone());
    let back = world.add_link(path.down.clone());
    world.set_route(from, to, &[there]).expect("a route");
    world.set_route(to, from, &[back]).expect("a route");
    let stream = StreamConfig {
        transport: Transport::Srt {
            sender: config.clone(),
            receiver: config.clone(),
            caller: End::Sender,
        },
        rate: RateSchedule::constant(rate),
        payload,
        start: Duration::ZERO,
        duration: Duration::from_secs(180),
        from,
        to,
        series: Some(Duration::from_secs(1)),
    };
    let stream = world.add_stream(stream).expect("a stream");
    // A call that is lost on the way lets the stream begin later.
    world.run_for(Duration::from_secs(190) + config.receive_latency() * 3);
    world.outcome(stream)
}

/// The outcome of a stream, and the promise of its recommendation.
struct Outcome {
    promised: Expected,
    sent: u64,
    lost: u64,
    /// Whether the median round trip shows that there was a queue at the link most of the time.
    queued: bool,
    recommendation: Recommendation,
    measurement: Measurement,
}

impl Outcome {
    fn share(&self) -> f64 {
        self.lost as f64 / self.sent as f64
    }

    /// Whether the link carried the stream, and lost no more of it than was promised.
    fn is_kept(&self) -> bool {
        !self.queued && self.share() <= self.promised.at_most
    }
}

/// Probes a path and streams over another (or the same) as recommended for any programs, and for
/// Punctual at both ends if that is something else; no message is refused.
#[track_caller]
fn probe_and_stream(
    name: &str,
    probed: &PathProfile,
    streamed: &PathProfile,
) -> (Outcome, Option<Outcome>) {
    let measurement = probe(probed, 1, &ProbeConfig::default(), ProbePeer::Punctual);
    let it = recommend(&measurement, &Constraints::default()).expect("enough was measured");
    let any = stream(name, streamed, &measurement, &it, (options(&it), it.expected));
    let punctual = it.both_ends.map(|both_ends| {
        let name = format!("{name}, both ends");
        let options = options_of_punctual(&it, &both_ends);
        stream(&name, streamed, &measurement, &it, (options, both_ends.expected))
    });
    (any, punctual)
}

/// Three minutes of the recommended stream, set up so, and this expected of it.
#[track_caller]
fn stream(
    name: &str,
    path: &PathProfile,
    measurement: &Measurement,
    recommendation: &Recommendation,
    (options, promised): (Config, Expected),
) -> Outcome {
    let (rate, payload) = (recommendation.stream_rate, recommendation.payload);
    let outcome = stream_with(path, 2, &options, rate, payload);
    let sent = outcome.messages_sent;
    let lost = sent - outcome.messages_received;
    let mut rtts: Vec<Duration> = outcome.series.iter().map(|now| now.sender.rtt).collect();
    rtts.sort_unstable();
    let rtt = rtts[rtts.len() / 2];
    let usual = measurement.delay.rtt.expect("round trips").median;
    let queued = rtt > usual * 2 + MS(60);
    let (recommendation, measurement) = (recommendation.clone(), measurement.clone());
    let it = Outcome { promised, sent, lost, queued, recommendation, measurement };
    println!(
        "{name}: {rate:#} at {} ms, sustained {:?}, expected {:.7} at most {:.7}, got {:.7}, RTT \
         {usual:?} then {rtt:?}, again {:.4}, late {}, dropped by the sender {}",
        options.receive_latency().as_millis(),
        it.measurement.rates.sustained.map(Bitrate::as_bits_per_sec),
        promised.share,
        promised.at_most,
        it.share(),
        outcome.sender.packets_retransmitted as f64 / sent as f64,
        outcome.receiver.packets_receive_dropped,
        outcome.sender.packets_send_dropped,
    );
    let tried = it.measurement.rates.sustained >= Some(it.recommendation.stream_rate);
    let told = it.recommendation.warnings.iter().any(|text| text.contains("no steady rate"));
    assert_eq!(tried, !told, "{name}: {:?}", it.recommendation.warnings);
    assert_eq!(outcome.messages_refused, 0, "{name}: the rate is not sustained");
    it
}

/// A stream over the very path that was probed loses no more than was promised, between two
/// Punctual ends neither.
#[track_caller]
fn promise(name: &str, path: &PathProfile) -> Outcome {
    let (any, punctual) = probe_and_stream(name, path, path);
    for it in [Some(&any), punctual.as_ref()].into_iter().flatten() {
        assert!(it.is_kept(), "{name}: {}, queued: {}", it.share(), it.queued);
    }
    any
}

/// On a link whose course is left to chance, a stream meets another course than the probe did.
/// As well as promised then means, of several courses, each streamed for three minutes:
///
/// - nine of ten streams are carried, and lose no more than the promised maximum: it is the end
///   of a 95 % interval, and one stream may have all the bad luck
/// - the median stream loses no more than three times the mean expected loss
///
/// These courses were not used when the rules of recommendations were made.
#[track_caller]
fn promise_over_courses(name: &str) -> Vec<Outcome> {
    let preset = presets::find(name).expect("a preset");
    let one = |course: u64| {
        let (probed, streamed) = (preset.path(course), preset.path(course + 100));
        probe_and_stream(&format!("{name} {course}"), &probed, &streamed)
    };
    let (all, punctual): (Vec<_>, Vec<_>) = (FIRST_COURSE..).take(COURSES).map(one).unzip();
    over_courses(name, &all);
    // Courses without a recommendation of deadline-aware retransmission do not count.
    let punctual: Vec<Outcome> = punctual.into_iter().flatten().collect();
    if punctual.len() * 2 > COURSES {
        over_courses(&format!("{name}, both ends"), &punctual);
    }
    let moving = all.iter().filter(|it| it.measurement.changes).count();
    assert!(moving * 5 >= all.len() * 4, "{name}: {moving} of {} found to change", all.len());
    all
}

#[track_caller]
fn over_courses(name: &str, all: &[Outcome]) {
    let courses = all.len();
    let expected = all.iter().map(|it| it.promised.share).sum::<f64>() / courses as f64;
    let mut shares: Vec<f64> = all.iter().map(Outcome::share).collect();
    shares.sort_by(f64::total_cmp);
    let median = shares[courses / 2];
    let kept = all.iter().filter(|it| it.is_kept()).count();
    println!("{name}: expected {expected:.5}, median {median:.5}, kept {kept} of {courses}");
    assert!(median <= expected * 3.0, "{name}: {median}, and {expected} was expected");
    assert!((courses - kept) * 10 <= COURSES, "{name}: {kept} of {courses} promises kept");
}

const FIRST_COURSE: u64 = 1_000;
const COURSES: usize = 10;

/// The laboratory link with this loss in both directions.
fn lab(loss: &Loss) -> PathProfile {
    let mut path = presets::find("lab").expect("a preset").path(1);
    for link in [&mut path.up, &mut path.down] {
        link.config = link.config.clone().with_loss(loss.clone()).expect("a share");
    }
    path
}

fn preset(name: &str) -> PathProfile {
    presets::find(name).expect("a preset").path(11)
}

#[test]
fn the_promise_holds_on_the_laboratory_link_with_5_percent_of_loss() {
    let it = promise("lab", &lab(&Loss::Random(0.05)));
    assert!(!it.measurement.changes && it.promised.at_most < 1e-3);
}

#[test]
fn punctual_peers_are_advised_less_latency_than_other_programs() {
    // The loss of retransmissions, a twentieth of a twentieth of the packets, is measured within a
    // fifth: in some courses it forbids the lower latency.
    let advised = (1..=5).filter_map(|seed| {
        let path = lab(&Loss::Random(0.05));
        let measurement = probe(&path, seed, &ProbeConfig::default(), ProbePeer::Punctual);
        let it = recommend(&measurement, &Constraints::default()).expect("enough was measured");
        Some((it.both_ends?, it, measurement))
    });
    let advised: Vec<_> = advised.collect();
    assert!(advised.len() >= 3, "{} of 5", advised.len());
    let (both_ends, it, measurement) = &advised[0];
    assert!(both_ends.need.latency < it.latency && both_ends.need.overhead < 0.06, "{both_ends:?}");
    let uris = it.uris("srt", "host:4200", &[]);
    let latency = format!("?latency={}", both_ends.need.latency.as_millis());
    assert!(uris.punctual.contains(&format!("{latency}&retransmitalgo=deadline")), "{uris:?}");
    assert!(uris.punctual_listener.contains(&latency), "{uris:?}");
    let others = uris.others.as_ref().expect("they speak SRT over UDP");
    let OtherPrograms { srt_live_transmit, srt_live_transmit_listener, ffmpeg, .. } = others;
    for uri in [srt_live_transmit, srt_live_transmit_listener, ffmpeg] {
        assert!(uri.contains(&format!("latency={}", it.latency.as_millis())), "{uris:?}");
        assert!(!uri.contains("deadline") && !uri.contains("losstarget"), "{uris:?}");
    }
    let over_quic = it.uris("srt+quic", "host:443", &[]);
    assert!(over_quic.punctual.starts_with("srt+quic://host:443?latency="), "{over_quic:?}");
    assert_eq!(over_quic.others, None);
    let why = it.why.iter().find(|why| why.setting == "both_ends").expect("a reason");
    assert!(why.text.starts_with("deadline-aware retransmission"), "{why:?}");
    assert!(it.why.iter().all(|why| !why.text.contains("  ")), "{:?}", it.why);
    let json = document(measurement, Ok((it, &uris)));
    let told = &json["recommendation"]["both_ends"];
    assert_eq!(told["retransmit_algorithm"], "deadline");
    assert!(told["latency_ms"].as_f64() < json["recommendation"]["latency_ms"].as_f64(), "{told}");
}

/// The maximum bandwidth keeps answers waiting, longer at a low rate.
#[test]
fn two_punctual_ends_reach_the_target_at_any_rate() {
    for (rtt, loss, target, rate) in
        [(20, 0.05, 1e-6, 8), (40, 0.05, 1e-5, 8), (40, 0.05, 1e-4, 2), (60, 0.1, 1e-5, 6)]
    {
        let mut path = lab(&Loss::Random(loss));
        path.up.config.delay = MS(rtt) / 2;
        path.down.config.delay = MS(rtt) / 2;
        let measurement = probe(&path, 2, &ProbeConfig::default(), ProbePeer::Punctual);
        let constraints =
            Constraints { target, rate: Some(Bitrate::from_mbps(rate)), ..Constraints::default() };
        let it = recommend(&measurement, &constraints).expect("enough was measured");
        let both_ends = it.both_ends.expect("something better");
        assert!(both_ends.need.latency <= it.latency, "{both_ends:?}, {:?}", it.latency);
        let options = options_of_punctual(&it, &both_ends);
        let name = format!("{rtt} ms, {loss}, {target}, {rate} Mb/s, {both_ends:?}");
        let got = stream(&name, &path, &measurement, &it, (options, both_ends.expected));
        // The most that chance may add to the allowed number.
        let allowed = target * got.sent as f64;
        let most = allowed + 3.0 * allowed.sqrt() + 1.0;
        assert!(!got.queued && got.lost as f64 <= most, "{name}: {} of {}", got.lost, got.sent);
    }
}

#[test]
fn the_promise_holds_with_1_percent_of_loss_in_bursts() {
    let loss = Loss::GilbertElliott { p: 0.01 / 0.99 / 5.0, r: 0.2, good_loss: 0.0, bad_loss: 1.0 };
    let it = promise("bursts", &lab(&loss));
    let bursts = it.measurement.losses.bursts.expect("there were some");
    assert!((3.5..7.0).contains(&bursts.mean), "{bursts:?}");
}

/// Found by trying courses: every rate fails when it is tried for a while.
#[test]
fn a_link_without_a_steady_rate_is_reported_in_words_and_json() {
    let path = presets::find("handover").expect("a preset").path(2);
    let measurement = probe(&path, 1, &ProbeConfig::default(), ProbePeer::Punctual);
    assert_eq!(measurement.rates.sustained, None, "{:?}", measurement.rates.steps);
    let it = recommend(&measurement, &Constraints::default()).expect("enough was measured");
    let said = it.warnings.iter().any(|text| text.contains("no steady rate was found"));
    assert!(said, "{:?}", it.warnings);
    let json = document(&measurement, Ok((&it, &it.uris("srt", "h:1", &[]))));
    assert!(json["sustained_bps"].is_null() && json["changes"] == true, "{json}");
    let warning = json["recommendation"]["warnings"][1].as_str().expect("a warning");
    assert!(warning.contains("no steady rate was found"), "{warning}");
}

#[test]
fn the_promise_holds_without_reports_of_the_listener() {
    let path = lab(&Loss::Random(0.01));
    let measurement = probe(&path, 1, &ProbeConfig::default(), ProbePeer::Other);
    assert!(!measurement.changes, "{:?}", measurement.rates.steps);
    let rtt = measurement.delay.rtt.expect("round trips");
    assert!(rtt.max < MS(30), "the initial RTT of a connection does not count: {rtt:?}");
    let it = recommend(&measurement, &Constraints::default()).expect("enough was measured");
    let outcome = stream_with(&path, 2, &options(&it), it.stream_rate, it.payload);
    let lost = (outcome.messages_sent - outcome.messages_received) as f64;
    let share = lost / outcome.messages_sent as f64;
    assert!(share <= it.expected.at_most, "{share}, {:?}", it.expected);
    assert!(it.warnings.iter().any(|text| text.contains("sender's side alone")));
}

#[test]
fn the_promise_holds_on_a_path_that_drops_long_packets() {
    let it = promise("mtu-drop", &preset("mtu-drop"));
    assert!(it.recommendation.payload + 16 <= 1_394, "{}", it.recommendation.payload);
    assert!(it.recommendation.stream_rate < Bitrate::from_mbps(1));
}

#[test]
fn the_promise_holds_between_continents() {
    let it = promise("intercontinental", &preset("intercontinental"));
    assert!(!it.measurement.changes && it.promised.at_most < 1e-3);
}

#[test]
fn the_promise_holds_from_wifi_to_wifi() {
    let it = promise("wifi-to-wifi", &preset("wifi-to-wifi"));
    assert!(!it.measurement.changes && it.promised.at_most < 1e-3);
}

#[test]
fn the_promise_holds_on_a_mobile_link() {
    let it = promise("mobile", &preset("mobile"));
    let both_ends = it.recommendation.both_ends.expect("deadline-aware retransmission does better");
    let others = &it.recommendation;
    let needs_less = both_ends.need.latency < others.latency;
    let loses_less = both_ends.expected.seen < others.expected.seen;
    assert!(
        both_ends.need.latency <= others.latency && (needs_less || loses_less),
        "{both_ends:?}"
    );
    // Its jitter keeps packets together: what pairs tell is no capacity.
    let capacity = it.measurement.rates.capacity;
    assert!(capacity.is_none_or(|capacity| capacity <= Bitrate::from_mbps(50)), "{capacity:?}");
}

#[test]
fn deadline_aware_retransmission_is_advised_on_mobile_links() {
    for course in 1..=4 {
        let path = presets::find("mobile").expect("a preset").path(course);
        let measurement = probe(&path, course, &ProbeConfig::default(), ProbePeer::Punctual);
        let it = recommend(&measurement, &Constraints::default()).expect("enough was measured");
        let (latency, both_ends) = (it.latency, it.both_ends.expect("something better"));
        assert!(both_ends.need.latency <= latency, "{course}: {both_ends:?}, {latency:?}");
        assert!(both_ends.expected.seen <= 1e-5, "{course}: {both_ends:?}");
    }
}

#[test]
fn a_stationary_4g_link_carries_the_rate_of_the_article() {
    let measurement =
        probe(&preset("4g-stationary"), 1, &ProbeConfig::default(), ProbePeer::Punctual);
    let clear =
        |step: &&StepResult| step.kind == StepKind::Ramp && step.verdict == RateVerdict::Clear;
    let carried = measurement.rates.steps.iter().filter(clear).map(|step| step.rate).max();
    assert_eq!(carried, Some(Bitrate::from_mbps(10)), "{:?}", measurement.rates.steps);
    for it in promise_over_courses("4g-stationary") {
        assert!(it.recommendation.stream_rate <= Bitrate::from_mbps(8));
        assert!(it.recommendation.latency >= MS(600));
    }
}

#[test]
fn the_promise_holds_on_foot() {
    promise_over_courses("walking");
}

#[test]
fn the_promise_holds_in_a_car() {
    promise_over_courses("driving");
}

#[test]
fn the_promise_holds_on_a_train() {
    promise_over_courses("handover");
}

#[test]
fn the_promise_holds_in_a_stadium() {
    promise_over_courses("stadium");
}
