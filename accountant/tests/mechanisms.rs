//! Laplace, discrete Gaussian, private selection and the lower bound of shuffled batches, each against an oracle.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::{
    Bounds, Delta, DpEvent, NeighboringRelation, Trials, delta, epsilon, failure, group_epsilon, normal, zcdp,
};

fn repeated(event: DpEvent, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(event), count }
}

fn at(event: &DpEvent, failure: f64, relation: NeighboringRelation) -> Bounds {
    epsilon(event, Delta::new(failure).unwrap(), relation).unwrap()
}

fn encloses(bounds: Bounds, figure: f64, tolerance: f64) {
    assert!(bounds.lower <= figure * (1.0 + tolerance), "{bounds:?} against {figure}");
    assert!(bounds.upper >= figure * (1.0 - tolerance), "{bounds:?} against {figure}");
    assert!(bounds.upper - bounds.lower <= 3e-3 * bounds.upper, "{bounds:?}");
}

#[test]
fn one_laplace_is_its_closed_form_under_every_relation() {
    // δ(ε) = 1 − e^{(ε − m)/2}, m the displacement over the scale.
    for (noise, failure) in [(1.0_f64, 1e-3_f64), (0.2, 1e-6), (5.0, 0.01)] {
        let event = DpEvent::Laplace { noise_multiplier: noise };
        for (relation, moved) in [(AddOrRemoveOne, 1.0), (ZeroOut, 1.0), (ReplaceOne, 2.0)] {
            let exact = moved / noise + 2.0 * (-failure).ln_1p();
            encloses(at(&event, failure, relation), exact, 1e-12);
        }
        let two = group_epsilon(&event, 2, Delta::new(failure).unwrap(), AddOrRemoveOne).unwrap();
        encloses(two, 2.0 / noise + 2.0 * (-failure).ln_1p(), 1e-12);
    }
}

#[test]
fn composed_laplace_is_the_reference_pld() {
    // Oracle: dp_accounting 0.6.0, PLD of the Laplace mechanism at 1e-5 and 1e-4, from above; tolerance its grid.
    for (noise, count, figures) in [
        (10.0, 100, [4.220_347_325_568_989, 5.500_155_285_643_142]),
        (20.0, 1000, [7.421_272_949_564_229, 9.572_692_625_290_975]),
    ] {
        let event = repeated(DpEvent::Laplace { noise_multiplier: noise }, count);
        for (failure, figure) in [1e-5, 1e-8].into_iter().zip(figures) {
            encloses(at(&event, failure, AddOrRemoveOne), figure, 1e-3);
        }
    }
    let event = repeated(DpEvent::Laplace { noise_multiplier: 10.0 }, 100);
    let spent = delta(&event, 1.0, AddOrRemoveOne).unwrap();
    assert!((spent.upper / 0.121_251_787_973 - 1.0).abs() < 2e-3, "{spent:?}");
}

#[test]
fn the_discrete_gaussian_is_the_reference_pld_and_near_the_continuous_one() {
    // Oracle: dp_accounting 0.6.0, PLD of the discrete Gaussian at 1e-4, from above; tolerance its grid.
    for (standard_deviation, sensitivity, count, figures) in [
        (1.0, 1, 1, [4.430_238_055_279_412, 5.495_860_086_878_412]),
        (2.0, 1, 10, [7.495_253_657_963_869, 9.700_974_882_364_159]),
        (5.5, 3, 20, [12.803_353_364_501_392, 16.148_374_736_014_77]),
    ] {
        let event = repeated(DpEvent::DiscreteGaussian { standard_deviation, sensitivity }, count);
        for (failure, figure) in [1e-5, 1e-8].into_iter().zip(figures) {
            encloses(at(&event, failure, AddOrRemoveOne), figure, 1e-3);
        }
    }
    let whole = DpEvent::DiscreteGaussian { standard_deviation: 20_000.0, sensitivity: 20_000 };
    let continuous = at(&DpEvent::Gaussian { noise_multiplier: 1.0 }, 1e-6, AddOrRemoveOne);
    encloses(at(&whole, 1e-6, AddOrRemoveOne), continuous.upper, 1e-3);
    let doubled = DpEvent::DiscreteGaussian { standard_deviation: 20_000.0, sensitivity: 40_000 };
    assert_eq!(at(&whole, 1e-6, ReplaceOne), at(&doubled, 1e-6, AddOrRemoveOne));
}

/// δ at `epsilon` of a composition whose single use has these (P, Q) outcomes, by enumeration.
fn enumerated(outcomes: &[(f64, f64)], uses: u32, epsilon: f64) -> f64 {
    let mut joint = vec![(1.0, 1.0)];
    for _ in 0..uses {
        joint = joint
            .iter()
            .flat_map(|(p, q)| outcomes.iter().map(move |(one, other)| (p * one, q * other)))
            .collect();
    }
    joint.iter().map(|(p, q)| (p - epsilon.exp() * q).max(0.0)).sum()
}

#[test]
fn pure_and_approximate_events_cost_their_optimal_composition() {
    // Oracle: Kairouz, Oh & Viswanath 2015, Theorem 3.3, here by enumeration of the outcomes of randomized response.
    for (own, failed, uses) in [(0.5_f64, 0.0, 1), (0.3, 0.0, 6), (0.2, 1e-3, 5), (1.0, 1e-6, 4)] {
        let event = repeated(DpEvent::EpsilonDelta { epsilon: own, delta: failed }, u64::from(uses));
        let (more, less) = (1.0 / (1.0 + (-own).exp()), 1.0 / (1.0 + own.exp()));
        for at in [0.0, 0.25 * own, own] {
            let whole = enumerated(&[(more, less), (less, more)], uses, at);
            let kept = (1.0 - failed).powi(uses as i32);
            let exact = 1.0 - kept + kept * whole;
            let found = delta(&event, at, AddOrRemoveOne).unwrap();
            // Failures are added up, which is off by the square of their sum.
            let slack = (f64::from(uses) * failed).powi(2) + 1e-12;
            assert!(found.lower == 0.0 && found.upper >= exact - 1e-9 * exact - 1e-15, "{found:?} {exact}");
            assert!(found.upper <= exact * (1.0 + 5e-3) + slack, "{found:?} {exact}");
        }
    }
    // Two units, an exchange, or a unit that is zeroed out: 2ε and δ·(1 + e^ε).
    let event = DpEvent::EpsilonDelta { epsilon: 0.4, delta: 1e-3 };
    let doubled = DpEvent::EpsilonDelta { epsilon: 0.8, delta: 1e-3 * (1.0 + 0.4_f64.exp()) };
    let expected = delta(&doubled, 0.3, AddOrRemoveOne).unwrap().upper;
    for found in [
        delta(&event, 0.3, ReplaceOne).unwrap(),
        delta(&event, 0.3, ZeroOut).unwrap(),
        accountant::group_delta(&event, 2, 0.3, AddOrRemoveOne).unwrap(),
    ] {
        assert!((found.upper / expected - 1.0).abs() < 1e-9, "{found:?} {expected}");
    }
    let pure = DpEvent::EpsilonDelta { epsilon: 2.0, delta: 0.0 };
    assert!(at(&pure, 1e-9, AddOrRemoveOne).upper <= 2.0);
}

#[test]
fn randomized_response_costs_what_its_outcomes_do() {
    for (noise_parameter, buckets, uses) in [(0.5, 2, 1), (0.3, 4, 5), (0.9, 7, 4)] {
        let step = DpEvent::RandomizedResponse { noise_parameter, buckets };
        let uniform = noise_parameter / buckets as f64;
        let own = 1.0 - noise_parameter + uniform;
        let mut outcomes = vec![(uniform, uniform); buckets as usize];
        (outcomes[0], outcomes[1]) = ((own, uniform), (uniform, own));
        for at in [0.1, 1.0] {
            let exact = enumerated(&outcomes, uses, at);
            for relation in [ReplaceOne, ZeroOut] {
                let found = delta(&repeated(step.clone(), u64::from(uses)), at, relation).unwrap();
                assert!(
                    found.lower <= exact * (1.0 + 1e-9) && found.upper >= exact * (1.0 - 1e-9),
                    "{found:?}"
                );
                assert!(found.upper - found.lower <= 1e-2 * exact, "{found:?} {exact}");
            }
        }
        // Each unit of a group answers for itself.
        let two = accountant::group_delta(&step, 2, 0.5, ReplaceOne).unwrap();
        assert_eq!(two, delta(&repeated(step.clone(), 2), 0.5, ReplaceOne).unwrap());
        let refused = delta(&step, 0.5, AddOrRemoveOne).unwrap_err().to_string();
        assert!(refused.contains("randomized_response") && refused.contains("not public"), "{refused}");
    }
}

/// δ of one or two uses of Laplace noise on a Poisson sample, the worse direction, by the midpoint rule over the line.
fn sampled_laplace(q: f64, scale: f64, uses: u32, epsilon: f64) -> f64 {
    let (width, reach) = if uses == 1 { (1e-4 * scale, 25.0 * scale) } else { (0.02 * scale, 14.0 * scale) };
    let line = (0..(2.0 * reach / width) as i32).map(|at| (f64::from(at) + 0.5) * width - reach + 0.5);
    let density = |x: f64| (-x.abs() / scale).exp() * width / (2.0 * scale);
    let outcomes: Vec<(f64, f64)> =
        line.map(|x| ((1.0 - q) * density(x) + q * density(x - 1.0), density(x))).collect();
    let turned: Vec<(f64, f64)> = outcomes.iter().map(|(p, q)| (*q, *p)).collect();
    enumerated(&outcomes, uses, epsilon).max(enumerated(&turned, uses, epsilon))
}

#[test]
fn laplace_noise_on_a_sample_costs_what_its_densities_do() {
    for (q, scale, uses, epsilon, tolerance) in [
        (0.1, 1.0, 1, 0.05, 1e-5),
        (0.01, 0.5, 1, 0.02, 1e-5),
        (0.7, 2.0, 1, 0.1, 1e-5),
        (0.2, 0.7, 2, 0.3, 2e-3),
    ] {
        let step = DpEvent::PoissonSampledLaplace { sampling_probability: q, noise_multiplier: scale };
        let exact = sampled_laplace(q, scale, uses, epsilon);
        for relation in [AddOrRemoveOne, ZeroOut] {
            let found = delta(&repeated(step.clone(), u64::from(uses)), epsilon, relation).unwrap();
            assert!(found.lower <= exact * (1.0 + tolerance), "{found:?} {exact}");
            assert!(found.upper >= exact * (1.0 - tolerance), "{found:?} {exact}");
            assert!(found.upper - found.lower <= 1e-2 * exact, "{found:?} {exact}");
        }
    }
    let all = DpEvent::PoissonSampledLaplace { sampling_probability: 1.0, noise_multiplier: 2.0 };
    let whole = DpEvent::Laplace { noise_multiplier: 2.0 };
    assert_eq!(at(&all, 1e-3, AddOrRemoveOne), at(&whole, 1e-3, AddOrRemoveOne));
    assert!(
        delta(&all, 0.1, ReplaceOne).is_err()
            && group_epsilon(&all, 2, Delta::new(0.1).unwrap(), ZeroOut).is_err()
    );
}

/// Oracle: Canonne, Kamath & Steinke 2020, Proposition 12, by a search over orders in Python: for ρ = 1.2, and for ρ = 0.03 + 1/(2·20²) with
/// a Gaussian. A Gaussian of the same ρ costs less, because more of it is known.
#[test]
fn a_concentrated_mechanism_costs_what_its_moments_prove() {
    let tokens = repeated(DpEvent::ZeroConcentrated { rho: 0.04 }, 30);
    let bounds = at(&tokens, 1e-5, AddOrRemoveOne);
    assert!((bounds.upper / FIGURES[0] - 1.0).abs() < 1e-3 && bounds.lower == 0.0, "{bounds:?}");
    let gaussian = at(&DpEvent::Gaussian { noise_multiplier: (1.0_f64 / 2.4).sqrt() }, 1e-5, AddOrRemoveOne);
    assert!(gaussian.upper < bounds.upper, "{gaussian:?}");
    let labels = DpEvent::Gaussian { noise_multiplier: 20.0 };
    let both =
        DpEvent::Composed { events: vec![labels, repeated(DpEvent::ZeroConcentrated { rho: 0.001 }, 30)] };
    let upper = at(&both, 1e-5, AddOrRemoveOne).upper;
    assert!((upper / FIGURES[1] - 1.0).abs() < 1e-3, "{upper}");
    assert!((zcdp(&both, AddOrRemoveOne).unwrap() / 0.031_25 - 1.0).abs() < 1e-12);
    // A group of three units, and an exchanged one (Bun & Steinke 2016, Proposition 1.9).
    let nine = at(&repeated(DpEvent::ZeroConcentrated { rho: 0.04 }, 270), 1e-5, AddOrRemoveOne);
    assert_eq!(group_epsilon(&tokens, 3, Delta::new(1e-5).unwrap(), ZeroOut).unwrap(), nine);
    assert!((zcdp(&tokens, ReplaceOne).unwrap() / 4.8 - 1.0).abs() < 1e-12);
    assert!(zcdp(&DpEvent::ZeroConcentrated { rho: 0.0 }, ReplaceOne).is_err());
}
const FIGURES: [f64; 2] = [7.884_376_859, 1.012_286_671];

fn selection(trials: Trials) -> DpEvent {
    DpEvent::PrivateSelection { event: Box::new(DpEvent::Gaussian { noise_multiplier: 2.0 }), trials }
}

#[test]
fn searching_hyperparameters_is_charged_the_published_bound() {
    // Oracle: dp_accounting 0.6.0, RepeatAndSelectDpEvent over 1,400 orders, of a Gaussian with noise multiplier 2;
    // stop solved for the mean by brentq. This accountant searches orders continuously, so that its ε may be a little
    // lower.
    let negative = |shape, stop| Trials::TruncatedNegativeBinomial { shape, stop };
    for (trials, figure) in [
        (negative(1.0, 0.1), 4.544_945_757_622_989),
        (negative(0.0, 0.010_955_512_299_750_643), 4.091_852_559_435_345),
        (negative(0.5, 0.011_051_249_219_725_04), 4.862_484_136_581_095),
        (Trials::Poisson { mean: 10.0 }, 5.181_789_579_328_119),
    ] {
        let bounds = at(&selection(trials), 1e-6, AddOrRemoveOne);
        assert!(
            bounds.upper <= figure * 1.002 && bounds.upper >= figure * 0.97,
            "{trials:?} {bounds:?} {figure}"
        );
        let once = at(&DpEvent::Gaussian { noise_multiplier: 2.0 }, 1e-6, AddOrRemoveOne);
        assert!(bounds.upper > 1.5 * once.upper, "a search is not free: {bounds:?} against {once:?}");
        let honest = if matches!(trials, Trials::Poisson { .. }) { 0.0 } else { once.lower };
        assert!((bounds.lower - honest).abs() < 1e-12, "{bounds:?} {once:?}");
        assert!(at(&selection(trials), 1e-6, ReplaceOne).upper > bounds.upper);
    }
}

#[test]
fn a_fixed_number_of_trials_costs_their_composition_and_more_trials_cost_more() {
    let all = repeated(DpEvent::Gaussian { noise_multiplier: 2.0 }, 12);
    let fixed = at(&selection(Trials::Fixed { count: 12 }), 1e-6, AddOrRemoveOne);
    assert_eq!(fixed.upper, at(&all, 1e-6, AddOrRemoveOne).upper);
    let mut last = 0.0;
    for stop in [0.5, 0.1, 0.01, 0.001] {
        let more = selection(Trials::TruncatedNegativeBinomial { shape: 1.0, stop });
        let upper = at(&more, 1e-6, AddOrRemoveOne).upper;
        assert!(upper > last, "{stop}: {upper} after {last}");
        last = upper;
    }
}

#[test]
fn what_has_no_proof_is_refused_by_name() {
    let ask = |event: &DpEvent| epsilon(event, Delta::new(1e-6).unwrap(), AddOrRemoveOne);
    let trials = Trials::TruncatedNegativeBinomial { shape: 1.0, stop: 0.1 };
    let nested = DpEvent::PrivateSelection { event: Box::new(selection(trials)), trials };
    let fails = DpEvent::ThresholdedHistogram { noise_multiplier: 1.0, threshold_delta: 1e-8 };
    let failing = DpEvent::PrivateSelection { event: Box::new(fails), trials };
    for refused in [nested, failing] {
        let text = ask(&refused).unwrap_err().to_string();
        assert!(text.contains("private_selection"), "{text}");
    }
    for trials in [
        Trials::TruncatedNegativeBinomial { shape: -1.0, stop: 0.1 },
        Trials::TruncatedNegativeBinomial { shape: 1.0, stop: 1.0 },
        Trials::TruncatedNegativeBinomial { shape: f64::NAN, stop: 0.5 },
        Trials::Poisson { mean: 0.5 },
    ] {
        assert!(ask(&selection(trials)).is_err(), "{trials:?}");
    }
    assert!(zcdp(&DpEvent::Laplace { noise_multiplier: 1.0 }, AddOrRemoveOne).is_err());
    for broken in [
        DpEvent::Laplace { noise_multiplier: 0.0 },
        DpEvent::Laplace { noise_multiplier: 1e-4 },
        DpEvent::DiscreteGaussian { standard_deviation: 0.0, sensitivity: 1 },
        DpEvent::DiscreteGaussian { standard_deviation: 1.0, sensitivity: 0 },
        DpEvent::DiscreteGaussian { standard_deviation: 1e9, sensitivity: 1 },
    ] {
        assert!(ask(&broken).is_err(), "{broken:?}");
    }
}

#[test]
fn shuffling_costs_at_least_the_published_lower_bound() {
    // Oracle: Chua et al. 2024 (2403.17673), zero-out: the best threshold on the largest output, by scipy on 400,001
    // thresholds.
    for (noise_multiplier, batches, epsilon, figure) in [
        (0.5, 1000, 4.0, 0.073_798_452_476_491_03),
        (0.4, 100, 6.0, 0.072_158_861_440_841_88),
        (0.8, 1000, 1.0, 0.017_947_990_606_225_553),
        (0.3, 10_000, 8.0, 0.160_594_033_668_140_07),
    ] {
        let event = DpEvent::ShuffledGaussian { noise_multiplier, batches, epochs: 1 };
        let bounds = delta(&event, epsilon, ZeroOut).unwrap();
        assert!(bounds.lower >= figure * 0.995 && bounds.lower <= figure * 1.01, "{bounds:?} {figure}");
        // The published shuffle bound is far above Poisson's δ, which its users reported instead.
        let step =
            DpEvent::PoissonSampledGaussian { sampling_probability: 1.0 / batches as f64, noise_multiplier };
        assert!(
            bounds.lower > 1.5 * delta(&repeated(step, batches), epsilon, ZeroOut).unwrap().upper,
            "{bounds:?}"
        );
    }
}

#[test]
fn shuffling_costs_at_least_balls_in_bins_and_at_most_full_participation() {
    for relation in [AddOrRemoveOne, ZeroOut, ReplaceOne] {
        let shuffled = DpEvent::ShuffledGaussian { noise_multiplier: 1.0, batches: 50, epochs: 3 };
        let bounds = at(&shuffled, 1e-6, relation);
        let bins = DpEvent::BallsInBinsGaussian { noise_multiplier: 1.0, batches: 50, epochs: 3 };
        let full = repeated(DpEvent::Gaussian { noise_multiplier: 1.0 }, 3);
        assert!(bounds.lower >= at(&bins, 1e-6, relation).lower * (1.0 - 1e-9), "{relation:?} {bounds:?}");
        assert_eq!(bounds.upper, at(&full, 1e-6, relation).upper);
    }
}

#[test]
fn every_event_is_read_back_as_it_was_written() {
    let fixed = DpEvent::FixedSizeSampledGaussian { sample_size: 3, population: 9, noise_multiplier: 1.0 };
    let bins = DpEvent::BallsInBinsGaussian { noise_multiplier: 1.0, batches: 3, epochs: 2 };
    let events = vec![
        fixed,
        bins,
        DpEvent::Laplace { noise_multiplier: 2.0 },
        DpEvent::DiscreteGaussian { standard_deviation: 2.0, sensitivity: 3 },
        selection(Trials::TruncatedNegativeBinomial { shape: 0.0, stop: 0.25 }),
        selection(Trials::Poisson { mean: 4.0 }),
        selection(Trials::Fixed { count: 4 }),
    ];
    let text = serde_json::to_string(&events).unwrap();
    for name in ["fixed_size_sampled_gaussian", "balls_in_bins_gaussian", "laplace", "discrete_gaussian"] {
        assert!(text.contains(&format!("\"type\":\"{name}\"")), "{text}");
    }
    assert!(text.contains("\"distribution\":\"truncated_negative_binomial\""), "{text}");
    assert_eq!(serde_json::from_str::<Vec<DpEvent>>(&text).unwrap(), events);
}

#[test]
fn thresholds_fail_a_group_no_more_often_than_stated() {
    for (sigma, threshold_delta) in [(2.0, 1e-6), (10.0, 1e-9), (50.0, 1e-12)] {
        let words = DpEvent::ThresholdedHistogram { noise_multiplier: sigma, threshold_delta };
        let stated = |units| failure(&words, units, AddOrRemoveOne).unwrap();
        assert_eq!(stated(1), threshold_delta);
        for units in [2, 3, 8] {
            let k = f64::from(units);
            // All units hold one word, of weight 1 each: the threshold lies isf(δ)·σ above the weight of one.
            let same = normal::sf(normal::isf(threshold_delta) - (k - 1.0) / sigma);
            // Each unit holds a word of its own.
            let apart = -(k * (-threshold_delta).ln_1p()).exp_m1();
            assert!(same.max(apart) <= stated(units), "{units} at {sigma}: {same}, {apart}");
            // The bound is not loose: it is at most k times the failure of an item whose weight is
            // k.
            assert!(stated(units) <= k * normal::sf(normal::isf(threshold_delta) - k / sigma) * 1.001);
        }
        // The total ε is that of a Gaussian mechanism for the group at the remaining δ.
        let left = Delta::new(1e-3 - stated(2)).unwrap();
        let all = Delta::new(1e-3).unwrap();
        let noise = DpEvent::Gaussian { noise_multiplier: sigma };
        let plain = |delta| group_epsilon(&noise, 2, delta, AddOrRemoveOne).unwrap();
        let two = group_epsilon(&words, 2, all, AddOrRemoveOne).unwrap();
        assert!((two.upper / plain(left).upper - 1.0).abs() < 1e-9);
        // From below the failure is not known and is left out.
        assert!((two.lower / plain(all).lower - 1.0).abs() < 1e-9, "{two:?}");
    }
}

#[test]
fn thresholds_on_the_evidence_of_all_rounds_fail_a_group_no_more_often_than_stated() {
    let (sigma, threshold_delta, rounds) = (10.0, 1e-9, 5_u32);
    let words = DpEvent::ThresholdedHistogram { noise_multiplier: sigma, threshold_delta };
    let words = repeated(words, u64::from(rounds));
    for units in [2, 8, 32] {
        // All units hold one word, of weight 1 each in each round, and the last threshold looks at the rounds' mean.
        let others = f64::from(units - 1);
        let passes = normal::sf(normal::isf(threshold_delta) - others * f64::from(rounds).sqrt() / sigma);
        let stated = failure(&words, units, AddOrRemoveOne).unwrap();
        assert!(passes <= stated, "{units}: {passes} > {stated}");
    }
}
