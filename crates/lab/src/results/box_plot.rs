//! The distribution of values as a box plot.

use crate::numbers::number_of;
use crate::results::drawing::DrawnPoint;
use crate::results::interval::Estimate;

/// A box plot as Tukey defined it: whiskers reach to the last values within 1.5 times the distance
/// of the outer quartiles from these, and the values beyond them are extreme.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoxPlot {
    mean: f64,
    quartiles: [f64; 3],
    whiskers: (f64, f64),
    extremes: Vec<f64>,
}

impl BoxPlot {
    /// The box plot of these values; `None` if there are none. Values that are no numbers are left
    /// out.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (&least, &most) = (values.first()?, values.last()?);
        let quartiles = [0.25, 0.5, 0.75].map(|share| quantile(&values, share));
        let reach = 1.5 * (quartiles[2] - quartiles[0]);
        let (low, high) = (quartiles[0] - reach, quartiles[2] + reach);
        let inside = || values.iter().copied().filter(|value| (low..=high).contains(value));
        let whiskers = (inside().fold(most, f64::min), inside().fold(least, f64::max));
        let extremes = values.iter().copied().filter(|value| !(low..=high).contains(value));
        Some(Self {
            mean: values.iter().sum::<f64>() / number_of(values.len()),
            quartiles,
            whiskers,
            extremes: extremes.collect(),
        })
    }

    /// The points of a figure at this place: the box, then the extreme values.
    pub(crate) fn points(self, x: f64, x_text: &str) -> Vec<DrawnPoint> {
        let point =
            |y, quartiles| DrawnPoint { x, x_text: x_text.to_owned(), y, quartiles, heat: None };
        let mean = Estimate { interval: Some(self.whiskers), ..Estimate::single(self.mean) };
        let mut points = vec![point(mean, Some(self.quartiles))];
        points.extend(self.extremes.iter().map(|&it| point(Estimate::single(it), None)));
        points
    }
}

/// The value below which this share of sorted values lies, between two values by proportion.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the list")]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * number_of(sorted.len() - 1);
    let (below, part) = (place.floor() as usize, place.fract());
    let above = sorted[(below + 1).min(sorted.len() - 1)];
    sorted[below] + (above - sorted[below]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_has_quartiles_whiskers_and_extremes() {
        let values = [4.0, 1.0, 2.0, 3.0, 5.0, f64::NAN, 50.0];
        let it = BoxPlot::of(values.to_vec()).expect("there are values");
        assert_eq!(it.quartiles, [2.25, 3.5, 4.75]);
        // 1.5 × 2.5 beyond the quartiles: −1.5 to 8.5.
        assert_eq!((it.whiskers, &it.extremes[..]), ((1.0, 5.0), &[50.0][..]));
        assert!((it.mean - 65.0 / 6.0).abs() < 1e-12);
        let points = it.points(2.0, "3");
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].quartiles, points[1].quartiles), (Some([2.25, 3.5, 4.75]), None));
        assert_eq!(points[0].y.interval, Some((1.0, 5.0)));
    }

    #[test]
    fn one_value_is_a_box_without_height_and_none_is_no_box() {
        let it = BoxPlot::of(vec![7.0]).expect("there is a value");
        assert_eq!((it.quartiles, it.whiskers), ([7.0; 3], (7.0, 7.0)));
        assert_eq!(BoxPlot::of(vec![f64::NAN]), None);
    }
}
