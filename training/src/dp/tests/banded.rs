//! Noise that is correlated over steps.

use std::sync::Arc;

use mechanisms::{Bands, RoundedGaussian};

use super::*;
use crate::dp::banded::Place;
use crate::ranks::Shards;
use crate::ranks::threads::on_ranks;
use crate::ranks::{Grain, Ranks};
use network::tensor::to_host;

const SIGMA: f64 = 0.5;

fn matrix() -> Arc<Bands> {
    Arc::new(Bands::least_error(6, 3).unwrap())
}

/// The releases of `steps` on ranks, each on an empty lot: noise alone, in clip norms.
fn releases(ranks: &Ranks, carried: &mut Carried, steps: std::ops::Range<u64>) -> Vec<(Vec<f32>, f64)> {
    let (model, weights) = model(small(), 12);
    let shards = Shards::new(ranks.clone(), weights.specs().into(), Grain::Elements);
    let release = |step| {
        let noise = GaussianMechanism::new(SIGMA).unwrap();
        let figures = DpStep { noise, l2_clip_norm: 1.0, expected_batch_size: 1.0, learning_rate: 0.0, step };
        let lot = Lot { shards: Some(&shards), ..lot(&model, &[], 4) };
        let rng = TestRng::from_seed(2);
        let clipping = fast(Clipping::Flat);
        let (gradient, _) =
            private_gradient(&model, &weights, &lot, &figures, clipping, carried, &rng).unwrap();
        let to_noise = gradient.to_noise();
        let parts = shards.gather(gradient.into_parts().into_iter().map(to_host).collect());
        (parts.concat(), to_noise)
    };
    steps.map(release).collect()
}

fn alone(carried: &mut Carried, steps: std::ops::Range<u64>) -> Vec<(Vec<f32>, f64)> {
    releases(&Ranks::alone(), carried, steps)
}

fn block(bands: Arc<Bands>, phase: u64, first: u64) -> Carried {
    Carried { block: Some(BandedNoise::begin(bands, phase, first)), ..Carried::default() }
}

#[test]
fn ranks_release_the_bits_that_one_process_releases_with_correlated_noise() {
    let block = || block(matrix(), 0, 0);
    let whole = alone(&mut block(), 0..6);
    for count in 2..=3 {
        let found = on_ranks(count, |ranks| releases(ranks, &mut block(), 0..6));
        assert!(found.iter().all(|found| *found == whole), "{count} ranks");
    }
}

#[test]
fn one_band_adds_the_noise_of_independent_steps() {
    let one = Arc::new(Bands::least_error(6, 1).unwrap());
    let found = alone(&mut block(one, 0, 0), 0..3);
    assert_eq!(found, alone(&mut Carried::default(), 0..3));
}

/// With a known key, noise that an earlier process drew is drawn again. A private process has another key, and its first step takes
/// nothing back: the noise is z, with the standard deviation of z.
#[test]
fn a_block_that_begins_late_repeats_the_noise_of_its_steps_or_begins_without_any() {
    let whole = alone(&mut block(matrix(), 0, 0), 0..6);
    let resumed = alone(&mut block(matrix(), 0, 0), 4..6);
    assert_eq!(resumed, whole[4..]);
    let new = alone(&mut block(matrix(), 0, 4), 4..6);
    let z = GaussianMechanism::new(SIGMA * matrix().column_norm() * (1.0 + 1e-15)).unwrap();
    let grid = z.grid(L2Sensitivity::new(1.0).unwrap()).unwrap();
    let (_, weights) = model(small(), 12);
    let mut first = Vec::new();
    for (index, spec) in weights.specs().iter().enumerate() {
        let mut noise = vec![0; spec.len()];
        let mut stream = TestRng::from_seed(2).stream(Purpose::GradientNoise, 4, index as u32);
        grid.noise().add_to(&mut stream, 0, &mut noise);
        first.extend(noise.into_iter().map(|z| (z as f64 * grid.unit()) as f32));
    }
    assert_eq!(new[0].0, first);
    assert_ne!(new[1].0, whole[5].0);
}

/// Oracle: the variance of row t of C⁻¹z is Σ_{k ≤ t} of the squared entries of C⁻¹. The estimate of the signal takes it for noise
/// alone; with the variance of z it would see a signal.
#[test]
fn the_stated_noise_is_that_of_a_step_and_not_that_of_z() {
    let noise = RoundedGaussian::new(1 << 28).unwrap();
    let mut block = BandedNoise::begin(matrix(), 0, 0);
    let length = 200_000;
    let place = Place { param: 0, first: 0, length };
    let mut largest: f64 = 0.0;
    for step in 0..6 {
        block.draw(step, &[place], noise, &TestRng::from_seed(3));
        let square: f64 = block.last()[0].iter().map(|w| (*w as f64).powi(2)).sum();
        let std = 2.0_f64.powi(28);
        let variance = square / length as f64 / std.powi(2);
        let tolerance = 4.9 * (2.0 / length as f64).sqrt();
        let ratio = variance / block.std().powi(2);
        assert!((ratio - 1.0).abs() < tolerance, "{step}: {ratio}");
        largest = largest.max(variance);
    }
    // Far above the variance of z.
    assert!(largest > 1.2, "{largest}");
}
