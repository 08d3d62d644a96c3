//! Whether each preset is what its source says, measured by packets through it.

#![expect(clippy::cast_possible_truncation, reason = "seconds and counts of a test are small")]

use std::time::Duration;

use punctual_netem::{Link, LinkProfile, presets};
use punctual_units::Instant;

mod common;
use common::{Numbered, drain};

/// A constant stream of datagrams with 1316 bytes of payload, as it came out of a link.
struct Stream {
    /// When each packet was sent, and how long it took, in ms; `None` if it did not arrive.
    packets: Vec<(f64, Option<f64>)>,
    arrivals: Vec<(f64, f64)>,
    reordered: u64,
    bytes: u64,
    seconds: f64,
}

impl Stream {
    /// Sends `rate` of payload for some seconds; headers come on top.
    fn over(profile: impl Into<LinkProfile>, rate: f64, seconds: u32, headers: usize) -> Self {
        let mut link = Link::new(profile, 5);
        link.start(Instant::ORIGIN);
        let interval = Duration::from_secs_f64(1_316.0 * 8.0 / (rate * 1e6));
        let count = (f64::from(seconds) / interval.as_secs_f64()) as u64;
        let mut packets = Vec::new();
        let mut arrivals = Vec::new();
        let sent = |number: u64| interval.as_secs_f64() * number as f64;
        for number in 0..count {
            let now = Instant::ORIGIN + Duration::from_secs_f64(sent(number));
            arrivals.extend(std::iter::from_fn(|| link.recv(now)));
            link.send(now, Numbered::new(number, 1_316 + headers));
            packets.push((sent(number), None));
        }
        arrivals.extend(drain(&mut link));
        let arrivals = arrivals
            .into_iter()
            .map(|arrival| {
                let at = arrival.at.as_nanos() as f64 / 1e9;
                let number = arrival.packet.number;
                let delay = (at - sent(number)) * 1e3;
                packets[number as usize].1 = Some(delay);
                (at, delay)
            })
            .collect();
        let statistics = link.statistics();
        let (reordered, bytes) = (statistics.reordered, statistics.delivered_bytes);
        Self { packets, arrivals, reordered, bytes, seconds: f64::from(seconds) }
    }

    fn mean(&self) -> f64 {
        self.arrivals.iter().map(|(_, delay)| delay).sum::<f64>() / self.arrivals.len() as f64
    }

    /// The delay in ms that a share of the packets does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let mut delays: Vec<_> = self.arrivals.iter().map(|(_, delay)| *delay).collect();
        delays.sort_by(f64::total_cmp);
        delays[((delays.len() - 1) as f64 * share) as usize]
    }

    fn lost(&self) -> f64 {
        1.0 - self.arrivals.len() as f64 / self.packets.len() as f64
    }

    /// Packets lost of those sent in each second.
    fn lost_each_second(&self) -> Vec<u32> {
        let mut lost = vec![0; self.seconds as usize + 1];
        for (sent, delay) in &self.packets {
            lost[*sent as usize] += u32::from(delay.is_none());
        }
        lost.pop();
        lost
    }

    /// The smoothed jitter of RFC 3550, in ms, at the end of each second.
    fn jitter(&self) -> Vec<f64> {
        let mut jitters = Vec::new();
        let (mut jitter, mut last) = (0.0, self.arrivals[0]);
        for &(at, delay) in &self.arrivals {
            jitter += ((delay - last.1).abs() - jitter) / 16.0;
            if at.floor() > last.0.floor() {
                jitters.push(jitter);
            }
            last = (at, delay);
        }
        jitters
    }

    /// TS-DF (EBU Tech 3337) in ms: the largest less the least delay of each second.
    fn ts_df(&self) -> Vec<f64> {
        let mut spans =
            vec![(f64::MAX, f64::MIN); self.arrivals[self.arrivals.len() - 1].0 as usize + 1];
        for &(at, delay) in &self.arrivals {
            let span = &mut spans[at as usize];
            *span = (span.0.min(delay), span.1.max(delay));
        }
        spans.into_iter().filter(|span| span.1 >= span.0).map(|(a, b)| b - a).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The outcome of a stream at this rate on the stationary 4G link without its event, for each of
/// four seeds.
fn on_4g(rate: f64) -> impl Iterator<Item = Stream> {
    (1..=4).map(move |seed| Stream::over(presets::stationary_4g(seed, &[]).up, rate, 120, 28))
}

#[test]
fn the_4g_link_has_the_rtt_and_the_delays_of_the_article() {
    let down = presets::stationary_4g(1, &[]).down;
    let down = Stream::over(down, 0.3, 120, 28).mean();
    for stream in on_4g(5.0) {
        let rtt = stream.mean() + down;
        assert!((130.0..165.0).contains(&rtt), "RTT {rtt}");
        // Fig. 2: a region of about 150 ms, and spikes of an extra 400 ms.
        let region = stream.quantile(0.985) - stream.quantile(0.005);
        assert!((100.0..260.0).contains(&region), "region {region}");
        let spike = stream.quantile(1.0) - stream.mean();
        assert!((250.0..500.0).contains(&spike), "spike {spike}");
        // Fig. 3: about 4 ms, sometimes 8.
        let jitter = stream.jitter();
        assert!((3.0..5.0).contains(&mean(&jitter)), "jitter {}", mean(&jitter));
        assert!(most(&jitter) > 7.0, "jitter {}", most(&jitter));
        assert_eq!(stream.reordered, 0);
    }
}

#[test]
fn the_4g_link_loses_one_or_two_packets_a_second_and_now_and_then_ten() {
    for stream in on_4g(5.0) {
        let mut lost = stream.lost_each_second();
        let many = lost.iter().filter(|&&lost| lost >= 10).count();
        assert!((1..=8).contains(&many), "{many} seconds with 10 and more");
        lost.sort_unstable();
        assert!((1..=2).contains(&lost[60]), "{} in the middle second", lost[60]);
        assert!(lost[96] <= 5, "{} in 4 of 5 seconds", lost[96]);
    }
}

#[test]
fn the_4g_link_carries_5_mbps_cleanly_10_with_trouble_and_not_12_5() {
    // Seconds of 120 in which a packet waited long enough to show.
    let congested = |stream: &Stream| {
        let mut seconds: Vec<_> = stream
            .packets
            .iter()
            .filter(|(_, delay)| delay.is_some_and(|delay| delay > 220.0))
            .map(|(sent, _)| *sent as u64)
            .collect();
        seconds.dedup();
        seconds.len()
    };
    let sum = |rate| on_4g(rate).map(|stream| congested(&stream)).sum::<usize>() / 4;
    let [clean, some, more, most] = [5.0, 7.5, 10.0, 12.5].map(sum);
    assert!(clean < 8, "5 Mb/s: {clean} s");
    assert!(some > clean && some < 15, "7.5 Mb/s: {some} s");
    assert!((10..50).contains(&more), "10 Mb/s: {more} s");
    assert!(most > 80, "12.5 Mb/s: {most} s");
    // All of 10 Mb/s arrives, and less than all of 12.5 and 15.
    assert!(on_4g(10.0).all(|stream| stream.lost() < 0.007));
    assert!(on_4g(15.0).all(|stream| stream.lost() > 0.1));
    assert!(on_4g(15.0).all(|stream| stream.bytes as f64 * 8e-6 / stream.seconds > 11.0));
}

#[test]
fn the_4g_events_are_those_of_the_article() {
    let mut rtts = Vec::new();
    for seed in 1..=4 {
        let path = presets::find("4g-stationary").unwrap().path(seed);
        // 8 Mb/s of SRT, whose headers with those of IP and UDP are 44 bytes.
        let stream = Stream::over(path.up, 8.0, 40, 44);
        let delay = |from: f64, to: f64| -> Vec<f64> {
            let within = stream.packets.iter().filter(|(sent, _)| (from..to).contains(sent));
            within.filter_map(|(_, delay)| *delay).collect()
        };
        // The first that is held comes 1570 ms late: 820 more than a latency of 750 allow.
        let held = mean(&delay(20.10, 20.11)) - 90.0;
        assert!((1_500.0..1_650.0).contains(&held), "held {held}");
        // An RTT measurement after the stall finds 1200 ms.
        rtts.push(mean(&delay(21.67, 21.69)) + 50.0);
        // The held packets come at 12 Mb/s: bytes that arrived in the second after the stall.
        let burst = stream.arrivals.iter().filter(|(at, _)| (21.8..22.6).contains(at)).count();
        let burst = burst as f64 * 1_360.0 * 8e-6 / 0.8;
        assert!((11.5..12.5).contains(&burst), "burst {burst}");
        // 100 ms of packets are lost, and hardly more.
        let lost = stream.lost_each_second()[20];
        assert!((75..85).contains(&lost), "lost {lost}");
        // After it all is as before.
        let after = mean(&delay(26.0, 40.0));
        assert!(after < 400.0, "after {after}");
    }
    assert!(rtts.iter().all(|rtt| (1_050.0..1_450.0).contains(rtt)), "{rtts:?}");
    assert!((mean(&rtts) - 1_200.0).abs() < 100.0, "{rtts:?}");
}

#[test]
fn the_path_from_wifi_to_wifi_has_the_published_loss_and_ts_df() {
    let path = presets::find("wifi-to-wifi").unwrap().path(1);
    let stream = Stream::over(path.up, 3.0, 900, 28);
    assert!((stream.lost() - 0.001_06).abs() < 0.000_35, "{}", stream.lost());
    let reordered = stream.reordered as f64 / stream.packets.len() as f64;
    assert!((0.000_005..0.000_06).contains(&reordered), "{reordered}");
    let ts_df = stream.ts_df();
    assert!((mean(&ts_df) - 33.0).abs() < 4.0, "{}", mean(&ts_df));
    assert!((150.0..600.0).contains(&most(&ts_df)), "{}", most(&ts_df));
    let rtt = 2.0 * stream.mean();
    assert!((50.0..60.0).contains(&rtt), "{rtt}");
}

#[test]
fn the_lab_and_intercontinental_paths_have_their_documented_figures() {
    let lab = presets::find("lab").unwrap().path(1);
    let stream = Stream::over(lab.up.clone(), 10.0, 10, 28);
    assert_eq!(stream.lost(), 0.0);
    // 10 ms and the time of a packet at 45 Mb/s.
    assert!((stream.mean() - 10.239).abs() < 0.001, "{}", stream.mean());
    assert_eq!(lab.up, lab.down);
    let far = presets::find("intercontinental").unwrap().path(1);
    let stream = Stream::over(far.up, 5.0, 300, 28);
    assert!((stream.lost() - 0.02).abs() < 0.002);
    assert_eq!(stream.mean().round(), 100.0);
}

#[test]
fn the_mtu_drop_is_that_of_the_source() {
    let path = presets::find("mtu-drop").unwrap().path(1);
    let pass = |link: &mut Link<Numbered>, at: Instant, payload: usize| {
        link.send(at, Numbered::new(0, payload + 28));
        let arrivals = drain(link);
        arrivals.first().map(|arrival| (arrival.at - at).as_micros())
    };
    // The source's times of transmission, which it rounds down, and 100 ms.
    for (payload, micros) in [(1_252, 9_552), (1_400, 10_681), (1_440, 10_986), (55, 419)] {
        let mut link = Link::new(path.up.clone(), 1);
        assert_eq!(pass(&mut link, Instant::ORIGIN, payload), Some(100_000 + micros));
    }
    let mut link = Link::new(path.down, 1);
    link.start(Instant::ORIGIN);
    let before = Instant::from_micros(1_222_963);
    assert!(pass(&mut link, before, 1_536).is_some());
    assert!(pass(&mut link, before, 1_537).is_none());
    let after = Instant::from_millis(2_000);
    assert!(pass(&mut link, after, 1_394).is_some());
    assert!(pass(&mut link, after, 1_395).is_none());
    assert_eq!(link.statistics().dropped_by_mtu, 2);
    // Lost packets are transmitted all the same.
    let after = Instant::from_millis(3_000);
    link.send(after, Numbered::new(0, 1_440 + 28));
    link.send(after, Numbered::new(1, 1_252 + 28));
    let arrival = drain(&mut link)[0];
    assert_eq!((arrival.packet.number, (arrival.at - after).as_micros()), (1, 120_538));
}

#[test]
fn the_mtu_drop_has_a_queue_of_200_ms() {
    let path = presets::find("mtu-drop").unwrap().path(1);
    let mut link = Link::new(path.up, 1);
    // The source's first burst of 25 packets of 1252 bytes: the last three or four are dropped.
    (0..25).for_each(|n| link.send(Instant::ORIGIN, Numbered::new(n, 1_252 + 28)));
    assert_eq!(drain(&mut link).len(), 21);
}

#[test]
fn the_courses_have_their_documented_rates_and_differ_by_seed() {
    // Bounds of the mean rate that a greedy stream gets.
    let bounds = [
        ("walking", 8.0..24.0),
        ("driving", 6.0..20.0),
        ("handover", 8.0..24.0),
        ("stadium", 1.5..5.0),
        ("4g-stationary", 11.0..13.5),
    ];
    for (name, bounds) in bounds {
        let preset = presets::find(name).unwrap();
        for seed in 1..=3 {
            let path = preset.path(seed);
            let stream = Stream::over(path.up.clone(), 40.0, 120, 28);
            let rate = stream.bytes as f64 * 8e-6 / stream.seconds;
            assert!(bounds.contains(&rate), "{name} {seed}: {rate} Mb/s");
            assert_eq!(path, preset.path(seed));
            assert_ne!(path, preset.path(seed + 1), "{name}");
        }
    }
}

#[test]
fn handovers_leave_gaps() {
    let stream = Stream::over(presets::find("handover").unwrap().path(1).up, 3.0, 300, 28);
    let many = stream.lost_each_second().into_iter().filter(|&lost| lost >= 10).count();
    assert!((12..=35).contains(&many), "{many} seconds with a gap");
    assert!(stream.quantile(1.0) > 300.0);
}

#[test]
fn an_unknown_preset_is_refused_with_a_suggestion() {
    let message = presets::find("4g-stationery").unwrap_err().to_string();
    assert_eq!(message, "`4g-stationery` is no preset; did you mean `4g-stationary`?");
    assert!(presets::find("moon").unwrap_err().to_string().contains("lab, 4g-stationary"));
    assert_eq!(presets::all().len(), 10);
    assert!(presets::all().iter().all(|preset| !preset.source.is_empty()));
}
