//! The nearest right spelling of a word.

/// `; did you mean …?` with the candidate nearest to `word`, or nothing if none looks like it.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(candidate) => format!("; did you mean `{candidate}`?"),
        None => String::new(),
    }
}

/// The candidate that fewest edits turn `word` into, if at most a third of its letters change.
fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()).div_ceil(3))
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, substitutions and swaps of neighbours between two words (the optimal
/// string alignment distance).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + differs);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before_last[j - 2] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits_and_swaps() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("latency", "latency"), 0);
        assert_eq!(distance("latnecy", "latency"), 1);
        assert_eq!(distance("latncy", "latency"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn suggests_what_looks_alike_and_nothing_else() {
        let keys = ["latency", "mode", "streamid"];
        assert_eq!(did_you_mean("stremaid", keys), "; did you mean `streamid`?");
        assert_eq!(did_you_mean("bandwidth", keys), "");
    }
}
