//! Adds noise to counts of items that are already known: a plain Gaussian mechanism without a threshold.

use std::collections::HashMap;

use mechanisms::{PrivacyRng, Purpose};

use super::error::ReleaseError;
use super::fixed_point::{ONE, noise, scale_to_unit_norm};
use super::selection::Selection;
use crate::count::{UnitItems, public_items};
use crate::unit::UnitError;

/// The index of the noise stream of the counts. The rounds use index 0.
const COUNT_STREAM: u32 = 1;

/// The number of σ that the count of a public item must exceed. A smaller count could be noise alone.
const PUBLIC_SIGMAS: i64 = 4;

/// Returns noisy counts of the released and the public items. Each unit's counts are scaled to an L2 norm of 1.
///
/// Every item of this known list gets noise, whether or not a unit holds it. The rest is post-processing: a released
/// item is known to be frequent, so its count is at least σ; a public item is kept only if it stands out.
pub(super) fn count(
    items: &UnitItems,
    selection: &Selection,
    noise_multiplier: f64,
    rng: &dyn PrivacyRng,
) -> Result<Vec<(String, f64)>, ReleaseError> {
    let noise = noise(noise_multiplier)?;
    let mut stream = rng.stream(Purpose::HistogramNoise, 0, COUNT_STREAM);
    let histogram = sum(items, selection)?;
    let (mut public, mut released) = (HashMap::new(), Vec::new());
    items.each_name(|number, name| {
        if selection.released[number as usize].is_some() {
            released.push((name.to_owned(), histogram[number as usize]));
        } else if selection.public[number as usize] {
            public.insert(name.to_owned(), histogram[number as usize]);
        }
    })?;
    let sigma = noise.sigma() as i64;
    let mut noisy = |weight: u64| (weight as i64).saturating_add(noise.sample(&mut stream));
    let mut out = Vec::new();
    for item in public_items() {
        let count = noisy(public.get(&item).copied().unwrap_or(0));
        if count > PUBLIC_SIGMAS * sigma {
            out.push((item, count as f64 / ONE as f64));
        }
    }
    out.extend(released.into_iter().map(|(name, count)| (name, noisy(count).max(sigma) as f64 / ONE as f64)));
    Ok(out)
}

/// Returns the sum of the units' scaled counts.
fn sum(items: &UnitItems, selection: &Selection) -> Result<Vec<u64>, UnitError> {
    let mut histogram = vec![0_u64; items.distinct()];
    let mut counts: Vec<(u64, u64)> = Vec::new();
    items.each_unit(|_, held| {
        counts.clear();
        let known = |n: u64| selection.released[n as usize].is_some() || selection.public[n as usize];
        counts.extend(held.iter().filter(|h| known(h.0)).map(|&(n, c)| (n, u64::from(c))));
        scale_to_unit_norm(&mut counts);
        counts.iter().for_each(|&(n, c)| histogram[n as usize] += c);
    })?;
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::is_public_item;
    use crate::unit::Piece;
    use mechanisms::{TestRng, Words};

    type Counts<T> = Vec<(String, T)>;

    /// Returns the counts without noise, in the fixed-point unit, and those with noise.
    fn counted(
        texts: &[String],
        words: Words,
        released: &[&str],
        rng: &TestRng,
    ) -> (Counts<u64>, Counts<f64>) {
        let pieces = texts.iter().enumerate().map(|(i, t)| Ok(Piece { unit: i as u64, text: t.clone() }));
        let items = UnitItems::from_pieces(pieces, words).unwrap();
        let mut names: Vec<String> = Vec::new();
        items.each_name(|_, name| names.push(name.to_owned())).unwrap();
        let weights = names.iter().map(|n| released.contains(&n.as_str()).then_some(1.0)).collect();
        let public = names.iter().map(|n| is_public_item(n)).collect();
        let selection = Selection { released: weights, public, passed_over: vec![false; names.len()] };
        let exact = names.into_iter().zip(sum(&items, &selection).unwrap()).collect();
        (exact, count(&items, &selection, 2.0, rng).unwrap())
    }

    #[test]
    fn the_counts_move_by_at_most_one_when_a_unit_is_removed() {
        let rng = TestRng::from_seed(9);
        let mut s = rng.stream(Purpose::Data, 0, 0);
        for draw in 0..4_000 {
            let (words, label) = [(Words::ByClass, ""), (Words::PairsByLabel, "joy\n")][draw % 2];
            let texts: Vec<String> = (0..1 + s.below(5))
                .map(|_| {
                    let mut text = label.to_owned();
                    for _ in 0..1 + s.below(30) {
                        text += &format!(" w{}", [",", "xy", "..", "abc"][s.below(4) as usize]);
                    }
                    text
                })
                .collect();
            let released = ["▁wxy", "▁wabc", "..", "▁wxy▁wxy", "joy␟▁wxy", "joy␟␃"];
            let full = counted(&texts, words, &released, &rng).0;
            let less: std::collections::HashMap<_, _> =
                counted(&texts[1..], words, &released, &rng).0.into_iter().collect();
            let square: u128 = full
                .iter()
                .map(|(name, c)| u128::from(c.abs_diff(less.get(name).copied().unwrap_or(0))))
                .map(|d| d * d)
                .sum();
            assert!(square <= u128::from(ONE) * u128::from(ONE), "{texts:?}");
        }
    }

    #[test]
    fn noise_has_the_stated_sigma_and_hidden_items_never_appear() {
        let texts: Vec<String> = (0..400).map(|_| " known hidden known".to_owned()).collect();
        // Each unit gives all of its norm to the one known item, so the count without noise is 400.
        let draws: Vec<f64> = (0..3000)
            .map(|seed| {
                let out = counted(&texts, Words::ByClass, &["▁known"], &TestRng::from_seed(seed)).1;
                assert!(out.iter().all(|w| w.0 == "▁known" || is_public_item(&w.0)), "{out:?}");
                out.iter().find(|w| w.0 == "▁known").unwrap().1 - 400.0
            })
            .collect();
        let variance = draws.iter().map(|d| d * d).sum::<f64>() / draws.len() as f64;
        let tolerance = 4.9 * (2.0 / draws.len() as f64).sqrt(); // α = 1e-6
        assert!((variance / 4.0 - 1.0).abs() < tolerance, "{variance}");
        assert!((variance / 4.84 - 1.0).abs() > tolerance, "σ wrong by 10 % must be rejected");
    }
}
