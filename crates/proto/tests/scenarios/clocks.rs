//! probe
use crate::pair::{Pair, Side};
use crate::{MS, latency};
use punctual_netem::{Jitter, LinkConfig};
#[test]
fn probe() {
    for (std, pps, ppm) in [
        (1, 100, 0),
        (2, 100, 0),
        (4, 100, 0),
        (4, 10, 0),
        (4, 10, 200),
        (8, 100, 0),
        (0, 10, 200),
        (0, 10, -200),
        (0, 2, 200),
    ] {
        for seed in 0..2 {
            let jitter = if std == 0 { Jitter::None } else { Jitter::Normal { std_dev: MS(std) } };
            let link = LinkConfig::default().with_delay(MS(20)).with_jitter(jitter);
            let mut pair = Pair::symmetric(seed, link).with_drift(Side::Caller, ppm);
            pair.connect(latency(500), latency(500));
            let mut out = String::new();
            for _ in 0..6 {
                let n = pair.listener.received.len();
                pair.stream(Side::Caller, 600 * pps, MS(1000 / u64::from(pps)));
                let d = &pair.delays(Side::Caller)[n..];
                out += &format!(
                    " {:.1}..{:.1}",
                    d.iter().min().unwrap().as_secs_f64() * 1e3 - 520.,
                    d.iter().max().unwrap().as_secs_f64() * 1e3 - 520.
                );
            }
            println!(
                "std {std} pps {pps} ppm {ppm} seed {seed}: {out} drift {}",
                pair.statistics(Side::Listener).drift_micros
            );
        }
    }
}
