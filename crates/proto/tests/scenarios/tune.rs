use super::pair::Pair;
use super::{SECS, latency, lossy};
use punctual_netem::{Jitter, LinkConfig, Loss};
use punctual_proto::RetransmitAlgorithm;
use punctual_units::Bitrate;
use std::time::Duration;

fn burst(loss: f64, len: f64) -> LinkConfig {
    let r = 1.0 / len;
    let p = loss * r / (1.0 - loss);
    LinkConfig::default()
        .with_loss(Loss::GilbertElliott { p, r, good_loss: 0.0, bad_loss: 1.0 })
        .unwrap()
}

#[test]
#[ignore]
fn tune() {
    let cells = std::env::var("CELLS").unwrap();
    let runs: u64 = std::env::var("RUNS").map_or(10, |r| r.parse().unwrap());
    let cells: Vec<String> = cells.split(' ').map(String::from).collect();
    let next = std::sync::Mutex::new(0usize);
    let out = std::sync::Mutex::new(std::collections::BTreeMap::new());
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                loop {
                    let i = {
                        let mut n = next.lock().unwrap();
                        *n += 1;
                        *n - 1
                    };
                    if i >= cells.len() {
                        break;
                    }
                    let line = one(&cells[i], runs);
                    eprintln!("{line}");
                    out.lock().unwrap().insert(i, line);
                }
            });
        }
    });
}

/// algo:rtt:factor:there:back:ceiling   there = 0.05 or 0.05/10
fn one(cell: &str, runs: u64) -> String {
    let f: Vec<&str> = cell.split(':').collect();
    let algorithm = match f[0] {
        "a" => RetransmitAlgorithm::Aggressive,
        "e" => RetransmitAlgorithm::Efficient,
        _ => RetransmitAlgorithm::Deadline,
    };
    let rtt: u64 = f[1].parse().unwrap();
    let factor: f64 = f[2].parse().unwrap();
    let link = |text: &str| {
        let (loss, b) = text.split_once('/').unwrap_or((text, "0"));
        let (loss, b): (f64, f64) = (loss.parse().unwrap(), b.parse().unwrap());
        let base = if b > 0.0 { burst(loss, b) } else { lossy(loss) };
        base.with_delay(Duration::from_micros(rtt * 500))
            .with_jitter(Jitter::Uniform { spread: Duration::from_micros(50) })
    };
    let ceiling: f64 = f.get(5).map_or(0.0, |c| c.parse().unwrap());
    let (mut sent, mut again, mut missing, mut late, mut naks) = (0, 0, 0, 0, 0);
    let mut rec = [0u64; 4];
    for seed in 0..runs {
        let config = latency((rtt as f64 * factor) as u64)
            .with_retransmit_algorithm(algorithm)
            .with_retransmit_ceiling(ceiling)
            .unwrap();
        let mut pair = Pair::new(seed, link(f[3]), link(f[4]));
        pair.connect(config.clone(), config);
        let (s, r) = pair.stream_at(Bitrate::from_mbps(10), SECS(60));
        sent += s.packets_sent_unique;
        again += s.packets_retransmitted;
        missing += r.packets_receive_dropped;
        late += r.packets_belated;
        naks += r.naks_sent;
        rec[0] += r.recovered_first_round;
        rec[1] += r.recovered_second_round;
        rec[2] += r.recovered_third_round;
        rec[3] += r.recovered_later;
    }
    let p = |x: u64| 100.0 * x as f64 / sent as f64;
    format!(
        "{cell:40} over {:6.3}  lost {:.4} ({missing})  late {:.4} naks {:.1}  rounds {:.3} {:.3} {:.3} {:.3}",
        p(again),
        p(missing),
        p(late),
        p(naks),
        p(rec[0]),
        p(rec[1]),
        p(rec[2]),
        p(rec[3])
    )
}
