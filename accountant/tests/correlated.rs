//! Correlated noise: errors and sensitivities of the strategies, and the ε of their mechanisms.
//!
//! Oracle: `jax_privacy` 2.0.0, `matrix_factorization.toeplitz` in 64 bits (`optimize_banded_toeplitz`, `per_query_error`,
//! `minsep_sensitivity_squared`), and events that are written out by hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::calibrate::EpsilonTarget;
use accountant::correlated::{Family, Participation, Strategy, TrainingRun, compare};
use accountant::{Delta, DpEvent, NeighboringRelation, epsilon};

const RELATION: NeighboringRelation = NeighboringRelation::AddOrRemoveOne;

fn target(epsilon: f64) -> EpsilonTarget {
    EpsilonTarget { epsilon, delta: Delta::new(1e-6).unwrap(), relation: RELATION }
}

/// The searches end at the same least error. A ten-thousandth is what their rules for stopping leave.
#[test]
fn banded_strategies_have_the_error_of_jax_privacy() {
    for (steps, bands, squared) in [
        (150, 2, 39.550_436_473),
        (150, 8, 13.344_442_950),
        (1000, 8, 69.749_929_598),
        (1000, 32, 24.115_187_092),
    ] {
        let found = Strategy::banded(steps, bands).unwrap().mean_squared_error();
        assert!((found / squared - 1.0).abs() < 1e-4, "{steps} steps, {bands} bands: {found}");
    }
}

/// σ of a Gaussian mechanism is proportional to the sensitivity, so that two calibrations give their ratio.
fn sensitivity_squared(strategy: &Strategy, separation: u64, participations: u64) -> f64 {
    let separated = Participation::Separated { separation, participations };
    let alone = Participation::Separated { separation: 1, participations: 1 };
    let one = Strategy::independent(1).unwrap().noise_multiplier(alone, &target(2.0)).unwrap();
    (strategy.noise_multiplier(separated, &target(2.0)).unwrap() / one).powi(2)
}

/// The noise multipliers are each rounded up by at most 1e-6.
#[test]
fn inverse_strategies_have_the_error_and_the_sensitivity_of_jax_privacy() {
    for (steps, bands, separation, uses, sensitivity, mean, max) in [
        (1000, 4, 100, 10, 16.224_023_581_5, 49.974_371_093_75, 98.753_906_25),
        (1000, 32, 195, 6, 13.848_484_690_8, 6.934_411_657_6, 12.026_626_950_8),
        (150, 12, 23, 7, 17.057_275_676_0, 3.637_506_953_6, 5.754_315_053_7),
    ] {
        let strategy = Strategy::inverse_square_root(steps, bands).unwrap();
        assert!((strategy.mean_squared_error() / mean - 1.0).abs() < 1e-9);
        assert!((strategy.max_squared_error() / max - 1.0).abs() < 1e-9);
        let found = sensitivity_squared(&strategy, separation, uses);
        assert!((found / sensitivity - 1.0).abs() < 1e-5, "{steps} steps, {bands} bands: {found}");
    }
    for (steps, lambda, separation, uses, sensitivity, mean) in
        [(1000, 0.9, 100, 10, 52.634_095_346_1, 5.995), (150, 0.5, 23, 7, 9.333_335_161_2, 19.625)]
    {
        let strategy = Strategy::one_step(steps, lambda).unwrap();
        assert!((strategy.mean_squared_error() / mean - 1.0).abs() < 1e-9);
        let found = sensitivity_squared(&strategy, separation, uses);
        assert!((found / sensitivity - 1.0).abs() < 1e-5, "{steps} steps, λ = {lambda}: {found}");
    }
}

/// Oracle: every admissible set of steps, with C from its definition.
#[test]
fn no_set_of_separated_steps_exceeds_the_sensitivity() {
    let steps = 9;
    let strategies = [
        Strategy::one_step(9, 0.7).unwrap(),
        Strategy::inverse_square_root(9, 3).unwrap(),
        Strategy::banded(9, 3).unwrap(),
    ];
    // The first columns of C are λ^t; the inverse of 1 − x/2 − x²/8; and what the search found.
    let powers: Vec<f64> = (0..9).map(|power| 0.7_f64.powi(power)).collect();
    let mut inverse = vec![1.0, 0.5];
    (2..9).for_each(|at| inverse.push(0.5 * inverse[at - 1] + 0.125 * inverse[at - 2]));
    let columns = [Some(powers), Some(inverse), None];
    for (strategy, column) in strategies.iter().zip(columns) {
        for (separation, uses) in [(1, 9), (2, 3), (3, 2), (3, 3), (4, 1)] {
            let found = sensitivity_squared(strategy, separation, uses);
            let Some(column) = &column else {
                // Bands of different participations do not overlap: the sum of the norms, each 1.
                assert!(separation < 3 || (found - uses as f64).abs() < 1e-5, "{found}");
                continue;
            };
            let mut worst: f64 = 0.0;
            for chosen in 0_u32..1 << steps {
                let at: Vec<usize> = (0..steps).filter(|step| chosen >> step & 1 == 1).collect();
                let apart = at.windows(2).all(|pair| pair[1] - pair[0] >= separation as usize);
                if !apart || at.len() > uses as usize {
                    continue;
                }
                let row =
                    |row: usize| at.iter().filter(|step| **step <= row).map(|step| column[row - step]).sum();
                worst = worst.max((0..steps).map(row).map(|moved: f64| moved * moved).sum());
            }
            assert!((found / worst - 1.0).abs() < 1e-5, "{separation} apart, {uses} times: {found} {worst}");
        }
    }
}

/// Oracle: ⌈n/b⌉ and ⌊n/b⌋ Poisson-sampled Gaussians as an event.
#[test]
fn cyclic_poisson_sampling_costs_as_much_as_its_rounds() {
    let delta = Delta::new(1e-6).unwrap();
    let rounds = |count, q, noise_multiplier| {
        let step = DpEvent::PoissonSampledGaussian { sampling_probability: q, noise_multiplier };
        epsilon(&DpEvent::SelfComposed { event: Box::new(step), count }, delta, RELATION).unwrap()
    };
    for (steps, bands) in [(150_u64, 6_u64), (150, 8)] {
        let q = bands as f64 * 256.0 / 6000.0;
        let strategy = Strategy::banded(steps, bands).unwrap();
        assert_eq!(strategy.bands(), bands);
        let cyclic = Participation::CyclicPoisson { sampling_probability: q };
        let found = strategy.epsilon(cyclic, 1.3, delta, RELATION).unwrap();
        // The norm is 1 up to rounding, which moves ε by less than 1e-9.
        let (upper, lower) = (rounds(steps.div_ceil(bands), q, 1.3), rounds(steps / bands, q, 1.3));
        assert!(
            (found.upper / upper.upper - 1.0).abs() < 1e-9 && (found.lower / lower.lower - 1.0).abs() < 1e-9
        );
        let meet = found.upper - found.lower < 2e-3 * found.upper;
        assert_eq!(meet, steps % bands == 0, "{bands} bands: {found:?}");
    }
    // A column of norm √(1 + ¼ + 1/16) in one round: the noise that counts is smaller by as much.
    let wide = Strategy::one_step(3, 0.5).unwrap();
    let cyclic = Participation::CyclicPoisson { sampling_probability: 0.1 };
    let found = wide.epsilon(cyclic, 1.0, delta, RELATION).unwrap();
    let one = rounds(1, 0.1, 1.0 / 1.3125_f64.sqrt());
    assert!((found.upper / one.upper - 1.0).abs() < 1e-9, "{found:?} {one:?}");
}

/// Oracle: `jax_privacy` 2.0.0, `experimental.accounting.amplified_bandmf_event`, with the `PLDAccountant` of `dp_accounting` 0.6.0 at
/// an interval of 1e-4, which rounds up.
#[test]
fn rounds_of_cyclic_poisson_sampling_cost_what_jax_privacy_charges_and_groups_are_refused() {
    let delta = Delta::new(1e-6).unwrap();
    for (steps, bands, oracle) in [
        (150_u64, 1_u64, 2.505_800_198_544),
        (150, 2, 3.775_518_356_316),
        (150, 8, 7.887_391_587_298),
        (1000, 8, 21.459_392_491_533),
        (60, 4, 3.792_335_959_503),
    ] {
        let sampling_probability = bands as f64 * 256.0 / 6000.0;
        let round = DpEvent::CyclicPoissonSampledGaussian { sampling_probability, noise_multiplier: 1.3 };
        let event = DpEvent::SelfComposed { event: Box::new(round), count: steps.div_ceil(bands) };
        let found = epsilon(&event, delta, RELATION).unwrap();
        assert!(found.lower <= oracle && found.upper >= oracle * (1.0 - 1e-3), "{bands}: {found:?}");
        assert!(found.upper <= oracle * (1.0 + 1e-3), "{bands}: {found:?}");
        let group = accountant::group_epsilon(&event, 2, delta, RELATION).unwrap_err();
        assert!(group.to_string().contains("groups of several units"), "{group}");
    }
}

#[test]
fn correlation_pays_at_a_large_epsilon_and_amplification_at_a_small_one() {
    let run = TrainingRun { units: 6000, expected_batch_size: 256, steps: 150 };
    let noise = |most: f64, family| {
        let rows = compare(run, &target(most)).unwrap();
        let row = rows.iter().find(|row| row.family == family).unwrap();
        // The mechanism with its noise meets the target again.
        assert!(row.epsilon.upper <= most && row.epsilon.upper > 0.999 * most, "{row:?}");
        row.equivalent_noise_multiplier
    };
    for family in [Family::InverseSquareRoot, Family::OneStep] {
        assert!(noise(1.0, family) > noise(1.0, Family::Independent));
        assert!(noise(20.0, family) < noise(20.0, Family::Independent));
        assert!(noise(20.0, Family::Banded) < noise(20.0, family));
    }
}

#[test]
fn what_is_out_of_range_is_refused() {
    assert!(Strategy::independent(0).is_err() && Strategy::independent(100_001).is_err());
    assert!(Strategy::banded(10, 0).is_err() && Strategy::banded(10, 11).is_err());
    assert!(Strategy::inverse_square_root(10, 11).is_err());
    assert!(Strategy::one_step(10, 1.0).is_err() && Strategy::one_step(10, f64::NAN).is_err());
    let strategy = Strategy::independent(10).unwrap();
    for participation in [
        Participation::Separated { separation: 0, participations: 1 },
        Participation::Separated { separation: 1, participations: 0 },
        Participation::CyclicPoisson { sampling_probability: 1.5 },
        Participation::CyclicPoisson { sampling_probability: f64::NAN },
    ] {
        assert!(strategy.epsilon(participation, 1.0, target(1.0).delta, RELATION).is_err());
        assert!(strategy.noise_multiplier(participation, &target(1.0)).is_err(), "{participation:?}");
    }
    let run = TrainingRun { units: 10, expected_batch_size: 11, steps: 5 };
    assert!(compare(run, &target(1.0)).is_err());
}
