//! The curve of CUBIC (RFC 9438).

/// The share of the window that a loss leaves (RFC 9438 section 4.6: β).
pub const CUBIC_DECREASE: f64 = 0.7;

/// The factor of the curve, packets per second cubed (RFC 9438 section 5.1: C).
const GROWTH: f64 = 0.4;

/// The window over time since a loss (RFC 9438 section 4.2): it rises to the plateau, the window at
/// the loss, and comes to rest there; after that it grows faster and faster. Windows are in
/// packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicCurve {
    growth: f64,
    rise: f64,
    plateau: f64,
}

impl CubicCurve {
    /// From `window` up to `plateau`, for `flows` flows of CUBIC in one, whose window grows as many
    /// times as fast.
    pub fn between(window: f64, plateau: f64, flows: f64) -> Self {
        let growth = GROWTH * flows;
        Self { growth, rise: cube_root((plateau - window) / growth), plateau }
    }

    /// The seconds from the loss to the plateau (section 4.2: K).
    pub fn rise(&self) -> f64 {
        self.rise
    }

    /// The same curve with the plateau after at most this number of seconds.
    #[must_use]
    pub fn rising_within(self, seconds: f64) -> Self {
        Self { rise: self.rise.min(seconds), ..self }
    }

    /// The window at the plateau (section 4.1: `W_max`).
    pub fn plateau(&self) -> f64 {
        self.plateau
    }

    /// The window this number of seconds after the loss.
    pub fn window(&self, seconds: f64) -> f64 {
        let from_plateau = seconds - self.rise;
        self.growth * from_plateau * from_plateau * from_plateau + self.plateau
    }
}

/// The packets per round trip by which the window of a `NewReno` flow grows that keeps the share
/// `left` of its window at a loss, so that it has the rate of one that halves (RFC 9438 section
/// 4.3: α).
pub const fn reno_growth(left: f64) -> f64 {
    3.0 * (1.0 - left) / (1.0 + left)
}

/// The cube root by Newton's method, whose steps give the same on each machine; zero of what is
/// below zero.
fn cube_root(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    // Above the root from the start, so that each step goes down until rounding stops it.
    let mut root = value.max(1.0);
    loop {
        let next = (2.0 * root + value / (root * root)) / 3.0;
        if next.is_nan() || next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_curve_is_that_of_the_rfc() {
        let curve = CubicCurve::between(700.0, 1_000.0, 1.0);
        // K is the cube root of 300 / 0.4.
        assert!((curve.rise() - 9.085_6).abs() < 1e-4, "{curve:?}");
        // 0.4 (t - K)³ + 1000 at these times.
        for (seconds, window) in [(0.0, 700.0), (2.0, 857.7), (9.0, 1_000.0), (15.0, 1_082.8)] {
            assert!((curve.window(seconds) - window).abs() < 0.1, "{seconds} s: {curve:?}");
        }
    }

    #[test]
    fn several_flows_grow_as_many_times_as_fast() {
        let curves = [1.0, 4.0].map(|flows| CubicCurve::between(100.0, 100.0, flows));
        let grown = curves.map(|curve| curve.window(3.0) - 100.0);
        assert!((grown[1] / grown[0] - 4.0).abs() < 1e-9, "{grown:?}");
    }

    #[test]
    fn a_flow_that_keeps_seven_tenths_grows_by_half_a_packet() {
        assert!((reno_growth(CUBIC_DECREASE) - 0.529).abs() < 1e-3);
        assert_eq!(reno_growth(0.5), 1.0);
    }

    #[test]
    fn cube_roots_are_exact_to_fifteen_digits() {
        for root in [1e-3, 0.5, 1.0, 3.0, 9.085_6, 1e4] {
            let found = cube_root(root * root * root);
            assert!((found / root - 1.0).abs() < 1e-15, "{root} {found}");
        }
        assert_eq!([0.0, -1.0].map(cube_root), [0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn the_cube_of_a_root_is_its_value(value in 0.0..1e12_f64) {
            let root = cube_root(value);
            prop_assert!((root * root * root - value).abs() <= value * 1e-9 + 1e-9);
        }
    }
}
