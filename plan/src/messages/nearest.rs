//! Guesses the name that a user most likely meant.

/// Returns the candidate nearest to `given`, if one is near enough to be a slip.
pub(crate) fn nearest<'a>(given: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let given: Vec<char> = given.chars().take(64).map(|letter| letter.to_ascii_lowercase()).collect();
    let slip = candidates
        .iter()
        .map(|candidate| (distance(&given, candidate), *candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1));
    let part = |candidate: &&&str| {
        let text: String = given.iter().collect();
        text.len() >= 3 && (candidate.contains(&text) || (candidate.len() >= 3 && text.contains(**candidate)))
    };
    slip.map(|(_, candidate)| candidate).or_else(|| candidates.iter().find(part).copied())
}

/// Returns the number of edits (insert, delete, replace, swap neighbours) that turn one name into the other.
fn distance(given: &[char], candidate: &str) -> usize {
    let target: Vec<char> = candidate.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=target.len()).collect();
    for (row, letter) in given.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in target.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && given[row - 1] == *other && target[column - 1] == *letter;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[target.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
        let names = ["delta", "epsilon", "unit", "expected_batch_size"];
        assert_eq!(nearest("delat", &names), Some("delta"));
        assert_eq!(nearest("Epsilon", &names), Some("epsilon"));
        assert_eq!(nearest("eps", &names), Some("epsilon"));
        assert_eq!(nearest("batch_size", &names), Some("expected_batch_size"));
        assert_eq!(nearest("units", &names), Some("unit"));
        assert_eq!(nearest("colour", &names), None);
        assert_eq!(nearest("", &names), None);
    }
}
