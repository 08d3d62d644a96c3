//! The options of a plan: those of URIs, and settings of the library that have no key there because
//! only experiments need them.

use punctual::{Config, Factory, NakTimer, RatePolicy, RttAlgorithm};
use punctual_rtt::BuiltInRtt;

/// Returns `config` with the option or setting `name` at this value; the error is a message.
pub(crate) fn set(config: Config, name: &str, value: &str) -> Result<Config, String> {
    Ok(match name {
        "naktimer" => config.with_nak_timer(one_of(
            value,
            &[("exact", NakTimer::Exact), ("packets", NakTimer::WithPackets)],
        )?),
        "policy" => config.with_rate_policy(one_of(
            value,
            &[
                ("fixed", RatePolicy::Fixed),
                ("high", RatePolicy::High),
                ("fair", RatePolicy::Fair),
                ("low", RatePolicy::Low),
            ],
        )?),
        "rexmitceiling" => {
            let share = punctual_units::parse_share(value).map_err(|error| error.to_string())?;
            config.with_retransmit_ceiling(share).map_err(|error| error.to_string())?
        }
        "rttestimator" => {
            config.with_rtt_algorithm(estimator(one_of(value, &BuiltInRtt::ALL.map(named))?))
        }
        "timedrequests" => {
            config.with_timed_requests(one_of(value, &[("on", true), ("off", false)])?)
        }
        _ => punctual_uri::set_option(config, name, value).map_err(|error| error.to_string())?,
    })
}

const fn named(estimator: BuiltInRtt) -> (&'static str, BuiltInRtt) {
    (estimator.name(), estimator)
}

fn estimator(estimator: BuiltInRtt) -> RttAlgorithm {
    // No peer reports a delay: it answers an ACK by an ACKACK at once.
    RttAlgorithm::Custom(Factory::new(move || estimator.build(None)))
}

fn one_of<T: Copy>(value: &str, values: &[(&str, T)]) -> Result<T, String> {
    values.iter().find(|(name, _)| *name == value).map(|(_, it)| *it).ok_or_else(|| {
        let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        format!("it must be one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Config {
        set(Config::default(), name, value).unwrap()
    }

    #[test]
    fn a_plan_sets_options_and_what_only_experiments_need() {
        assert_eq!(with("naktimer", "packets").nak_timer(), NakTimer::WithPackets);
        assert_eq!(with("policy", "low").rate_policy(), RatePolicy::Low);
        assert_eq!(
            with("rexmitceiling", "9.65%").retransmit_ceiling().to_bits(),
            0.0965_f64.to_bits()
        );
        assert!(!with("timedrequests", "off").timed_requests());
        assert!(matches!(
            with("rttestimator", "quantile").rtt_algorithm(),
            RttAlgorithm::Custom(_)
        ));
        assert_eq!(with("lossmaxttl", "7").reorder_tolerance(), 7);
    }

    #[test]
    fn a_wrong_value_of_a_setting_names_the_right_ones() {
        let error = |name, value| set(Config::default(), name, value).unwrap_err();
        assert_eq!(error("policy", "greedy"), "it must be one of fixed, high, fair, low");
        assert_eq!(error("naktimer", "1"), "it must be one of exact, packets");
        assert!(error("latncy", "1").starts_with("unknown key"));
    }
}
