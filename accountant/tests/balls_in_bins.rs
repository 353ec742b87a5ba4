//! Balls in bins: bounds against quadrature, a discrete transform, and the schemes between which it
//! lies.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::{Delta, DpEvent, delta, epsilon, group_epsilon, rdp};

fn bins(noise_multiplier: f64, batches: u64, epochs: u64) -> DpEvent {
    DpEvent::BallsInBinsGaussian { noise_multiplier, batches, epochs }
}

fn at(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

#[test]
fn delta_encloses_quadrature_over_two_bins_and_the_discrete_transform_of_fifty() {
    // Oracles, the worse of both directions at sigma 1: scipy 1.x adaptive quadrature of E[(A − e^ε)+] over (z₁, z₂);
    // the 50-fold convolution of a log-normal on a linear grid by a fast Fourier transform, extrapolated in its step.
    for (batches, epsilon, expected, tolerance) in [
        (2, 0.5, 0.149_177_523_135_520_16, 1e-9),
        (2, 1.0, 0.059_206_501_085_892_684, 1e-9),
        (2, 2.0, 0.004_745_777_633_248_316, 1e-9),
        (2, 3.0, 1.677_027_714_111_979_5e-4, 1e-8),
        (50, 0.1, 0.035_545_929_6, 1e-6),
        (50, 0.3, 0.005_733_801_4, 1e-6),
        (50, 0.5, 6.813_870_9e-4, 1e-6),
    ] {
        let bounds = delta(&bins(1.0, batches, 1), epsilon, AddOrRemoveOne).unwrap();
        assert!(bounds.lower <= expected * (1.0 + tolerance), "{batches} {epsilon}: {bounds:?}");
        assert!(bounds.upper >= expected * (1.0 - tolerance), "{batches} {epsilon}: {bounds:?}");
        assert!(bounds.upper - bounds.lower <= 1e-2 * bounds.upper, "{batches} {epsilon}: {bounds:?}");
    }
}

#[test]
fn bounds_stay_close_over_epochs_and_zeroing_out_costs_what_removing_costs() {
    for (noise, batches, epochs, failure) in
        [(1.0, 100, 10, 1e-6), (2.0, 37, 100, 1e-6), (0.5, 64, 1, 1e-5), (10.0, 100, 10, 1e-6)]
    {
        let event = bins(noise, batches, epochs);
        let bounds = epsilon(&event, at(failure), AddOrRemoveOne).unwrap();
        assert!(bounds.lower > 0.0 && bounds.upper - bounds.lower <= 5e-3 * bounds.upper, "{bounds:?}");
        assert_eq!(epsilon(&event, at(failure), ZeroOut).unwrap(), bounds);
        // The cost never exceeds that of shuffling or full participation, and another release adds
        // to it.
        let shuffled = DpEvent::ShuffledGaussian { noise_multiplier: noise, batches, epochs };
        assert!(bounds.lower <= epsilon(&shuffled, at(failure), AddOrRemoveOne).unwrap().upper);
        let count = DpEvent::Gaussian { noise_multiplier: 3.0 };
        let joint = DpEvent::Composed { events: vec![event.clone(), count] };
        assert!(epsilon(&joint, at(failure), AddOrRemoveOne).unwrap().lower >= bounds.lower);
        assert!(
            rdp::epsilon(&event, at(failure), AddOrRemoveOne, rdp::Conversion::Improved).unwrap()
                >= bounds.lower
        );
    }
}

#[test]
fn one_bin_is_the_gaussian_and_repetition_is_more_epochs() {
    let whole =
        DpEvent::SelfComposed { event: Box::new(DpEvent::Gaussian { noise_multiplier: 1.5 }), count: 7 };
    for relation in [AddOrRemoveOne, ReplaceOne, ZeroOut] {
        assert_eq!(epsilon(&bins(1.5, 1, 7), at(1e-6), relation), epsilon(&whole, at(1e-6), relation));
    }
    let repeated = DpEvent::SelfComposed { event: Box::new(bins(1.5, 20, 2)), count: 3 };
    assert_eq!(
        epsilon(&repeated, at(1e-6), AddOrRemoveOne),
        epsilon(&bins(1.5, 20, 6), at(1e-6), AddOrRemoveOne)
    );
}

#[test]
fn more_noise_or_more_bins_never_cost_more_and_more_epochs_never_less() {
    for (noise, batches) in [(0.6, 12), (1.0, 30), (3.0, 200)] {
        let ask = |noise, batches, epochs| {
            epsilon(&bins(noise, batches, epochs), at(1e-6), AddOrRemoveOne).unwrap()
        };
        let middle = ask(noise, batches, 4);
        assert!(ask(1.2 * noise, batches, 4).lower <= middle.upper);
        assert!(ask(noise, 2 * batches, 4).upper < middle.lower);
        assert!(ask(noise, batches, 8).lower >= middle.upper);
    }
}

#[test]
fn an_exchanged_unit_costs_at_least_its_removal_and_at_most_full_participation() {
    let (event, failure) = (bins(2.0, 40, 5), at(1e-6));
    let removed = epsilon(&event, failure, AddOrRemoveOne).unwrap();
    let replaced = epsilon(&event, failure, ReplaceOne).unwrap();
    assert!(replaced.upper > removed.upper && replaced.lower >= removed.lower * 0.999, "{replaced:?}");
    let full =
        DpEvent::SelfComposed { event: Box::new(DpEvent::Gaussian { noise_multiplier: 2.0 }), count: 5 };
    assert!(replaced.upper < epsilon(&full, failure, ReplaceOne).unwrap().upper);
}

#[test]
fn an_exchanged_unit_lies_between_orthogonal_and_doubled_noise_around_its_exact_pair() {
    // Oracle: P = ½ΣN(eᵢ), Q = ½ΣN(−eᵢ) over two bins, and the pair of an orthogonal replacement over four coordinates seen as
    // two independent ratios, by the midpoint rule.
    let sigma = 1.5_f64;
    let (width, reach) = (0.05, 9.0);
    let line: Vec<f64> =
        (0..(2.0 * reach / width) as i32).map(|at| (f64::from(at) + 0.5) * width - reach).collect();
    let weight = |z: f64| (-0.5 * z * z).exp() * width / (2.0 * std::f64::consts::PI).sqrt();
    let factor = |z: f64| (z / sigma - 0.5 / (sigma * sigma)).exp();
    for epsilon in [0.3_f64, 1.0, 2.0] {
        let mut exact = 0.0;
        for one in &line {
            for two in &line {
                let (p, other) = (0.5 * (factor(*one) + factor(*two)), 0.5 * (factor(-one) + factor(-two)));
                exact += weight(*one) * weight(*two) * (p - epsilon.exp() * other).max(0.0);
            }
        }
        let bounds = delta(&bins(sigma, 2, 1), epsilon, ReplaceOne).unwrap();
        assert!(bounds.lower <= exact && exact <= bounds.upper, "{bounds:?} {exact}");
        let removed = delta(&bins(sigma, 2, 1), epsilon, AddOrRemoveOne).unwrap();
        assert!(bounds.lower > 1.1 * removed.upper, "{bounds:?} {removed:?}");
    }
}

#[test]
fn one_statistic_of_an_exchange_reveals_more_than_an_orthogonal_replacement() {
    // The lower bounds of an orthogonal replacement are 2.690602 and 1.133737.
    for (noise, batches, epochs, least) in [(1.0, 100, 10, 3.15), (2.0, 40, 5, 1.54)] {
        let bounds = epsilon(&bins(noise, batches, epochs), at(1e-6), ReplaceOne).unwrap();
        assert!(bounds.lower > least && bounds.lower < bounds.upper, "{bounds:?}");
    }
    // With one bin in twenty of little noise, the exact pair is near two Gaussians: within the upper bound.
    let rough = epsilon(&bins(0.4, 20, 1), at(1e-6), ReplaceOne).unwrap();
    assert!(rough.lower > 0.3 * rough.upper, "{rough:?}");
}

#[test]
fn what_has_no_proof_or_no_meaning_is_refused_by_name() {
    let group = group_epsilon(&bins(1.0, 10, 1), 2, at(1e-5), AddOrRemoveOne).unwrap_err().to_string();
    assert!(group.contains("balls_in_bins_gaussian") && group.contains("groups"), "{group}");
    for broken in
        [bins(0.0, 10, 1), bins(f64::NAN, 10, 1), bins(1.0, 0, 1), bins(1e-3, 10, 1), bins(1.0, u64::MAX, 1)]
    {
        assert!(epsilon(&broken, at(1e-5), AddOrRemoveOne).is_err(), "{broken:?}");
    }
    assert_eq!(epsilon(&bins(1.0, 10, 0), at(1e-5), AddOrRemoveOne).unwrap().upper, 0.0);
}
