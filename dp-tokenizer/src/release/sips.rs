//! DP-SIPS: rounds of evenly weighted histograms; what is released leaves, so that later rounds weigh the rest more.

use mechanisms::{PrivacyRng, Purpose, Stream};

use super::contribution::{Contribution, keep_some};
use super::histogram::{ONE, noise};
use super::{Method, ReleaseConfig, ReleaseError};
use crate::count::{UnitItems, is_public_item};
use crate::unit::UnitError;

/// What the rounds released.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// The noisy weight with which each item, by number, was released; none for the others.
    pub(super) weights: Vec<Option<f64>>,
    /// Items that need no release.
    pub(super) public: Vec<bool>,
    /// Items on which units spend nothing for now, as noisy weights (which hang on no single unit) speak against them.
    pub(super) passed_over: Vec<bool>,
    /// The share of an even weight that is enough for an item, as noisy weights say; empty: nobody knows.
    pub(super) bias: Vec<f64>,
}

impl Found {
    /// Whether units give this item weight.
    pub(super) fn is_open(&self, item: u32) -> bool {
        let item = item as usize;
        self.weights[item].is_none() && !self.public[item] && !self.passed_over[item]
    }

    /// The items of a unit to which it gives weight, with their counts, into `open`.
    pub(super) fn open(&self, held: &[(u32, u32)], open: &mut Vec<(u32, u64)>) {
        open.clear();
        open.extend(held.iter().filter(|h| self.is_open(h.0)).map(|&(n, c)| (n, u64::from(c))));
    }

    /// The same of the at most `cap` items with which a unit takes part in all rounds: what a round passes over does not
    /// change which these are, so that an item that no unit chose never gets weight.
    pub(super) fn choose(
        &self,
        held: &[(u32, u32)],
        open: &mut Vec<(u32, u64)>,
        cap: u32,
        stream: impl FnOnce() -> Stream,
    ) {
        open.clear();
        open.extend(held.iter().filter(|h| !self.public[h.0 as usize]).map(|&(n, c)| (n, u64::from(c))));
        keep_some(open, cap, stream);
        open.retain(|&(item, _)| self.is_open(item));
    }

    /// Of [`Self::bias`]; 1 where nothing is known.
    pub(super) fn share(&self, item: u32) -> f64 {
        self.bias.get(item as usize).copied().unwrap_or(1.0)
    }

    /// The released items with their weights.
    pub(super) fn words(&self, items: &UnitItems) -> Result<Vec<(String, f64)>, UnitError> {
        let mut words = Vec::new();
        items.each_name(|number, name| {
            words.extend(self.weights[number as usize].map(|weight| (name.to_owned(), weight)));
        })?;
        Ok(words)
    }
}

pub(super) fn rounds(
    items: &UnitItems,
    config: &ReleaseConfig,
    rng: &impl PrivacyRng,
) -> Result<Found, ReleaseError> {
    let counted = config.count_noise_multiplier().is_some();
    let distinct = items.distinct();
    let mut found =
        Found { weights: vec![None; distinct], passed_over: vec![false; distinct], ..Found::default() };
    // Without a count for them, public items take part like the others.
    items.each_name(|_, name| found.public.push(counted && is_public_item(name)))?;
    if config.method() == Method::Pooled {
        return super::pooled::rounds(items, found, config, rng);
    }
    for round in 0..config.rounds() {
        let noise = noise(config.round_noise_multiplier(round))?;
        let threshold = config.round_threshold(round).fixed_point()?;
        // MAD2R's units take part with the same items in each round.
        let draw = if config.method() == Method::Mad2r { 0 } else { round as u32 };
        let histogram = one_round(items, &found, config, (threshold, noise.sigma()), |unit| {
            rng.stream(Purpose::Contribution, unit, draw)
        })?;
        let outlook = config.outlook(round)?;
        if outlook.is_some() {
            found.bias = vec![1.0; distinct];
        }
        let mut stream = rng.stream(Purpose::HistogramNoise, round as u64, 0);
        for (number, weight) in histogram.into_iter().enumerate() {
            if weight == 0 {
                continue;
            }
            let noisy = (weight as i64).saturating_add(noise.sample(&mut stream));
            if noisy >= threshold {
                let weight = noisy as f64 / ONE as f64 * config.norm();
                found.weights[number] = Some(weight.max(f64::MIN_POSITIVE));
            }
            if let Some(outlook) = &outlook {
                found.passed_over[number] = outlook.is_hopeless(noisy);
                found.bias[number] = outlook.share(noisy);
            }
        }
    }
    Ok(found)
}

/// The histogram of one round by the method; a unit more or less moves it by an L2 norm of at most ONE.
fn one_round(
    items: &UnitItems,
    found: &Found,
    config: &ReleaseConfig,
    (threshold, sigma): (i64, u64),
    stream: impl Fn(u64) -> Stream,
) -> Result<Vec<u64>, ReleaseError> {
    let cap = config.cap();
    match config.method() {
        Method::Policy => {
            super::descent::weigh(items, found, (super::descent::target(threshold, sigma), cap), stream)
        }
        Method::Mad2r => {
            super::degree::weigh(items, found, (super::degree::limit(threshold, sigma), cap), stream)
        }
        Method::Sips | Method::Pooled => weigh(items, found, (config.contribution(), cap), stream),
    }
}

/// The histogram of one round, over the items that are still hidden; each unit adds an L2 norm of at most ONE.
pub(super) fn weigh(
    items: &UnitItems,
    found: &Found,
    (contribution, cap): (Contribution, u32),
    stream: impl Fn(u64) -> Stream,
) -> Result<Vec<u64>, ReleaseError> {
    let mut histogram = vec![0_u64; items.distinct()];
    let mut open: Vec<(u32, u64)> = Vec::new();
    items.each_unit(|unit, held| {
        found.open(held, &mut open);
        contribution.weigh(&mut open, cap, || stream(unit));
        open.iter().for_each(|&(n, weight)| histogram[n as usize] += weight);
    })?;
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::super::histogram::even_weight;
    use super::super::{degree, pooled};
    use super::*;
    use crate::unit::Piece;
    use mechanisms::TestRng;

    fn units(texts: &[String]) -> UnitItems {
        UnitItems::collect(
            texts.iter().enumerate().map(|(i, t)| Ok(Piece { unit: i as u64, text: t.clone() })),
        )
        .unwrap()
    }

    fn names(items: &UnitItems) -> Vec<String> {
        let mut names = Vec::new();
        items.each_name(|_, name| names.push(name.to_owned())).unwrap();
        names
    }

    fn histogram(
        texts: &[String],
        released: &[&str],
        (contribution, cap): (Contribution, u32),
    ) -> std::collections::BTreeMap<String, u64> {
        let items = units(texts);
        let names = names(&items);
        let weights = names.iter().map(|n| released.contains(&n.as_str()).then_some(1.0)).collect();
        let public = names.iter().map(|n| is_public_item(n)).collect();
        let found = Found { weights, public, passed_over: vec![false; names.len()], ..Found::default() };
        let rng = TestRng::from_seed(0);
        // The choice depends on the unit alone, as it must: here on its text length, so that it survives renumbering.
        let lengths: Vec<u64> = texts.iter().map(|t| t.len() as u64).collect();
        let weighed = weigh(&items, &found, (contribution, cap), |unit| {
            rng.stream(Purpose::Contribution, lengths[unit as usize], 0)
        });
        names.into_iter().zip(weighed.unwrap()).filter(|w| w.1 > 0).collect()
    }

    #[test]
    fn the_histogram_moves_by_at_most_one_when_a_unit_is_removed() {
        // About 10,000 random neighbouring pairs for each way to weigh; the sensitivity is compared in exact integers.
        let mut s = TestRng::from_seed(9).stream(Purpose::Data, 0, 0);
        for _ in 0..30_000 {
            let texts: Vec<String> = (0..1 + s.below(6))
                .map(|_| (0..1 + s.below(9)).map(|_| format!(" w{:02}x", s.below(12))).collect())
                .collect();
            let removed = s.below(texts.len() as u64) as usize;
            let fewer: Vec<String> =
                texts.iter().enumerate().filter(|(i, _)| *i != removed).map(|(_, t)| t.clone()).collect();
            let released = if s.below(2) == 0 { &["▁w", "x"][..] } else { &["01", "02"][..] };
            // A cap that no unit reaches: the items chosen would otherwise hang on their numbers.
            let method = (
                [Contribution::Even, Contribution::Presence, Contribution::Counts][s.below(3) as usize],
                100,
            );
            let (full, less) = (histogram(&texts, released, method), histogram(&fewer, released, method));
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
        let weighed = histogram(&[text], &[], (Contribution::Even, 10));
        assert_eq!(weighed.len(), 10);
        assert!(weighed.values().all(|&w| w == even_weight(10)));
    }

    #[test]
    fn what_a_round_passes_over_changes_no_units_choice_of_items() {
        let text =
            (0..50_u8).map(|i| format!(" {}{}", (b'a' + i / 8) as char, (b'a' + i % 8) as char)).collect();
        let items = units(&[text]);
        let nothing = vec![false; items.distinct()];
        let found = |passed_over: &[bool]| Found {
            weights: vec![None; nothing.len()],
            public: nothing.clone(),
            passed_over: passed_over.to_vec(),
            ..Found::default()
        };
        let stream = |unit| TestRng::from_seed(3).stream(Purpose::Contribution, unit, 0);
        let pooled = |found: &Found| pooled::weigh(&items, found, 10, stream).unwrap();
        let mad2r = |found: &Found| degree::weigh(&items, found, (ONE, 10), stream).unwrap();
        for weigh in [&pooled as &dyn Fn(&Found) -> Vec<u64>, &mad2r] {
            let chosen: Vec<bool> = weigh(&found(&nothing)).iter().map(|&weight| weight > 0).collect();
            assert_eq!(chosen.iter().filter(|&&is| is).count(), 10);
            // Every other item is passed over, chosen ones among them.
            let passed_over: Vec<bool> = (0..chosen.len()).map(|at| at % 2 == 0).collect();
            let again: Vec<bool> = weigh(&found(&passed_over)).iter().map(|&weight| weight > 0).collect();
            let left: Vec<bool> = chosen.iter().zip(&passed_over).map(|(&is, &gone)| is && !gone).collect();
            assert!(again == left && left != chosen);
        }
    }

    #[test]
    fn released_and_public_items_get_no_weight() {
        let weighed = histogram(&[" known hidden x .".to_owned()], &["▁known"], (Contribution::Even, 10));
        assert_eq!(weighed.into_iter().collect::<Vec<_>>(), [("▁hidden".to_owned(), ONE)]);
    }
}
