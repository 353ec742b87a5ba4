//! Figures with their oracles, kept in the crate so that they are always tested.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::{self, AddOrRemoveOne, ReplaceOne};
use accountant::rdp::{self, Conversion};
use accountant::{
    AccountantError, Delta, DpEvent, Source, calibrate::EpsilonTarget, delta, epsilon, exact_epsilon,
    group_epsilon, tradeoff,
};

fn sampled(q: f64, sigma: f64, steps: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability: q, noise_multiplier: sigma };
    DpEvent::SelfComposed { event: Box::new(step), count: steps }
}

fn at(delta: f64) -> Delta {
    Delta::new(delta).unwrap()
}

/// Ponomareva et al. 2022: batch 8192 of 5,240,387,307, 10⁵ steps, δ = 1/N.
const T5_UNITS: f64 = 5_240_387_307.0;

fn holds(event: &DpEvent, at_delta: f64, exact: f64) {
    let bounds = epsilon(event, at(at_delta), AddOrRemoveOne).unwrap();
    assert!(
        bounds.lower <= exact * (1.0 + 1e-9)
            && bounds.upper >= exact * (1.0 - 1e-9)
            && bounds.upper - bounds.lower <= 1e-3 * bounds.upper,
        "{bounds:?} against {exact} for {event:?}"
    );
}

#[test]
fn the_five_rows_of_dp_t5_come_out_exactly_and_as_published() {
    // σ, published by Rényi orders, exact by contour inversion on two contours (reference i_seeds.json).
    for (sigma, published, exact) in [
        (0.40, 6.057_315_7, 4.175_651_021_143_484),
        (0.35, 8.689_803_2, 7.221_204_659_186_434_5),
        (0.30, 13.458_623_8, 11.574_316_354_704_55),
        (0.20, 47.263_050_1, 40.797_629_753_362_06),
        (0.10, 319.194_152_3, 279.575_317_697_017_2),
    ] {
        let run = sampled(8192.0 / T5_UNITS, sigma, 100_000);
        holds(&run, 1.0 / T5_UNITS, exact);
        let found = exact_epsilon(&run, at(1.0 / T5_UNITS), AddOrRemoveOne).unwrap();
        assert!(
            found.source == Source::Inversion && (found.point / exact - 1.0).abs() < 1e-9,
            "{found:?} {exact}"
        );
        assert!(found.bounds.lower <= found.point && found.point <= found.bounds.upper);
        let ours = rdp::epsilon(&run, at(1.0 / T5_UNITS), AddOrRemoveOne, Conversion::Improved).unwrap();
        assert!((ours / published - 1.0).abs() < 1e-6, "{ours} against {published}");
    }
}

#[test]
fn the_queries_that_peers_are_timed_on_come_out_exactly() {
    // Oracle: contour inversion (ACCOUNTANT.md, queries A to F), six decimals.
    for (q, sigma, steps, delta, exact) in [
        (1e-2, 1.0, 1_000, 1e-5, 1.828_237),
        (256.0 / 60_000.0, 1.1, 14_062, 1e-5, 2.381_597),
        (1e-3, 0.6, 100_000, 1e-8, 8.584_754),
        (1e-4, 1.0, 1_000_000, 1e-8, 0.658_114),
        (8192.0 / T5_UNITS, 0.3, 100_000, 1.9e-10, 11.576_781),
        (0.23, 3.0, 109, 1e-8, 4.937_670),
    ] {
        let bounds = epsilon(&sampled(q, sigma, steps), at(delta), AddOrRemoveOne).unwrap();
        assert!(bounds.lower <= exact + 1e-6 && bounds.upper >= exact - 1e-6, "{bounds:?} against {exact}");
        assert!(bounds.upper - bounds.lower <= 1e-3 * bounds.upper, "{bounds:?}");
    }
}

#[test]
fn hard_points_come_out_exactly() {
    // Low noise, many small steps, ten million steps, a tiny δ. Oracle: the contour prototypes of the reference tables, in
    // another language; two bends agree to the digits shown.
    for (q, sigma, steps, delta, exact) in [
        (1e-2, 0.2, 100, 1e-6, 86.696_150_95),
        (1e-4, 10.0, 100_000, 1e-6, 0.009_691_061_484_153_21),
        (1e-3, 2.0, 10_000_000, 1e-8, 10.443_433_380_849),
        (1e-2, 1.0, 1000, 1e-15, 4.854_537_750_605),
    ] {
        let run = sampled(q, sigma, steps);
        holds(&run, delta, exact);
        let found = exact_epsilon(&run, at(delta), AddOrRemoveOne).unwrap();
        assert!((found.point / exact - 1.0).abs() < 1e-8, "{found:?} against {exact}");
        assert!(found.bounds.lower <= found.point && found.point <= found.bounds.upper, "{found:?}");
    }
    // Few steps, where inversion gives nothing. Oracle: dp_accounting's PLD at a grid of 1e-5, above by less than 1e-4.
    let few = epsilon(&sampled(1e-2, 1.0, 10), at(1e-5), AddOrRemoveOne).unwrap();
    assert!(few.lower <= 0.379_902_3 && few.upper >= 0.379_902_2 * (1.0 - 1e-4), "{few:?}");
    assert!(few.upper - few.lower <= 1e-3 * few.upper, "{few:?}");
}

#[test]
fn jumps_of_every_size_from_a_billionth_up_are_bounded_closely() {
    // An even grid certified 0 to 0.0137 and 0 to 0.104 here. Oracle: the closed form of two steps and the sum of
    // one-step δ, which rare jumps approach: ε at T·δ₁(ε) = δ, to the chance of a second jump.
    for (q, sigma, steps, delta) in [
        (1.060_164_825e-9, 0.303_127_632, 113_694, 1.981_455_7e-6),
        (3.657_329e-9, 0.492_592_2, 9_979, 8.914_83e-13),
    ] {
        let bounds = epsilon(&sampled(q, sigma, steps), at(delta), AddOrRemoveOne).unwrap();
        let single = epsilon(&sampled(q, sigma, 1), at(delta / steps as f64), AddOrRemoveOne).unwrap();
        assert!(bounds.upper - bounds.lower <= 1e-3 * bounds.upper, "{bounds:?}");
        assert!((bounds.upper / single.upper - 1.0).abs() < 0.02, "{bounds:?} against {single:?}");
    }
}

#[test]
fn one_use_agrees_with_the_difference_of_two_tails() {
    // Oracle: δ(ε) = P(x > x_ε) − e^ε·Q(x > x_ε) with x_ε = σ²·log((e^ε−1+q)/q) + ½, by erfc.
    let tail = |x: f64| accountant::normal::sf(x);
    for (q, sigma, epsilon) in [(0.1, 1.0, 0.5_f64), (0.01, 0.5, 1.0), (0.5, 2.0, 0.2)] {
        let x = sigma * sigma * ((epsilon.exp() - 1.0 + q) / q).ln() + 0.5;
        let (low, high) = (tail(x / sigma), tail((x - 1.0) / sigma));
        let exact = (1.0 - q) * low + q * high - epsilon.exp() * low;
        let bounds = delta(&sampled(q, sigma, 1), epsilon, AddOrRemoveOne).unwrap();
        assert!(
            bounds.lower <= exact * (1.0 + 1e-9) && bounds.upper >= exact * (1.0 - 1e-9),
            "{bounds:?} {exact}"
        );
    }
}

#[test]
fn three_classic_mistakes_have_the_factors_they_are_known_for() {
    // PITFALLS: σ = 1.168, q = 1024/16300, T = 640: right 8.0, sensitivity doubled 36.4, noise over √8 93.8.
    let delta = at(16_300_f64.powf(-1.1));
    let q = 1024.0 / 16_300.0;
    for (sigma, published) in [(1.168, 8.0), (1.168 / 2.0, 36.4), (1.168 / 8_f64.sqrt(), 93.8)] {
        let ours =
            rdp::epsilon(&sampled(q, sigma, 640), delta, AddOrRemoveOne, Conversion::Improved).unwrap();
        let exact = epsilon(&sampled(q, sigma, 640), delta, AddOrRemoveOne).unwrap();
        // The published three come from one accountant or the other; the exact one is never above.
        assert!(exact.upper <= ours, "{exact:?} {ours}");
        let near = |value: f64| (value / published - 1.0).abs() < 0.12;
        assert!(near(ours) || near(exact.upper), "{exact:?} and {ours} against {published}");
    }
}

#[test]
fn replacing_costs_more_than_removing_and_doubles_the_gaussian() {
    let delta = at(1e-6);
    let doubled = epsilon(&DpEvent::Gaussian { noise_multiplier: 1.0 }, delta, ReplaceOne).unwrap();
    let halved = epsilon(&DpEvent::Gaussian { noise_multiplier: 0.5 }, delta, AddOrRemoveOne).unwrap();
    assert_eq!(doubled, halved);
    // Oracle: dp_accounting's PLD, replace special (reference f_truncated_wor.json), 1e-3.
    for (at_delta, pld) in
        [(1e-5, 2.843_445_811_703_821), (1e-6, 3.214_236_997_059_727), (1e-8, 3.879_405_892_567_943)]
    {
        let bounds = epsilon(&sampled(0.01, 1.0, 1000), at(at_delta), ReplaceOne).unwrap();
        assert!(bounds.lower <= pld * 1.001 && bounds.upper >= pld * 0.999, "{bounds:?} against {pld}");
        assert!(bounds.upper - bounds.lower <= 1e-3 * bounds.upper, "{bounds:?}");
    }
}

#[test]
fn a_group_costs_more_than_its_size_times_one() {
    // Kerrigan 2020 divides by the group's size. Oracle: contour inversion (reference g_group.json).
    let run = sampled(0.01, 4.0, 10_000);
    let cost = |units| group_epsilon(&run, units, at(1e-5), AddOrRemoveOne).unwrap();
    assert!(cost(2).lower <= 2.038_507_833_5 && cost(2).upper >= 2.038_507_833_4);
    assert!(cost(8).lower <= 10.252_691_062 && cost(8).upper >= 10.252_691_061);
    assert!(cost(2).lower > 2.0 * cost(1).upper);
}

#[test]
fn shuffled_batches_never_get_the_poisson_figure() {
    let shuffled = DpEvent::ShuffledGaussian { noise_multiplier: 1.0, batches: 100, epochs: 10 };
    let bounds = epsilon(&shuffled, at(1e-5), AddOrRemoveOne).unwrap();
    let poisson = epsilon(&sampled(0.01, 1.0, 1000), at(1e-5), AddOrRemoveOne).unwrap();
    assert!(bounds.upper > poisson.upper, "{bounds:?} {poisson:?}");
    let full = DpEvent::Gaussian { noise_multiplier: 1.0 / 10_f64.sqrt() };
    let full = epsilon(&full, at(1e-5), AddOrRemoveOne).unwrap();
    assert!((bounds.upper / full.upper - 1.0).abs() < 1e-12);
    assert!(bounds.lower > 0.0 && bounds.lower < bounds.upper);
}

#[test]
fn what_is_out_of_range_is_refused_by_name() {
    let refused = |event: &DpEvent, relation: NeighboringRelation| {
        epsilon(event, at(1e-5), relation).unwrap_err().to_string()
    };
    for (q, sigma, name) in [
        (1.5, 1.0, "sampling_probability"),
        (-0.1, 1.0, "sampling_probability"),
        (f64::NAN, 1.0, "sampling_probability"),
        (0.1, 0.0, "noise_multiplier"),
        (0.1, -1.0, "noise_multiplier"),
        (0.1, f64::NAN, "noise_multiplier"),
        (0.1, f64::INFINITY, "noise_multiplier"),
    ] {
        assert!(refused(&sampled(q, sigma, 10), AddOrRemoveOne).contains(name), "{q} {sigma}");
    }
    assert!(Delta::new(0.0).is_err() && Delta::new(1.0).is_err() && Delta::new(f64::NAN).is_err());
    let histogram = DpEvent::ThresholdedHistogram { noise_multiplier: 1.0, threshold_delta: 1e-5 };
    assert!(refused(&histogram, AddOrRemoveOne).contains("delta"));
    let safe = DpEvent::ThresholdedHistogram { noise_multiplier: 1.0, threshold_delta: 2e-9 };
    let group = |units| group_epsilon(&safe, units, at(1e-5), AddOrRemoveOne);
    assert!(group(1).is_ok());
    // Two units push a word of theirs over a threshold of noise 1 more often than δ allows.
    assert!(matches!(group(2), Err(AccountantError::OutOfRange { name: "delta", .. })));
    let mut deep = sampled(0.1, 1.0, 1);
    for _ in 0..100 {
        deep = DpEvent::SelfComposed { event: Box::new(deep), count: 1 };
    }
    assert!(refused(&deep, AddOrRemoveOne).contains("nesting"));
}

#[test]
fn nothing_happening_costs_nothing() {
    for event in [sampled(0.0, 1.0, 100), sampled(0.5, 1.0, 0), DpEvent::Composed { events: vec![] }] {
        let bounds = epsilon(&event, at(1e-9), AddOrRemoveOne).unwrap();
        assert_eq!((bounds.lower, bounds.upper), (0.0, 0.0));
    }
}

#[test]
fn calibrated_noise_passes_and_slightly_less_fails() {
    for (target, at_delta, q, steps) in
        [(1.0, 1e-8, 0.23, 109), (8.0, 1e-6, 0.01, 300), (5.36, 2.89e-9, 1.894e-4, 20_000)]
    {
        let bound = EpsilonTarget { epsilon: target, delta: at(at_delta), relation: AddOrRemoveOne };
        let noise = bound.noise_multiplier(|noise| sampled(q, noise, steps)).unwrap();
        assert!(epsilon(&sampled(q, noise, steps), at(at_delta), AddOrRemoveOne).unwrap().upper <= target);
        let less = epsilon(&sampled(q, noise * (1.0 - 2e-6), steps), at(at_delta), AddOrRemoveOne).unwrap();
        assert!(less.upper > target, "{less:?} {target}");
    }
}

#[test]
fn the_gaussian_trade_off_curve_lies_inside_its_bounds() {
    // Oracle: Dong, Roth & Su 2019: TPR = Φ(Φ⁻¹(FPR) + μ).
    let event = DpEvent::Gaussian { noise_multiplier: 0.5 };
    for rate in [1e-4, 1e-2, 0.1] {
        let exact = accountant::normal::sf(accountant::normal::isf(rate) - 2.0);
        let bounds = tradeoff::true_positive_rate(&event, rate, AddOrRemoveOne).unwrap();
        assert!(
            bounds.lower <= exact && bounds.upper >= exact && bounds.upper <= exact * 1.05,
            "{bounds:?} {exact}"
        );
    }
}
