//! Neighbouring corpora and the histograms that each method makes of them: the distance is at most the stated one.
//!
//! 400 random pairs for each method, relation and state of the earlier rounds; `SENSITIVITY_PAIRS` sets another number.

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

use super::contribution::Contribution;
use super::histogram::ONE;
use super::sips::{self, Found};
use super::{ReleaseError, degree, descent, pooled};
use crate::count::UnitItems;
use crate::unit::Piece;
use std::collections::BTreeMap;

/// Where τ and the target lie: low, so that small corpora reach them.
const LOW: u64 = ONE + ONE / 4;

type Weigh = fn(&UnitItems, &Found) -> Result<Vec<u64>, ReleaseError>;

fn never(_: u64) -> Stream {
    unreachable!("no unit reaches the cap")
}

/// Lengths of units, at most: some with more items than adapt.
const ANY: &[u64] = &[3, 12, 75];

/// A method, the longest units it is tried on, and its histogram. The papers' two reach the bound only with units of as
/// many items, or of one item as often, as the cap.
const METHODS: [(&str, &[u64], Weigh); 7] = [
    ("pooled", ANY, |items, found| pooled::weigh(items, found, 100, never)),
    ("policy", ANY, |items, found| descent::weigh(items, found, (2 * LOW, 100), never)),
    ("mad2r's first round", ANY, |items, found| {
        degree::weigh(items, &Found { bias: Vec::new(), ..found.clone() }, (LOW, 100), never)
    }),
    ("mad2r's second round", ANY, |items, found| degree::weigh(items, found, (LOW, 100), never)),
    ("even", ANY, |items, found| sips::weigh(items, found, (Contribution::Even, 100), never)),
    ("presence", &[3], |items, found| sips::weigh(items, found, (Contribution::Presence, 3), never)),
    ("counts", &[3], |items, found| sips::weigh(items, found, (Contribution::Counts, 3), never)),
];

fn word(number: u64) -> String {
    format!(" w{}{}", (b'a' + (number / 26) as u8) as char, (b'a' + (number % 26) as u8) as char)
}

/// The histogram by name of item; what earlier rounds released and passed over hangs on the name alone.
fn histogram(units: &[Vec<u64>], weigh: Weigh, state: u64) -> BTreeMap<String, u64> {
    let pieces = units
        .iter()
        .enumerate()
        .map(|(unit, words)| Ok(Piece { unit: unit as u64, text: words.iter().map(|&w| word(w)).collect() }));
    let items = UnitItems::collect(pieces).unwrap();
    let mut names = Vec::new();
    items.each_name(|_, name| names.push(name.to_owned())).unwrap();
    let marked = |name: &String, bit: u64| state >> (name.bytes().map(u64::from).sum::<u64>() % 7) & 1 == bit;
    let found = Found {
        weights: names.iter().map(|n| (state > 0 && marked(n, 1)).then_some(1.0)).collect(),
        public: vec![false; names.len()],
        passed_over: names.iter().map(|n| state > 100 && !marked(n, 1) && n.ends_with('b')).collect(),
        bias: names.iter().map(|n| share(n)).collect(),
    };
    names.into_iter().zip(weigh(&items, &found).unwrap()).collect()
}

/// What a first round's noisy weight may have been: of some items far beyond need, of some a little, of most less.
fn share(name: &str) -> f64 {
    let outlook = degree::Outlook::new(3, 20);
    outlook.share([0, 10, 25, 60][name.bytes().last().map_or(0, usize::from) % 4])
}

fn distance(a: &BTreeMap<String, u64>, b: &BTreeMap<String, u64>) -> f64 {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let of = |list: &BTreeMap<String, u64>, name| list.get(name).copied().unwrap_or(0);
    let square: u128 =
        names.into_iter().map(|n| u128::from(of(a, n).abs_diff(of(b, n)))).map(|d| d * d).sum();
    (square as f64).sqrt() / ONE as f64
}

/// A corpus of up to 30 units, many alike, of few words or many.
fn corpus(s: &mut Stream, longest: u64) -> Vec<Vec<u64>> {
    let variety = [1, 70][s.below(2) as usize];
    let (words, units) = (2 + s.below(variety), 1 + s.below(30));
    (0..units).map(|_| (0..1 + s.below(longest)).map(|_| s.below(words)).collect()).collect()
}

fn pairs() -> u64 {
    std::env::var("SENSITIVITY_PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

#[test]
fn neighbouring_histograms_lie_at_most_the_sensitivity_apart_for_each_method_and_relation() {
    let mut s = TestRng::from_seed(9).stream(Purpose::Data, 0, 0);
    for (name, lengths, weigh) in METHODS {
        let (mut removed, mut replaced) = (0.0_f64, 0.0_f64);
        for _ in 0..pairs() {
            let longest = lengths[s.below(lengths.len() as u64) as usize];
            let units = corpus(&mut s, longest);
            let at = s.below(units.len() as u64) as usize;
            let state = [0, s.below(100), 100 + s.below(28)][s.below(3) as usize];
            let full = histogram(&units, weigh, state);
            let mut fewer = units.clone();
            fewer.remove(at);
            removed = removed.max(distance(&full, &histogram(&fewer, weigh, state)));
            let mut other = units;
            other[at] = (0..1 + s.below(longest.min(9))).map(|_| 60 + s.below(30)).collect();
            replaced = replaced.max(distance(&full, &histogram(&other, weigh, state)));
        }
        eprintln!("{name}: {removed:.4} when a unit is removed, {replaced:.4} when one is replaced");
        // Near the bound, or else the pairs would not notice weights one part in twenty too large.
        assert!(removed <= 1.0 && removed > 0.97, "{name}: {removed} when a unit is removed");
        assert!(replaced <= 2.0 && replaced > 0.97, "{name}: {replaced} when a unit is replaced");
    }
}
