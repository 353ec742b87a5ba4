use std::collections::HashSet;

use dp_tokenizer::unit::Piece;
use mechanisms::TestRng;
use proptest::prelude::*;

use super::*;

/// A small public vocabulary with byte fallback.
fn tokenizer() -> (Tokenizer, u32) {
    let words = [("\u{2581}alpha".to_owned(), 5.0), ("\u{2581}gamma".to_owned(), 3.0)];
    let config = dp_tokenizer::train::UnigramConfig { vocab_size: 380, ..Default::default() };
    let tokenizer = dp_tokenizer::train::unigram(&words, &config).unwrap().tokenizer;
    let eos = tokenizer.eos_id().unwrap();
    (tokenizer, eos)
}

fn causal(eos: u32, context: usize) -> Cut {
    Cut { eos, length: context, carries_over: true }
}

fn parts(texts: &[(u64, &str)]) -> Vec<Part> {
    texts
        .iter()
        .map(|&(unit, text)| Part {
            piece: Piece { unit, text: text.to_owned() },
            begins_record: true,
            ends_record: true,
        })
        .collect()
}

/// PITFALLS 17: windows are disjoint in their targets, cover the unit, and never hold another unit's token.
#[test]
fn every_token_of_a_unit_is_a_target_exactly_once_and_in_its_own_unit() {
    let (tokenizer, eos) = tokenizer();
    let texts = ["a", "bb", "cccc", "dddddddd", "e e e e e e e e e e e e"];
    let numbered: Vec<(u64, &str)> = texts.iter().enumerate().map(|(i, &text)| (i as u64, text)).collect();
    for context in [2, 3, 4, 100] {
        let dataset = Dataset::encode(&parts(&numbered), &tokenizer, causal(eos, context));
        assert_eq!(dataset.units(), texts.len());
        for (unit, text) in texts.iter().enumerate() {
            let mut targets = Vec::new();
            for window in 0..dataset.windows_of(unit) {
                let window = dataset.window(unit, window);
                assert!(window.len() >= 2 && window.len() <= context + 1);
                targets.extend_from_slice(&window[1..]);
            }
            let mut expected = tokenizer.encode(text);
            expected.push(eos);
            assert_eq!(targets, expected, "unit {unit}, context {context}");
        }
    }
}

#[test]
fn records_of_one_user_are_one_unit_wherever_they_stand() {
    let (tokenizer, eos) = tokenizer();
    let dataset = Dataset::encode(&parts(&[(0, "a"), (1, "b"), (0, "c")]), &tokenizer, causal(eos, 100));
    let of = |text: &str| tokenizer.encode(text);
    assert_eq!(dataset.units(), 2);
    assert_eq!(dataset.window(0, 0), [vec![eos], of("a"), vec![eos], of("c"), vec![eos]].concat());
}

/// One unit contributes one window, however many it owns: the sensitivity of the step is one clipped gradient.
#[test]
fn a_sampled_unit_contributes_exactly_one_of_its_windows_and_any_of_them() {
    let (tokenizer, eos) = tokenizer();
    let long = "abcdefghijklmnopqrstuvwxyz".repeat(4);
    let dataset = Dataset::encode(&parts(&[(0, &long)]), &tokenizer, causal(eos, 8));
    let windows = dataset.windows_of(0);
    assert!(windows > 10);
    let mut seen = HashSet::new();
    for step in 0..400 {
        let lot = dataset.sample(1.0, step, &TestRng::from_seed(3));
        assert_eq!(lot.for_mechanism().len(), 1);
        seen.insert(lot.for_mechanism()[0].1.clone());
    }
    // Oracle: a window is missed with probability below 14·(13/14)^400 < 2e-12.
    assert_eq!(seen.len(), dataset.all_windows().into_iter().collect::<HashSet<_>>().len());
}

/// PITFALLS 1: the drawn sizes are Binomial(n, q), as the event says; a shuffled, fixed-size batch has variance 0.
#[test]
fn drawn_sizes_have_the_mean_and_variance_of_poisson_sampling() {
    let (tokenizer, eos) = tokenizer();
    let texts: Vec<(u64, &str)> = (0..400).map(|unit| (unit, "x")).collect();
    let dataset = Dataset::encode(&parts(&texts), &tokenizer, causal(eos, 8));
    let (n, q, draws) = (400.0_f64, 0.1_f64, 2000);
    let rng = TestRng::from_seed(11);
    let sizes: Vec<f64> =
        (0..draws).map(|step| dataset.sample(q, step, &rng).for_mechanism().len() as f64).collect();
    let mean = sizes.iter().sum::<f64>() / draws as f64;
    let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / draws as f64;
    // Five standard errors (two-sided 6e-7) of the mean and of the variance of 2000 nearly normal draws.
    let expected = n * q * (1.0 - q);
    assert!((mean - n * q).abs() < 5.0 * (expected / draws as f64).sqrt(), "{mean}");
    assert!((variance - expected).abs() < 5.0 * expected * (2.0 / draws as f64).sqrt(), "{variance}");
}

proptest! {
    /// Removing a unit takes its window out of the lot of a step and leaves what every other unit owns as it was.
    #[test]
    fn removing_a_unit_changes_no_other_units_windows(removed in 0_usize..6, context in 2_usize..6) {
        let (tokenizer, eos) = tokenizer();
        let texts = ["alpha", "be", "gamma gamma", "d", "epsilon", "zeta zeta zeta"];
        let all: Vec<(u64, &str)> = texts.iter().enumerate().map(|(i, &text)| (i as u64, text)).collect();
        let mut fewer = all.clone();
        fewer.remove(removed);
        let whole = Dataset::encode(&parts(&all), &tokenizer, causal(eos, context));
        let neighbor = Dataset::encode(&parts(&fewer), &tokenizer, causal(eos, context));
        prop_assert_eq!(neighbor.units() + 1, whole.units());
        for unit in (0..texts.len()).filter(|&unit| unit != removed) {
            let place = unit - usize::from(unit > removed);
            prop_assert_eq!(neighbor.windows_of(place), whole.windows_of(unit));
            for window in 0..whole.windows_of(unit) {
                prop_assert_eq!(neighbor.window(place, window), whole.window(unit, window));
            }
        }
    }
}

/// PITFALLS 17: without a token carried over, windows share nothing at all.
#[test]
fn windows_that_carry_nothing_over_are_disjoint_and_cover_the_unit() {
    let (tokenizer, eos) = tokenizer();
    for length in [1, 3, 8, 100] {
        let cut = Cut { eos, length, carries_over: false };
        let dataset = Dataset::encode(&parts(&[(0, "abcdefgh abc"), (1, "x")]), &tokenizer, cut);
        for (unit, text) in ["abcdefgh abc", "x"].into_iter().enumerate() {
            let windows: Vec<&[u32]> =
                (0..dataset.windows_of(unit)).map(|window| dataset.window(unit, window)).collect();
            assert!(windows.iter().all(|window| !window.is_empty() && window.len() <= length));
            assert_eq!(windows.concat(), [tokenizer.encode(text), vec![eos]].concat());
        }
    }
}
