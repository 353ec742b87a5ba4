//! Mentions of entities in tags of words, as conlleval and seqeval count them.
//!
//! # References
//! `seqeval.metrics.sequence_labeling.get_entities` (version 1.2.2), which equals conlleval.pl on tags with a prefix.

use std::collections::{BTreeMap, BTreeSet};

use super::scores::Counts;

/// A mention: its type, and the places of its first and last word.
type Mention<'a> = (&'a str, usize, usize);

/// Adds the mentions of one sentence to the counts of each type.
pub(super) fn count_mentions<'a>(
    actual: &[&'a str],
    predicted: &[&'a str],
    by_type: &mut BTreeMap<&'a str, Counts>,
) {
    let [actual, predicted] =
        [actual, predicted].map(|tags| mentions(tags).into_iter().collect::<BTreeSet<Mention<'a>>>());
    actual.iter().for_each(|mention| by_type.entry(mention.0).or_default().actual += 1);
    predicted.iter().for_each(|mention| by_type.entry(mention.0).or_default().predicted += 1);
    actual.intersection(&predicted).for_each(|mention| by_type.entry(mention.0).or_default().hits += 1);
}

/// Returns the mentions in the tags of one sentence: B, I, E and S before a type, and O. A change
/// of type ends a mention, and an I after an O begins one.
fn mentions<'a>(tags: &[&'a str]) -> Vec<Mention<'a>> {
    let (mut found, mut begin) = (Vec::new(), 0);
    let mut last = Tag::parse("O");
    for (place, tag) in tags.iter().copied().chain(["O"]).map(Tag::parse).enumerate() {
        if last.ends_before(tag) {
            found.push((last.kind, begin, place - 1));
        }
        if tag.begins_after(last) {
            begin = place;
        }
        last = tag;
    }
    found
}

#[derive(Clone, Copy)]
struct Tag<'a> {
    /// B, I, E, S or O.
    prefix: char,
    kind: &'a str,
}

impl<'a> Tag<'a> {
    fn parse(tag: &'a str) -> Self {
        let prefix = tag.chars().next().unwrap_or('O');
        let rest = tag.get(prefix.len_utf8()..).unwrap_or_default();
        let kind = rest.split_once('-').map_or(rest, |(_, kind)| kind);
        Self { prefix, kind: if kind.is_empty() { "_" } else { kind } }
    }

    fn is_outside(self) -> bool {
        matches!(self.prefix, 'O' | '.')
    }

    fn ends_before(self, next: Self) -> bool {
        match (self.prefix, next.prefix) {
            ('E' | 'S', _) | ('B' | 'I', 'B' | 'S' | 'O') => true,
            _ => !self.is_outside() && self.kind != next.kind,
        }
    }

    fn begins_after(self, last: Self) -> bool {
        match (last.prefix, self.prefix) {
            (_, 'B' | 'S') | ('E' | 'S' | 'O', 'E' | 'I') => true,
            _ => !self.is_outside() && self.kind != last.kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Oracle: seqeval (tests/vectors/scores/make.py), on tags with every prefix and in impossible orders.
    #[test]
    fn mentions_and_their_scores_equal_those_of_seqeval() {
        let file: Value =
            serde_json::from_str(include_str!("../../tests/vectors/scores/expected.json")).unwrap();
        for case in file["tags"].as_array().unwrap() {
            let rows = |field: &str| serde_json::from_value::<Vec<Vec<String>>>(case[field].clone()).unwrap();
            let (actual, predicted) = (rows("actual"), rows("predicted"));
            let mut by_type = BTreeMap::new();
            for ((actual, predicted), want) in
                actual.iter().zip(&predicted).zip(case["mentions"].as_array().unwrap())
            {
                let [actual, predicted] =
                    [actual, predicted].map(|row| row.iter().map(String::as_str).collect::<Vec<_>>());
                assert_eq!(serde_json::to_value(mentions(&actual)).unwrap(), *want, "{actual:?}");
                count_mentions(&actual, &predicted, &mut by_type);
            }
            let all = Counts::total(by_type.values());
            for (got, field) in [(all.precision(), "precision"), (all.recall(), "recall"), (all.f1(), "f1")] {
                let want = case[field].as_f64().unwrap();
                // Both programs divide whole numbers, but seqeval's F1 is made of two quotients.
                assert!((got - want).abs() < 1e-15, "{field}: {got} {want}");
            }
        }
    }
}
