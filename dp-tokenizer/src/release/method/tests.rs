//! Tests of what every method must hold: neighboring corpora give histograms at most the stated distance apart, and the
//! items that a round passes over change no unit's choice of items.
//!
//! 400 random pairs for each method, relation and state of the earlier rounds; `SENSITIVITY_PAIRS` sets another number.

use std::collections::BTreeMap;

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng, Words};

use super::Hidden;
use super::mad2r::{Mad2r, NextRound};
use super::policy::Policy;
use super::pooled;
use super::sips;
use crate::count::UnitItems;
use crate::release::contribution::Contribution;
use crate::release::error::ReleaseError;
use crate::release::fixed_point::{ONE, even_weight};
use crate::release::selection::Selection;
use crate::release::{Paper, PaperHistogram, ReleaseConfig};
use crate::unit::Piece;

/// The value of τ and the target in these tests, so low that small corpora reach it.
const LOW: u64 = ONE + ONE / 4;

/// The state after the earlier rounds: the selection, and MAD2R's bias.
struct State {
    selection: Selection,
    bias: Vec<f64>,
}

impl State {
    fn hidden<'a>(&'a self, items: &'a UnitItems) -> Hidden<'a> {
        Hidden { items, selection: &self.selection }
    }
}

type Weigh = fn(&UnitItems, &State) -> Result<Vec<u64>, ReleaseError>;

fn never(_: u64) -> Stream {
    unreachable!("no unit reaches the cap")
}

fn mad2r(bias: Vec<f64>, limit: u64, cap: u32) -> Mad2r {
    Mad2r { limit, bias, ..Mad2r::new(cap) }
}

fn weigh_by(
    contribution: Contribution,
    cap: u32,
    items: &UnitItems,
    state: &State,
) -> Result<Vec<u64>, ReleaseError> {
    Ok(sips::histogram(state.hidden(items), contribution, cap, never)?)
}

/// A method with its histogram, and the largest lengths of units on which it is tried.
struct Case {
    name: &'static str,
    lengths: &'static [u64],
    weigh: Weigh,
}

/// The largest lengths of units: some have more items than adapt.
const ANY: &[u64] = &[3, 12, 75];

/// The methods. Those of the two papers reach the bound only with units of as many items, or of one item as often, as
/// the cap.
const CASES: [Case; 7] = [
    Case {
        name: "pooled",
        lengths: ANY,
        weigh: |items, state| pooled::weigh(state.hidden(items), 100, never),
    },
    Case {
        name: "policy",
        lengths: ANY,
        weigh: |items, state| {
            Policy { cap: 100, target: 2 * LOW, ..Policy::default() }.weigh(state.hidden(items), never)
        },
    },
    Case {
        name: "mad2r's first round",
        lengths: ANY,
        weigh: |items, state| mad2r(Vec::new(), LOW, 100).weigh(state.hidden(items), never),
    },
    Case {
        name: "mad2r's second round",
        lengths: ANY,
        weigh: |items, state| mad2r(state.bias.clone(), LOW, 100).weigh(state.hidden(items), never),
    },
    Case {
        name: "even",
        lengths: ANY,
        weigh: |items, state| weigh_by(Contribution::Even, 100, items, state),
    },
    Case {
        name: "presence",
        lengths: &[3],
        weigh: |items, state| weigh_by(Contribution::Presence, 3, items, state),
    },
    Case {
        name: "counts",
        lengths: &[3],
        weigh: |items, state| weigh_by(Contribution::Counts, 3, items, state),
    },
];

fn word(number: u64) -> String {
    format!(" w{}{}", (b'a' + (number / 26) as u8) as char, (b'a' + (number % 26) as u8) as char)
}

fn names(items: &UnitItems) -> Vec<String> {
    let mut names = Vec::new();
    items.each_name(|_, name| names.push(name.to_owned())).unwrap();
    names
}

/// Returns the histogram by name of item. Whether earlier rounds released an item or passed it over depends on its name
/// alone.
fn histogram(units: &[Vec<u64>], weigh: Weigh, state: u64) -> BTreeMap<String, u64> {
    let pieces = units
        .iter()
        .enumerate()
        .map(|(unit, words)| Ok(Piece { unit: unit as u64, text: words.iter().map(|&w| word(w)).collect() }));
    let items = UnitItems::from_pieces(pieces, Words::ByClass).unwrap();
    let names = names(&items);
    let marked = |name: &String, bit: u64| state >> (name.bytes().map(u64::from).sum::<u64>() % 7) & 1 == bit;
    let selection = Selection {
        released: names.iter().map(|n| (state > 0 && marked(n, 1)).then_some(1.0)).collect(),
        public: vec![false; names.len()],
        passed_over: names.iter().map(|n| state > 100 && !marked(n, 1) && n.ends_with('b')).collect(),
    };
    let state = State { selection, bias: names.iter().map(|n| share(n)).collect() };
    names.into_iter().zip(weigh(&items, &state).unwrap()).collect()
}

/// Returns the factor after a first round whose noisy weight depends on the name: far beyond need for some items, a
/// little for some, less for most.
fn share(name: &str) -> f64 {
    let next = NextRound::new(3, 20);
    next.share([0, 10, 25, 60][name.bytes().last().map_or(0, usize::from) % 4])
}

fn distance(a: &BTreeMap<String, u64>, b: &BTreeMap<String, u64>) -> f64 {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let of = |list: &BTreeMap<String, u64>, name| list.get(name).copied().unwrap_or(0);
    let square: u128 =
        names.into_iter().map(|n| u128::from(of(a, n).abs_diff(of(b, n)))).map(|d| d * d).sum();
    (square as f64).sqrt() / ONE as f64
}

/// Returns a corpus of up to 30 units, many alike, of few words or many.
fn corpus(s: &mut Stream, longest: u64) -> Vec<Vec<u64>> {
    let variety = [1, 70][s.below(2) as usize];
    let (words, units) = (2 + s.below(variety), 1 + s.below(30));
    (0..units).map(|_| (0..1 + s.below(longest)).map(|_| s.below(words)).collect()).collect()
}

fn pairs() -> u64 {
    std::env::var("SENSITIVITY_PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

#[test]
fn neighboring_histograms_lie_at_most_the_sensitivity_apart_for_each_method_and_relation() {
    let mut s = TestRng::from_seed(9).stream(Purpose::Data, 0, 0);
    for Case { name, lengths, weigh } in CASES {
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
        // The largest distance is near the bound. Otherwise the pairs would not notice weights that are 5 % too large.
        assert!(removed <= 1.0 && removed > 0.97, "{name}: {removed} when a unit is removed");
        assert!(replaced <= 2.0 && replaced > 0.97, "{name}: {replaced} when a unit is replaced");
    }
}

fn units(texts: &[String], words: Words) -> UnitItems {
    UnitItems::from_pieces(
        texts.iter().enumerate().map(|(i, t)| Ok(Piece { unit: i as u64, text: t.clone() })),
        words,
    )
    .unwrap()
}

fn histogram_of_texts(
    texts: &[String],
    released: &[&str],
    contribution: Contribution,
    cap: u32,
) -> BTreeMap<String, u64> {
    let items = units(texts, Words::ByClass);
    let names = names(&items);
    let mut selection = Selection::new(&items, true).unwrap();
    selection.released = names.iter().map(|n| released.contains(&n.as_str()).then_some(1.0)).collect();
    let rng = TestRng::from_seed(0);
    // The choice depends on the unit alone, as it must: here on its text length, so that it survives renumbering.
    let lengths: Vec<u64> = texts.iter().map(|t| t.len() as u64).collect();
    let choice = |unit| rng.stream(Purpose::Contribution, lengths[unit as usize], 0);
    let weighed = sips::histogram(Hidden { items: &items, selection: &selection }, contribution, cap, choice);
    names.into_iter().zip(weighed.unwrap()).filter(|w| w.1 > 0).collect()
}

#[test]
fn the_histogram_moves_by_at_most_one_when_a_unit_is_removed() {
    // There are about 10,000 random neighboring pairs for each way to weigh. The sensitivity is compared in exact
    // integers.
    let mut s = TestRng::from_seed(9).stream(Purpose::Data, 0, 0);
    for _ in 0..30_000 {
        let texts: Vec<String> = (0..1 + s.below(6))
            .map(|_| (0..1 + s.below(9)).map(|_| format!(" w{:02}x", s.below(12))).collect())
            .collect();
        let removed = s.below(texts.len() as u64) as usize;
        let fewer: Vec<String> =
            texts.iter().enumerate().filter(|(i, _)| *i != removed).map(|(_, t)| t.clone()).collect();
        let released = if s.below(2) == 0 { &["▁w", "x"][..] } else { &["01", "02"][..] };
        // No unit reaches this cap: the items chosen would otherwise depend on their numbers.
        let contribution =
            [Contribution::Even, Contribution::Presence, Contribution::Counts][s.below(3) as usize];
        let of = |texts: &[String]| histogram_of_texts(texts, released, contribution, 100);
        let (full, less) = (of(&texts), of(&fewer));
        let square: u128 = full
            .iter()
            .map(|(name, &w)| u128::from(w.abs_diff(less.get(name).copied().unwrap_or(0))))
            .map(|d| d * d)
            .sum();
        assert!(square <= u128::from(ONE) * u128::from(ONE));
        assert!(less.keys().all(|k| full.contains_key(k)));
    }
}

#[test]
fn a_unit_beyond_the_cap_gives_norm_one_to_as_many_items_as_the_cap() {
    let text: String = (0..50)
        .map(|i| format!(" {}", (b'a' + i % 26) as char).repeat(2) + &"z".repeat(i as usize))
        .collect();
    let weighed = histogram_of_texts(&[text], &[], Contribution::Even, 10);
    assert_eq!(weighed.len(), 10);
    assert!(weighed.values().all(|&w| w == even_weight(10)));
}

/// Oracle: by hand. A text of eight distinct words has seven pairs of them and two with its boundaries, of which eight items count
/// together: by 1 of a norm of √8, or by 1 each of a total of 8.
#[test]
fn pairs_of_words_share_the_items_that_a_papers_histogram_bounds() {
    let text: String = ('a'..='h').map(|c| format!(" {c}{c}")).collect();
    let items = units(&[text], Words::Pairs);
    assert_eq!(items.distinct(), 8 + 7 + 2);
    for (paper, weight) in [(Paper::Hoory2021, even_weight(8)), (Paper::Ponomareva2022, ONE / 8)] {
        let config = ReleaseConfig::new(PaperHistogram { paper, words: 8 }, 12.5, 1e-9).unwrap();
        let selection = Selection::new(&items, true).unwrap();
        let stream = |unit| TestRng::from_seed(5).stream(Purpose::Contribution, unit, 0);
        let hidden = Hidden { items: &items, selection: &selection };
        let weighed = sips::histogram(hidden, config.contribution(), config.cap(), stream).unwrap();
        let counted: Vec<u64> = weighed.into_iter().filter(|weight| *weight > 0).collect();
        assert_eq!(counted, [weight; 8], "{paper:?}");
    }
}

/// Oracle: by hand. A labelled text of eight distinct words has 17 items of words and pairs, and nine with its label. All share one norm:
/// with a norm of their own for those of the label, a unit would move the histogram by √2, and uncounted they would add 9 of 17.
#[test]
fn words_with_a_label_share_the_norm_of_a_unit() {
    let text: String = ('a'..='h').map(|c| format!(" {c}{c}")).collect();
    let items = units(&[format!("joy\n{text}")], Words::PairsByLabel);
    assert_eq!(items.distinct(), 17 + 9);
    let new =
        || State { selection: Selection::new(&items, true).unwrap(), bias: vec![1.0; items.distinct()] };
    for case in CASES.iter().filter(|case| case.lengths == ANY) {
        let weights = (case.weigh)(&items, &new()).unwrap();
        let square: u128 = weights.iter().map(|weight| u128::from(*weight).pow(2)).sum();
        assert!(
            weights.iter().all(|weight| *weight > 0) && square <= u128::from(ONE).pow(2),
            "{}",
            case.name
        );
    }
    assert_eq!(pooled::weigh(new().hidden(&items), 100, never).unwrap(), [even_weight(26); 26]);
}

#[test]
fn what_a_round_passes_over_changes_no_units_choice_of_items() {
    let text = (0..50_u8).map(|i| format!(" {}{}", (b'a' + i / 8) as char, (b'a' + i % 8) as char)).collect();
    let items = units(&[text], Words::ByClass);
    let nothing = vec![false; items.distinct()];
    let selection = |passed_over: &[bool]| Selection {
        released: vec![None; nothing.len()],
        public: nothing.clone(),
        passed_over: passed_over.to_vec(),
    };
    let stream = |unit| TestRng::from_seed(3).stream(Purpose::Contribution, unit, 0);
    let pooled =
        |selection: &Selection| pooled::weigh(Hidden { items: &items, selection }, 10, stream).unwrap();
    let mad2r = |selection: &Selection| {
        mad2r(Vec::new(), ONE, 10).weigh(Hidden { items: &items, selection }, stream).unwrap()
    };
    for weigh in [&pooled as &dyn Fn(&Selection) -> Vec<u64>, &mad2r] {
        let chosen: Vec<bool> = weigh(&selection(&nothing)).iter().map(|&weight| weight > 0).collect();
        assert_eq!(chosen.iter().filter(|&&is| is).count(), 10);
        // Every other item is passed over, chosen ones among them.
        let passed_over: Vec<bool> = (0..chosen.len()).map(|at| at % 2 == 0).collect();
        let again: Vec<bool> = weigh(&selection(&passed_over)).iter().map(|&weight| weight > 0).collect();
        let left: Vec<bool> = chosen.iter().zip(&passed_over).map(|(&is, &gone)| is && !gone).collect();
        assert!(again == left && left != chosen);
    }
}

#[test]
fn released_and_public_items_get_no_weight() {
    let weighed = histogram_of_texts(&[" known hidden x .".to_owned()], &["▁known"], Contribution::Even, 10);
    assert_eq!(weighed.into_iter().collect::<Vec<_>>(), [("▁hidden".to_owned(), ONE)]);
}
