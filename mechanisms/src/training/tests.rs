//! Tests of properties that every scheme has, and of those that distinguish the schemes.

use super::*;
use crate::{Purpose, Stream, TestRng};

/// Returns the stream of a step's sample.
pub(super) fn stream(step: u64) -> Stream {
    TestRng::from_seed(9).stream(Purpose::Sampling, step, 0)
}

fn rng() -> TestRng {
    TestRng::from_seed(5)
}

fn shuffled(population: u64, batches: u64, pass: u64) -> Box<dyn Pass> {
    ShuffledGaussian::new(batches, 1.0).unwrap().sample(pass, population, &rng()).unwrap()
}

fn balls(population: u64, batches: u64, pass: u64) -> Box<dyn Pass> {
    BallsInBinsGaussian::new(batches, 1.0).unwrap().sample(pass, population, &rng()).unwrap()
}

#[test]
fn every_unit_is_in_exactly_one_batch_in_whatever_order_they_are_asked_for() {
    for (population, batches) in [(1, 1), (1, 3), (10, 3), (10, 10), (7, 9), (1000, 13)] {
        for make in [shuffled, balls] {
            let mut pass = make(population, batches, 4);
            let forward: Vec<Vec<u64>> = (0..batches).map(|batch| pass.batch(batch)).collect();
            let mut all: Vec<u64> = forward.concat();
            all.sort_unstable();
            assert_eq!(all, (0..population).collect::<Vec<_>>());
            for batch in (0..batches).rev() {
                assert_eq!(pass.batch(batch), forward[batch as usize]);
            }
            assert!(pass.batch(batches).is_empty());
        }
    }
    let sizes: Vec<usize> = (0..3).map(|batch| shuffled(10, 3, 0).batch(batch).len()).collect();
    assert_eq!(sizes, [3, 3, 4]);
}

/// The population has 5·10⁹ units. An algorithm whose time or memory is proportional to that number
/// would not finish.
#[test]
fn a_batch_of_a_huge_population_costs_no_more_than_its_size() {
    let (population, batches) = (5_240_387_307_u64, 639_696);
    let mut pass = shuffled(population, batches, 0);
    let distinct: std::collections::HashSet<u64> =
        [0, 1, batches - 1].into_iter().flat_map(|batch| pass.batch(batch)).collect();
    assert!((3 * 8191..=3 * 8193).contains(&distinct.len()), "{}", distinct.len());
    assert!(distinct.iter().all(|&unit| unit < population));
    let sizes: Vec<usize> = (0..3).map(|batch| balls(population, batches, 0).batch(batch).len()).collect();
    // Binomial(n, 1/b) of mean 8192 and standard deviation 90.5; 4.9 of them are α = 1e-6.
    assert!(sizes.iter().all(|&size| (size as f64 - 8192.0).abs() < 4.9 * 90.5), "{sizes:?}");
}

/// Returns χ² over all 81 assignments of four units to three batches; 80 degrees of freedom exceed 155.1 with
/// probability 1e-6 (scipy 1.17, chi2.isf).
fn chi2_of_assignments(assign: impl Fn(u64) -> [u64; 4]) -> f64 {
    let passes = 24_300;
    let mut counts = [0.0; 81];
    for pass in 0..passes {
        let code = assign(pass).iter().fold(0, |code, batch| 3 * code + batch);
        counts[code as usize] += 1.0;
    }
    let want = passes as f64 / 81.0;
    counts.iter().map(|hits: &f64| (hits - want).powi(2) / want).sum()
}

const CHI2_80: f64 = 155.1;

fn assignment(mut pass: Box<dyn Pass>) -> [u64; 4] {
    let mut of = [u64::MAX; 4];
    for batch in 0..3 {
        pass.batch(batch).into_iter().for_each(|unit| of[unit as usize] = batch);
    }
    of
}

#[test]
fn balls_choose_their_bins_independently_and_a_shuffle_is_rejected() {
    let balls_in_bins = chi2_of_assignments(|pass| assignment(balls(4, 3, pass)));
    assert!(balls_in_bins < CHI2_80, "{balls_in_bins}");
    let shuffle = chi2_of_assignments(|pass| assignment(shuffled(4, 3, pass)));
    assert!(shuffle > CHI2_80, "{shuffle}");
}

/// PITFALLS 1. Two steps of Poisson sampling share a unit with probability q²; two batches of a pass never do.
#[test]
fn neither_kind_of_pass_can_be_mistaken_for_poisson_sampling() {
    let (q, trials) = (0.25, 4_000_u64);
    let both = |draw: &dyn Fn(u64) -> [Vec<u64>; 2]| {
        let hits = (0..trials).filter(|&trial| draw(trial).iter().all(|lot| lot.contains(&3))).count();
        (hits as f64 - trials as f64 * q * q) / (trials as f64 * q * q * (1.0 - q * q)).sqrt()
    };
    let two = |mut pass: Box<dyn Pass>| [pass.batch(0), pass.batch(1)];
    // These are two steps of Poisson sampling; the second is drawn as a pass far from all first ones.
    let poisson = |trial| {
        let mechanism = PoissonSampledGaussian::new(q, 1.0).unwrap();
        [trial, trials + trial].map(|pass| mechanism.sample(pass, 12, &rng()).unwrap().batch(0))
    };
    assert!(both(&poisson).abs() < 4.9, "{}", both(&poisson));
    assert!(both(&|trial| two(shuffled(12, 4, trial))).abs() > 4.9);
    assert!(both(&|trial| two(balls(12, 4, trial))).abs() > 4.9);
}

fn cyclic(bands: u64, probability: f64) -> CyclicPoissonGaussian {
    CyclicPoissonGaussian::new(1000, bands, probability, 1.0).unwrap()
}

/// The sensitivity of Cx holds for participations that are at least as many steps apart as C has bands.
#[test]
fn participations_of_a_unit_are_as_many_steps_apart_as_there_are_bands() {
    let (bands, population, passes) = (5, 200, 40);
    let mechanism = cyclic(bands, 0.6);
    let mut steps: Vec<Vec<u64>> = vec![Vec::new(); population as usize];
    for pass in 0..passes {
        let mut drawn = mechanism.sample(pass, population, &rng()).unwrap();
        // The batches are asked for in another order than that of the steps.
        let batches: Vec<Vec<u64>> = (0..bands).rev().map(|batch| drawn.batch(batch)).collect();
        assert!(drawn.batch(bands).is_empty() && drawn.batch(0) == batches[bands as usize - 1]);
        for (batch, units) in (0..bands).rev().zip(batches) {
            units.into_iter().for_each(|unit| steps[unit as usize].push(pass * bands + batch));
        }
    }
    for of_unit in &steps {
        let apart = of_unit.windows(2).all(|pair| pair[1] - pair[0] >= bands);
        assert!(apart && of_unit.iter().all(|step| step % bands == of_unit[0] % bands), "{of_unit:?}");
    }
    // Another key has other parts; a unit's part does not depend on the population.
    let part = |mechanism: &CyclicPoissonGaussian, population, seed| -> Vec<Option<u64>> {
        let mut drawn = mechanism.sample(0, population, &TestRng::from_seed(seed)).unwrap();
        let batches: Vec<Vec<u64>> = (0..bands).map(|batch| drawn.batch(batch)).collect();
        (0..100).map(|unit| (0..bands).find(|batch| batches[*batch as usize].contains(&unit))).collect()
    };
    let whole = cyclic(bands, 1.0);
    assert_eq!(part(&whole, 100, 5), part(&whole, 200, 5));
    assert_ne!(part(&whole, 100, 5), part(&whole, 100, 6));
}

/// χ² over the parts of three units, 26 degrees of freedom: above 74.1 with probability 1e-6 (Wilson and Hilferty); and each unit of a
/// part is sampled by itself. One part is Poisson sampling.
#[test]
fn parts_are_uniform_and_independent_and_one_part_is_poisson_sampling() {
    let (keys, whole) = (27_000, cyclic(3, 1.0));
    let mut counts = [0.0_f64; 27];
    for key in 0..keys {
        let mut pass = whole.sample(0, 3, &TestRng::from_seed(key)).unwrap();
        let mut code = 0;
        for batch in 0..3 {
            pass.batch(batch).into_iter().for_each(|unit| code += batch as usize * 3_usize.pow(unit as u32));
        }
        counts[code] += 1.0;
    }
    let want = keys as f64 / 27.0;
    let statistic: f64 = counts.iter().map(|hits| (hits - want).powi(2) / want).sum();
    assert!(statistic < 74.1, "{statistic}");
    // 200,000 units, each in a given step with probability 0.3/3: 4.9 standard deviations are α = 1e-6.
    let drawn = cyclic(3, 0.3).sample(7, 200_000, &rng()).unwrap().batch(1).len() as f64;
    assert!((drawn - 20_000.0).abs() < 4.9 * (200_000.0_f64 * 0.09).sqrt(), "{drawn}");
    let poisson = PoissonSampledGaussian::new(0.1, 1.0).unwrap();
    let batch = |mechanism: &dyn TrainingMechanism| mechanism.sample(3, 500, &rng()).unwrap().batch(0);
    assert_eq!(batch(&cyclic(1, 0.1)), batch(&poisson));
}

#[test]
fn a_scheme_without_passes_has_one_batch() {
    let mut pass = FixedSizeSampledGaussian::new(3, 10, 1.0).unwrap().sample(0, 10, &rng()).unwrap();
    assert_eq!((pass.batch(0).len(), pass.batch(0).len(), pass.batch(1).len()), (3, 3, 0));
}

/// TRUST 9: an event that names the number of units is charged for that number alone.
#[test]
fn batches_are_drawn_only_from_a_population_for_which_the_event_holds() {
    let certified: [Box<dyn TrainingMechanism>; 2] = [
        Box::new(FixedSizeSampledGaussian::new(10, 100, 1.0).unwrap()),
        Box::new(TruncatedPoissonSampledGaussian::new(0.1, 100, 20, 1.0).unwrap()),
    ];
    let any: [Box<dyn TrainingMechanism>; 4] = [
        Box::new(cyclic(4, 0.1)),
        Box::new(PoissonSampledGaussian::new(0.1, 1.0).unwrap()),
        Box::new(BallsInBinsGaussian::new(10, 1.0).unwrap()),
        Box::new(ShuffledGaussian::new(10, 1.0).unwrap()),
    ];
    for population in [99, 101] {
        for mechanism in &certified {
            let refused = mechanism.sample(0, population, &rng()).err().unwrap().to_string();
            assert!(refused.contains("100 units") && mechanism.sample(0, 100, &rng()).is_ok(), "{refused}");
        }
        assert!(any.iter().all(|mechanism| mechanism.sample(0, population, &rng()).is_ok()));
    }
}

#[test]
fn wrong_parameters_are_refused() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(PoissonSampledGaussian::new(0.5, bad).is_err());
        assert!(PoissonSampledGaussian::new(bad, 1.0).is_err());
        assert!(PoissonSampledExamplesGaussian::new(0.5, bad, 2).is_err());
        assert!(PoissonSampledExamplesGaussian::new(bad, 1.0, 2).is_err());
        assert!(TruncatedPoissonSampledGaussian::new(0.5, 10, 5, bad).is_err());
        assert!(TruncatedPoissonSampledGaussian::new(bad, 10, 5, 1.0).is_err());
        assert!(ShuffledGaussian::new(5, bad).is_err());
        assert!(FixedSizeSampledGaussian::new(5, 10, bad).is_err());
        assert!(BallsInBinsGaussian::new(5, bad).is_err());
        assert!(CyclicPoissonGaussian::new(10, 2, 0.5, bad).is_err());
        assert!(CyclicPoissonGaussian::new(10, 2, bad, 1.0).is_err());
    }
    assert!(TruncatedPoissonSampledGaussian::new(0.5, 0, 5, 1.0).is_err());
    assert!(TruncatedPoissonSampledGaussian::new(0.5, 10, 0, 1.0).is_err());
    assert!(ShuffledGaussian::new(0, 1.0).is_err());
    assert!([0, 257].iter().all(|k| PoissonSampledExamplesGaussian::new(0.5, 1.0, *k).is_err()));
    assert!(FixedSizeSampledGaussian::new(0, 5, 1.0).is_err());
    assert!(FixedSizeSampledGaussian::new(10, 0, 1.0).is_err());
    assert!(BallsInBinsGaussian::new(0, 1.0).is_err());
    assert!(CyclicPoissonGaussian::new(2000, 1025, 0.5, 1.0).is_err());
    assert!(CyclicPoissonGaussian::new(10, 0, 0.5, 1.0).is_err());
    assert!(CyclicPoissonGaussian::new(0, 2, 0.5, 1.0).is_err());
    assert_eq!(CyclicPoissonGaussian::new(3, 11, 0.5, 1.0).unwrap().bands().unwrap().unwrap().count(), 3);
    assert!(CyclicPoissonGaussian::new(100_001, 2, 0.5, 1.0).is_err());
    let error = PoissonSampledGaussian::new(1.5, 1.0).unwrap_err().to_string();
    assert_eq!(error, "sampling probability = 1.5 is out of range; allowed: 0 < q <= 1");
}

/// PITFALLS 1: only Poisson sampling has the event of Poisson sampling.
#[test]
fn every_sampler_emits_its_own_event() {
    let events = [
        PoissonSampledGaussian::new(0.1, 1.0).unwrap().event(),
        TruncatedPoissonSampledGaussian::new(0.1, 100, 12, 1.0).unwrap().event(),
        ShuffledGaussian::new(10, 1.0).unwrap().event(),
        FixedSizeSampledGaussian::new(10, 100, 1.0).unwrap().event(),
        BallsInBinsGaussian::new(10, 1.0).unwrap().event(),
        cyclic(4, 0.1).event(),
        PoissonSampledExamplesGaussian::new(0.1, 1.0, 7).unwrap().event(),
    ];
    let (sampling_probability, noise_multiplier) = (0.1, 1.0);
    let own = [
        DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier },
        DpEvent::TruncatedPoissonSampledGaussian {
            sampling_probability,
            noise_multiplier,
            units: 100,
            largest_batch: 12,
        },
        DpEvent::ShuffledGaussian { noise_multiplier, batches: 10, epochs: 1 },
        DpEvent::FixedSizeSampledGaussian { sample_size: 10, population: 100, noise_multiplier },
        DpEvent::BallsInBinsGaussian { noise_multiplier, batches: 10, epochs: 1 },
        DpEvent::CyclicPoissonSampledGaussian { sampling_probability, noise_multiplier },
        DpEvent::PoissonSampledExamplesGaussian {
            sampling_probability,
            noise_multiplier,
            examples_per_unit: 7,
        },
    ];
    assert_eq!(events, own);
}
