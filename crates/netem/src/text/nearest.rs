//! What somebody may have meant.

/// Of the words that are known, the one that looks most like `word`, if any looks like it.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let most = word.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|known| (distance(&word, known), known))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Letters to add, drop or replace to make `a` from `b` (Levenshtein's distance).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for c in a.chars() {
        let mut diagonal = row[0];
        row[0] += 1;
        for (i, d) in b.iter().enumerate() {
            let best = (diagonal + usize::from(c != *d)).min(row[i] + 1).min(row[i + 1] + 1);
            diagonal = row[i + 1];
            row[i + 1] = best;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_nonsense_is_not() {
        let known = ["delay", "loss", "rate"];
        assert_eq!(nearest("dely", known), Some("delay"));
        assert_eq!(nearest("Loss", known), Some("loss"));
        assert_eq!(nearest("bandwidth", known), None);
        assert_eq!(nearest("", known), None);
    }
}
