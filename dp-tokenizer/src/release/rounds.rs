//! Runs the rounds of a release, whatever its method: histogram, noise, update.

use mechanisms::{PrivacyRng, Purpose};

use super::config::ReleaseConfig;
use super::error::ReleaseError;
use super::fixed_point::noise;
use super::method::{self, Hidden, Round};
use super::selection::Selection;
use crate::count::UnitItems;

/// Runs all rounds and returns what they released.
pub(super) fn run(
    items: &UnitItems,
    config: &ReleaseConfig,
    rng: &dyn PrivacyRng,
) -> Result<Selection, ReleaseError> {
    let mut selection = Selection::new(items, config.count_noise_multiplier().is_some())?;
    let mut method = method::of(config);
    let choices = |unit, draw| rng.stream(Purpose::Contribution, unit, draw);
    for index in 0..config.rounds() {
        let noise = noise(config.round_noise_multiplier(index))?;
        let round = Round { config, index, sigma: noise.sigma(), choices: &choices };
        let histogram = method.histogram(Hidden { items, selection: &selection }, &round)?;
        let mut stream = rng.stream(Purpose::HistogramNoise, index as u64, 0);
        for (item, weight) in histogram.into_iter().enumerate() {
            if method.publishes(item, weight, &selection) {
                let noisy = (weight as i64).saturating_add(noise.sample(&mut stream));
                method.update(item, noisy, &round, &mut selection);
            }
        }
    }
    Ok(selection)
}
