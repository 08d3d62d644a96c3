//! The time for which datagrams may gather before a route passes them on.

use std::time::Duration;

use punctual::Transmission;
use punctual_uri::{Target, Uri};

/// The time for which the datagrams of a UDP source may gather: a fortieth of the least latency, at
/// most 3 ms. A live SRT stream carries the time of their arrival, so each is still delivered a
/// latency after that, and the route wakes up less often. Datagrams for any other destination do
/// not gather.
pub fn gather_for(destinations: &[Uri]) -> Duration {
    destinations.iter().map(spare_time).min().unwrap_or_default()
}

fn spare_time(destination: &Uri) -> Duration {
    let Target::Srt(target) = &destination.target else { return Duration::ZERO };
    let config = &target.config;
    let is_timed = config.tsbpd() && config.transmission() == Transmission::Live;
    let latency = config.peer_latency().max(config.receive_latency());
    if is_timed { (latency / 40).min(LONGEST) } else { Duration::ZERO }
}

/// More would leave too little time for retransmissions.
const LONGEST: Duration = Duration::from_millis(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(destinations: &[&str]) -> Duration {
        let uris: Vec<Uri> = destinations.iter().map(|uri| uri.parse().expect("a URI")).collect();
        gather_for(&uris)
    }

    #[test]
    fn datagrams_gather_for_a_small_part_of_the_latency() {
        assert_eq!(gather(&["srt://host:4200?latency=120ms"]), Duration::from_millis(3));
        assert_eq!(gather(&["srt://host:4200?latency=30ms"]), Duration::from_micros(750));
        assert_eq!(gather(&["srt://host:4200?latency=4s"]), LONGEST);
    }

    #[test]
    fn datagrams_whose_time_is_not_carried_do_not_gather() {
        let srt = "srt://host:4200?latency=120ms";
        assert_eq!(gather(&[srt, "udp://host:5000"]), Duration::ZERO);
        assert_eq!(gather(&["srt://host:4200?transtype=file"]), Duration::ZERO);
        assert_eq!(gather(&["srt://host:4200?tsbpdmode=false"]), Duration::ZERO);
    }
}
