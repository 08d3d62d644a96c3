//! Long series made short without losing what sticks out.

use crate::chart::draw::Spot;

/// The spots of a line, with those of one pixel reduced to the first, the lowest, the highest and
/// the last, in their order. Spots are in pixels, ordered along x as far as they come so.
pub(crate) fn thin(spots: &[Spot]) -> Vec<Spot> {
    if spots.len() < 4 {
        return spots.to_vec();
    }
    let mut kept = Vec::new();
    let mut start = 0;
    while start < spots.len() {
        let column = spots[start].x.floor();
        let same = spots[start..].iter().take_while(|spot| spot.x.floor() == column).count();
        keep(&spots[start..start + same], &mut kept);
        start += same;
    }
    kept
}

fn keep(column: &[Spot], kept: &mut Vec<Spot>) {
    let by_y = |i: &usize, j: &usize| column[*i].y.total_cmp(&column[*j].y);
    let indices = 0..column.len();
    let mut chosen = vec![0, column.len() - 1];
    chosen.extend(indices.clone().min_by(by_y));
    chosen.extend(indices.max_by(by_y));
    chosen.sort_unstable();
    chosen.dedup();
    kept.extend(chosen.into_iter().map(|index| column[index]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_of_one_sample_survives() {
        let spike = |i: u32| if i == 77_777 { 5.0 } else { 100.0 + f64::from(i % 3) };
        let spots: Vec<Spot> =
            (0..100_000).map(|i| Spot { x: f64::from(i) / 200.0, y: spike(i) }).collect();
        let thinned = thin(&spots);
        assert!(thinned.len() <= 4 * 500, "{}", thinned.len());
        assert!(thinned.iter().any(|spot| spot.y == 5.0));
        assert_eq!((thinned[0].x, thinned[thinned.len() - 1].x), (0.0, spots[99_999].x));
    }

    #[test]
    fn a_short_series_stays_as_it_is() {
        let spots: Vec<Spot> =
            (0..50_u8).map(|i| Spot { x: f64::from(i) * 3.0, y: f64::from(i) }).collect();
        assert_eq!(thin(&spots), spots);
    }
}
