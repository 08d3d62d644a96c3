//! Published figures and built-in plans, as they are compiled in.

/// The text of a published file; `None` if there is none of this name.
pub fn file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// A plan that is built in, by its name.
pub fn plan(name: &str) -> Option<&'static str> {
    PLANS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Names and texts of the plans that are built in.
pub fn plans() -> &'static [(&'static str, &'static str)] {
    PLANS
}

const FILES: &[(&str, &str)] = &[
    ("libsrt-1.5.5-grid.csv", include_str!("../published/libsrt-1.5.5-grid.csv")),
    ("srt-retransmission-2022.toml", include_str!("../published/srt-retransmission-2022.toml")),
    ("srt-4g-2022.toml", include_str!("../published/srt-4g-2022.toml")),
    ("srt-over-quic-2023.toml", include_str!("../published/srt-over-quic-2023.toml")),
];

const PLANS: &[(&str, &str)] = &[
    ("srt-retransmission", include_str!("../plans/srt-retransmission.toml")),
    ("srt-4g", include_str!("../plans/srt-4g.toml")),
    ("srt-over-quic", include_str!("../plans/srt-over-quic.toml")),
    ("quic-once-per-rtt", include_str!("../plans/quic-once-per-rtt.toml")),
    ("faspstream", include_str!("../plans/faspstream.toml")),
    ("faspstream-hours", include_str!("../plans/faspstream-hours.toml")),
    ("quic-timers", include_str!("../plans/quic-timers.toml")),
    ("retransmission-policies", include_str!("../plans/retransmission-policies.toml")),
    ("rtt-estimators", include_str!("../plans/rtt-estimators.toml")),
];
