//! From values to places along an axis, and the values that are written there.

use crate::axis::{Axis, Scale};
use crate::number;
use crate::series::drawable;

/// The values that an axis reaches over, and how they lie along it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    scale: Scale,
    /// Values, or their common logarithms on a logarithmic scale.
    low: f64,
    high: f64,
    /// On a logarithmic scale: whether there is a place for zero, below `low`.
    zero: bool,
    /// Distance of the ticks that the ends were rounded to, if they were.
    step: Option<f64>,
}

/// A value that is written at an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Place, from 0 at the lower end to 1 at the upper.
    pub(crate) at: f64,
    /// Its label; empty for a fine line without a number.
    pub(crate) label: String,
}

/// How the ends of an axis are chosen from the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ends {
    /// At the least and the greatest value, or a round number that is very near.
    Exact,
    /// At round numbers at about this distance, and at zero unless all values are far from it.
    Round(f64),
}

impl Range {
    /// The range that shows all of `values`, except NaN and infinite ones.
    pub(crate) fn of(axis: &Axis, values: impl Iterator<Item = f64>, ends: Ends) -> Self {
        let fixed = [axis.low, axis.high].into_iter().flatten();
        let values = values.chain(fixed).filter(|value| drawable(*value));
        // Below that, differences would underflow.
        let values: Vec<f64> = values.map(|v| if v.abs() < LEAST { 0.0 } else { v }).collect();
        match axis.scale {
            Scale::Log => Self::decades(axis, &values),
            Scale::Linear | Scale::Time => Self::linear(axis, &values, ends),
        }
    }

    fn linear(axis: &Axis, values: &[f64], ends: Ends) -> Self {
        let (mut low, mut high) = extremes(values).unwrap_or((0.0, 1.0));
        let rounded = ends != Ends::Exact;
        if rounded && low > 0.0 && low < 0.7 * high {
            low = 0.0;
        }
        if rounded && high < 0.0 && high > 0.7 * low {
            high = 0.0;
        }
        // All values equal, or so nearly that there are no numbers between them.
        let largest = low.abs().max(high.abs());
        if !apart(low, high) {
            (low, high) = match (low, rounded) {
                (0.0, _) => (0.0, 1.0),
                (low, true) if low > 0.0 => (0.0, low * 1.25),
                (low, true) => (low * 1.25, 0.0),
                (low, false) => (low - largest * 0.05, low + largest * 0.05),
            };
        }
        let count = if let Ends::Round(count) = ends { count } else { 6.0 };
        let step = round_step(high - low, count, axis.scale);
        let down = (low / step + 1e-6).floor() * step;
        let up = (high / step - 1e-6).ceil() * step;
        let near = if rounded { f64::INFINITY } else { 0.015 * (high - low) };
        (low, high) = (
            if low - down <= near { down } else { low },
            if up - high <= near { up } else { high },
        );
        // An end that is set holds unless it leaves nothing between the ends.
        if let Some(fixed) = axis.low.filter(|fixed| drawable(*fixed) && apart(*fixed, high)) {
            low = fixed;
        }
        if let Some(fixed) = axis.high.filter(|fixed| drawable(*fixed) && apart(low, *fixed)) {
            high = fixed;
        }
        let is_set = axis.low.is_some() || axis.high.is_some();
        let step = Some(step).filter(|_| rounded && !is_set);
        Self { scale: axis.scale, low, high, zero: false, step }
    }

    fn decades(axis: &Axis, values: &[f64]) -> Self {
        let positive: Vec<f64> = values.iter().copied().filter(|v| *v >= LEAST).collect();
        let (low, high) = extremes(&positive).unwrap_or((1.0, 10.0));
        let low = axis.low.filter(|fixed| *fixed >= LEAST && *fixed <= high).unwrap_or(low);
        let (low, mut high) = (libm::log10(low).floor(), libm::log10(high).ceil());
        if high <= low {
            high = low + 1.0;
        }
        let zero = values.iter().any(|value| *value < LEAST);
        Self { scale: Scale::Log, low, high, zero, step: None }
    }

    /// Where a value lies: from 0 at the lower end to 1 at the upper, outside of that beyond them.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear | Scale::Time => (value - self.low) / (self.high - self.low),
            Scale::Log if value < LEAST => 0.0,
            Scale::Log => {
                let place = (libm::log10(value) - self.bottom()) / (self.high - self.bottom());
                place.max(0.0)
            }
        }
    }

    /// The values to write when there is room for about `count`.
    pub(crate) fn ticks(&self, count: f64) -> Vec<Tick> {
        match self.scale {
            Scale::Linear | Scale::Time => self.even_ticks(count),
            Scale::Log => self.decade_ticks(count),
        }
    }

    /// The unit that the numbers of an axis of time are in.
    pub(crate) fn time_unit(&self) -> &'static str {
        number::time_unit(self.low.abs().max(self.high.abs()))
    }

    /// The ends of the range as values and whether they are logarithms, for the script.
    pub(crate) fn ends(&self) -> (bool, f64, f64) {
        (self.scale == Scale::Log, self.bottom(), self.high)
    }

    fn even_ticks(&self, count: f64) -> Vec<Tick> {
        let step = || round_step(self.high - self.low, count, self.scale);
        let step = self.step.unwrap_or_else(step);
        let first = (self.low / step - 1e-6).ceil();
        let last = (self.high / step + 1e-6).floor();
        let largest = self.low.abs().max(self.high.abs());
        let mut ticks = Vec::new();
        let mut index = first;
        while index <= last && ticks.len() < 100 {
            let value = index * step;
            let label = match self.scale {
                Scale::Time => number::time(value, largest, step),
                _ => number::tick(value, largest, step),
            };
            ticks.push(Tick { at: self.place(value), label });
            index += 1.0;
        }
        ticks
    }

    fn decade_ticks(&self, count: f64) -> Vec<Tick> {
        let decades = self.high - self.low;
        let every = (decades / count.max(1.0)).ceil().max(1.0);
        let mut ticks = Vec::new();
        if self.zero {
            ticks.push(Tick { at: 0.0, label: "0".to_owned() });
        }
        let mut exponent = self.low;
        let mut index = 0.0;
        while exponent <= self.high && ticks.len() < 1000 {
            let named = index % every == 0.0;
            let at = (exponent - self.bottom()) / (self.high - self.bottom());
            let power = libm::exp10(exponent);
            let label = if named { number::plain(power) } else { String::new() };
            ticks.push(Tick { at, label });
            if exponent < self.high && decades <= 6.0 {
                for digit in 2..10_u8 {
                    let value = power * f64::from(digit);
                    let named = decades * 3.0 <= count && [2, 5].contains(&digit);
                    let label = if named { number::plain(value) } else { String::new() };
                    ticks.push(Tick { at: self.place(value), label });
                }
            }
            exponent += 1.0;
            index += 1.0;
        }
        ticks
    }

    /// The lower end with the place for zero.
    fn bottom(&self) -> f64 {
        let part = if self.zero { 0.12 * (self.high - self.low).max(2.0) } else { 0.0 };
        self.low - part
    }
}

/// Less than this counts as zero on a logarithmic scale.
const LEAST: f64 = 1e-100;

/// Whether there are numbers enough between two ends for an axis.
fn apart(low: f64, high: f64) -> bool {
    high - low > low.abs().max(high.abs()).max(LEAST) * 1e-9
}

fn extremes(values: &[f64]) -> Option<(f64, f64)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(low, high), v| (low.min(*v), high.max(*v))))
}

/// A round step of which about `count` lie in `span`, and not many more.
fn round_step(span: f64, count: f64, scale: Scale) -> f64 {
    let least = span / count.max(1.0);
    if scale == Scale::Time && least > 1.0 {
        let steps = TIME_STEPS.into_iter().find(|step| *step >= least * 0.999);
        return steps.unwrap_or_else(|| ten_steps(least / 86_400.0) * 86_400.0);
    }
    ten_steps(least)
}

/// The least of 1, 2 and 5 times a power of ten that is not below `least`.
fn ten_steps(least: f64) -> f64 {
    let power = libm::exp10(libm::log10(least).floor());
    let steps = [1.0, 2.0, 5.0].map(|digit| digit * power);
    steps.into_iter().find(|step| *step >= least * 0.999).unwrap_or(10.0 * power)
}

/// Steps of time above a second, in seconds.
const TIME_STEPS: [f64; 15] = [
    2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 21_600.0,
    86_400.0,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], ends: Ends, count: f64) -> Vec<String> {
        let range = Range::of(axis, values.iter().copied(), ends);
        let named = range.ticks(count).into_iter().filter(|tick| !tick.label.is_empty());
        named.map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round_numbers_with_as_many_digits_as_they_differ_in() {
        let axis = Axis::linear("", "");
        assert_eq!(
            labels(&axis, &[3.0, 97.0], Ends::Round(5.0), 5.0),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(labels(&axis, &[0.0, 0.021], Ends::Round(5.0), 5.0)[1], "0.005");
        assert_eq!(labels(&axis, &[149.2, 150.1], Ends::Round(5.0), 5.0)[0], "149.2");
        assert_eq!(labels(&axis, &[0.0, 45_000.0], Ends::Round(5.0), 5.0)[1], "10k");
        assert_eq!(labels(&axis, &[-4.0, 4.0], Ends::Round(5.0), 4.0), ["−4", "−2", "0", "2", "4"]);
    }

    #[test]
    fn times_are_written_in_the_unit_that_fits() {
        let axis = Axis::time("");
        assert_eq!(labels(&axis, &[0.0, 60.0], Ends::Exact, 6.0)[..3], ["0", "10", "20"]);
        assert_eq!(labels(&axis, &[0.0, 600.0], Ends::Exact, 5.0)[..3], ["0:00", "2:00", "4:00"]);
        assert_eq!(labels(&axis, &[0.0, 86_400.0], Ends::Exact, 4.0)[1], "6:00");
    }

    #[test]
    fn a_logarithmic_axis_has_a_place_for_none() {
        let axis = Axis::log("", "");
        let range = Range::of(&axis, [0.0, 0.01, 5.0].into_iter(), Ends::Round(5.0));
        assert_eq!(range.place(0.0), 0.0);
        assert!(range.place(0.01) > 0.05 && range.place(10.0) == 1.0);
        let labels = labels(&axis, &[0.0, 0.01, 5.0], Ends::Round(5.0), 5.0);
        assert_eq!(labels, ["0", "0.01", "0.1", "1", "10"]);
    }

    #[test]
    fn constant_or_missing_values_still_give_an_axis() {
        for scale in [Axis::linear("", ""), Axis::log("", ""), Axis::time("")] {
            for ends in [Ends::Exact, Ends::Round(5.0)] {
                for values in [
                    &[][..],
                    &[0.0],
                    &[7.0, 7.0],
                    &[-3.0],
                    &[f64::NAN, f64::INFINITY],
                    &[1e15, 1e15 + 0.125],
                    &[1e-300, 2e-300],
                    &[-1e150, 1e150],
                ] {
                    let range = Range::of(&scale, values.iter().copied(), ends);
                    let ticks = range.ticks(5.0);
                    assert!((2..60).contains(&ticks.len()), "{scale:?} {values:?}: {ticks:?}");
                    for value in values.iter().filter(|value| drawable(**value)) {
                        let place = range.place(*value);
                        assert!((-0.001..=1.001).contains(&place), "{values:?}: {range:?}");
                    }
                }
            }
        }
    }
}
