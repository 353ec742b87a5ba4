//! Batches of a fixed size: bounds against data sets written out, and against the reference table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::{Bounds, Delta, DpEvent, NeighboringRelation, delta, epsilon, group_epsilon};

fn fixed(sample_size: u64, population: u64, noise_multiplier: f64, count: u64) -> DpEvent {
    let step = DpEvent::FixedSizeSampledGaussian { sample_size, population, noise_multiplier };
    DpEvent::SelfComposed { event: Box::new(step), count }
}

/// δ of one draw of two units, noise 1.5: the worse direction of two data sets on a line, by the rectangle rule.
fn written_out(one: &[f64], other: &[f64], epsilon: f64) -> f64 {
    let sums = |units: &[f64]| -> Vec<f64> {
        (0..units.len()).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| units[i] + units[j]).collect()
    };
    let density = |sums: &[f64], x: f64| {
        let total: f64 = sums.iter().map(|sum| (-0.5 * ((x - sum) / 1.5).powi(2)).exp()).sum();
        total / (sums.len() as f64 * 1.5 * (2.0 * std::f64::consts::PI).sqrt())
    };
    let (left, right) = (sums(one), sums(other));
    let (mut forth, mut back) = (0.0, 0.0);
    for index in 0..6000 {
        let x = -15.0 + 30.0 * f64::from(index) / 6000.0;
        let (p, q) = (density(&left, x), density(&right, x));
        forth += (p - epsilon.exp() * q).max(0.0) * 30.0 / 6000.0;
        back += (q - epsilon.exp() * p).max(0.0) * 30.0 / 6000.0;
    }
    forth.max(back)
}

#[test]
fn no_neighbours_written_out_cost_more_and_the_worst_cost_as_much_as_the_lower_bound() {
    let event = fixed(2, 4, 1.5, 1);
    let contributions = [-1.0, 0.0, 1.0];
    for at in [0.25, 1.0, 2.0] {
        for relation in [AddOrRemoveOne, ZeroOut, ReplaceOne] {
            let bounds = delta(&event, at, relation).unwrap();
            let mut worst = 0.0_f64;
            for others in 0..27_usize {
                let others: Vec<f64> =
                    [1, 3, 9].iter().map(|place| contributions[others / place % 3]).collect();
                for unit in contributions {
                    let with = [&others[..], &[unit]].concat();
                    let without: Vec<Vec<f64>> = match relation {
                        AddOrRemoveOne => vec![others.clone()],
                        ZeroOut => vec![[&others[..], &[0.0]].concat()],
                        _ => contributions.iter().map(|other| [&others[..], &[*other]].concat()).collect(),
                    };
                    for without in without {
                        worst = worst.max(written_out(&with, &without, at));
                    }
                }
            }
            // The rectangle rule on an analytic density is exact except for the kinks of the
            // positive part.
            assert!(worst <= bounds.upper * (1.0 + 1e-4), "{relation:?} {at}: {worst} {bounds:?}");
            assert!(worst >= bounds.lower * (1.0 - 1e-4), "{relation:?} {at}: {worst} {bounds:?}");
        }
    }
}

/// A row of a table: ε at δ = 1e-5, 1e-6 and 1e-8.
struct Row {
    sample: u64,
    units: u64,
    noise: f64,
    steps: u64,
    figures: [f64; 3],
}

fn row(sample: u64, units: u64, noise: f64, steps: u64, figures: [f64; 3]) -> Row {
    Row { sample, units, noise, steps, figures }
}

/// Calls `holds` with this accountant's bounds and each figure.
fn beside_figures(rows: &[Row], relation: NeighboringRelation, holds: impl Fn(Bounds, f64) -> bool) {
    for Row { sample, units, noise, steps, figures } in rows {
        for (at, &figure) in [1e-5, 1e-6, 1e-8].into_iter().zip(figures) {
            let event = fixed(*sample, *units, *noise, *steps);
            let bounds = epsilon(&event, Delta::new(at).unwrap(), relation).unwrap();
            assert!(holds(bounds, figure), "{bounds:?} {figure}");
        }
    }
}

#[test]
fn removal_costs_the_pair_of_twice_the_displacement_to_the_reference() {
    // Oracle: dp_accounting 0.6.0, PLD at 1e-4 of the sampled Gaussian of sensitivity 2, to its accuracy of 1e-3.
    let rows = [
        row(100, 10_000, 2.0, 1000, [1.828_243_645_591_767, 2.124_522_525_675_990_5, 2.697_875_497_367_453]),
        row(256, 60_000, 2.2, 2000, [0.847_257_751_699_110_7, 0.984_584_524_071_31, 1.235_621_912_132_417_5]),
        row(256, 1065, 8.0, 104, [2.631_936_065_820_021, 2.979_118_975_293_879_6, 3.591_214_905_943_289]),
    ];
    beside_figures(&rows, AddOrRemoveOne, |bounds, figure| {
        bounds.lower <= figure * 1.001
            && bounds.upper >= figure * 0.999
            && bounds.upper - bounds.lower <= 1e-3 * bounds.upper
    });
}

/// δ of `steps` (1 or 2) draws whose losses are those of removal at displacement 2 where positive, and mirrored where
/// negative: closed form for one, the rectangle rule over the first draw's outcomes for two.
fn mirrored_delta(q: f64, sigma: f64, steps: u32, epsilon: f64) -> f64 {
    let tail = |x: f64| accountant::normal::sf(x / sigma);
    let once = |epsilon: f64| {
        let x = sigma * sigma / 2.0 * ((epsilon.exp_m1() + q) / q).ln() + 1.0;
        q * tail(x - 2.0) + (1.0 - q) * tail(x) - epsilon.exp() * tail(x)
    };
    // H at e^{−ε} is 1 − e^{−ε} + e^{−ε}·H at e^ε, as both directions are the same.
    let whole = |epsilon: f64| {
        if epsilon >= 0.0 { once(epsilon) } else { -epsilon.exp_m1() + epsilon.exp() * once(-epsilon) }
    };
    if steps == 1 {
        return whole(epsilon);
    }
    let (width, norm) = (sigma / 2000.0, 1.0 / (sigma * (2.0 * std::f64::consts::PI).sqrt()));
    let mut sum = (1.0 - q * tail(-1.0) - (2.0 - q) * tail(1.0)) * whole(epsilon);
    for index in 0..24_000 {
        let x = 1.0 + width * (f64::from(index) + 0.5);
        let loss = (q * ((2.0 * x - 2.0) / (sigma * sigma)).exp_m1()).ln_1p();
        let density = norm * (-0.5 * (x / sigma) * (x / sigma)).exp() * width;
        sum += density * (loss.exp() * whole(epsilon - loss) + whole(epsilon + loss));
    }
    sum
}

#[test]
fn exchange_costs_the_mirrored_pair_from_above_and_removal_from_below() {
    // Oracle: the law written out, in one dimension, without the accountant's engines.
    for (sample, units, noise) in [(10, 1000, 1.0), (100, 500, 2.0), (1, 50, 4.0)] {
        let q = sample as f64 / units as f64;
        for (steps, at) in [(1, 0.01), (1, 0.4), (2, 0.02), (2, 0.5)] {
            let expected = mirrored_delta(q, noise, steps, at);
            let bounds = delta(&fixed(sample, units, noise, u64::from(steps)), at, ReplaceOne).unwrap();
            assert!(bounds.upper <= expected * 1.01, "{bounds:?} {expected} {at}");
            assert!(bounds.upper >= expected * (1.0 - 1e-6), "{bounds:?} {expected} {at}");
            let removed = delta(&fixed(sample, units, noise, u64::from(steps)), at, AddOrRemoveOne).unwrap();
            let exchanged = delta(&fixed(sample, units, noise, u64::from(steps)), at, ReplaceOne).unwrap();
            // Other data sets may cost more over two draws.
            assert!(exchanged.lower >= removed.lower * (1.0 - 1e-6), "{exchanged:?} {removed:?}");
            assert!(steps > 1 || exchanged.lower <= removed.upper, "{exchanged:?} {removed:?}");
            assert!(exchanged.lower <= expected, "{exchanged:?} {expected}");
        }
    }
}

/// δ at e^ε = `a` of `steps` (1 or 2) draws of which a unit is zeroed out, at its worst: the outcomes of the law, by the midpoint rule over
/// the densities of displacements 2 against 1 where those favour P, and of 0 against 1 where these favour Q.
fn zeroed_delta(q: f64, sigma: f64, steps: u32, a: f64) -> f64 {
    let width = sigma / 800.0;
    let density = |x: f64, moved: f64| {
        let normal = |shift: f64| (-0.5 * ((x - shift) / sigma).powi(2)).exp();
        ((1.0 - q) * normal(0.0) + q * normal(moved)) * width / (sigma * (2.0 * std::f64::consts::PI).sqrt())
    };
    let points = (0..16_000).map(|index| -8.0 * sigma + width * (f64::from(index) + 0.5) + 1.0);
    let mut outcomes = Vec::new();
    for x in points {
        let (with, without) = (density(x, 2.0), density(x, 1.0));
        if with > without {
            outcomes.push((with, without));
        }
        let (with, without) = (density(x, 0.0), density(x, 1.0));
        if without > with {
            outcomes.push((with, without));
        }
    }
    let (p, other): (f64, f64) =
        outcomes.iter().fold((0.0, 0.0), |sum, outcome| (sum.0 + outcome.0, sum.1 + outcome.1));
    outcomes.push((1.0 - p, 1.0 - other));
    let stick = |outcomes: &[(f64, f64)], a: f64| -> f64 {
        outcomes.iter().map(|(p, other)| (p - a * other).max(0.0)).sum()
    };
    if steps == 1 {
        return stick(&outcomes, a);
    }
    // The second draw's curve, at the ratio that the first one left; sums from the highest loss down.
    outcomes.sort_by(|one, other| (other.0 / other.1).total_cmp(&(one.0 / one.1)));
    let mut sums = vec![(0.0, 0.0)];
    for (p, other) in &outcomes {
        let (before, beside) = sums[sums.len() - 1];
        sums.push((before + p, beside + other));
    }
    let curve = |a: f64| {
        let above = outcomes.partition_point(|(p, other)| *p > a * other);
        sums[above].0 - a * sums[above].1
    };
    outcomes.iter().map(|(p, other)| p * curve(a * other / p)).sum()
}

#[test]
fn a_unit_that_is_zeroed_out_costs_the_law_written_out_from_above() {
    // Oracle: the law in one dimension, without the accountant's quadrature and engines.
    for (sample, units, noise) in [(10, 1000, 1.0), (100, 500, 2.0), (1, 50, 4.0)] {
        let q = sample as f64 / units as f64;
        for (steps, at) in [(1, 0.01_f64), (1, 0.4), (2, 0.02), (2, 0.5)] {
            let expected = zeroed_delta(q, noise, steps, at.exp());
            let bounds = delta(&fixed(sample, units, noise, u64::from(steps)), at, ZeroOut).unwrap();
            assert!(bounds.upper <= expected * 1.01, "{bounds:?} {expected} {at}");
            assert!(bounds.upper >= expected * (1.0 - 1e-4), "{bounds:?} {expected} {at}");
            // A single draw attains it.
            assert!(steps > 1 || bounds.lower >= expected * (1.0 - 1e-2), "{bounds:?} {expected} {at}");
        }
    }
}

/// The divergences at a of P = (1−q)N(y) + qN(x) from Q = (1−q)N(y) + qN(0) in the plane, and of Q from P, by the midpoint rule.
fn in_the_plane(q: f64, sigma: f64, x: [f64; 2], y: [f64; 2], a: f64) -> (f64, f64) {
    let (width, (mut forth, mut back)) = (0.05 * sigma, (0.0, 0.0));
    let normal = |at: [f64; 2], mean: [f64; 2]| {
        let square = (at[0] - mean[0]).powi(2) + (at[1] - mean[1]).powi(2);
        (-0.5 * square / (sigma * sigma)).exp() * width * width / (2.0 * std::f64::consts::PI * sigma * sigma)
    };
    for row in -140..140 {
        for column in -140..140 {
            let at = [f64::from(row) + 0.5, f64::from(column) + 0.5].map(|index| index * width);
            let rest = (1.0 - q) * normal(at, y);
            let (p, other) = (rest + q * normal(at, x), rest + q * normal(at, [0.0, 0.0]));
            forth += (p - a * other).max(0.0);
            back += (other - a * p).max(0.0);
        }
    }
    (forth, back)
}

#[test]
fn no_contributions_in_the_plane_cost_more_than_those_of_the_zeroed_out_law() {
    let (q, sigma) = (0.2, 1.0);
    for a in [1.05, 1.5] {
        let worst = (
            in_the_plane(q, sigma, [1.0, 0.0], [-1.0, 0.0], a).0,
            in_the_plane(q, sigma, [1.0, 0.0], [1.0, 0.0], a).1,
        );
        assert!(worst.0 > 0.0 && worst.1 > 0.0);
        for angle in 0..6 {
            let angle = f64::from(angle) * std::f64::consts::PI / 5.0;
            for (length, other) in [(1.0, 1.0), (1.0, 0.5), (0.6, 1.0), (1.0, 0.0)] {
                let y = [other * angle.cos(), other * angle.sin()];
                let (forth, back) = in_the_plane(q, sigma, [length, 0.0], y, a);
                // The rule is off by the kinks of the positive part.
                assert!(forth <= worst.0 * (1.0 + 1e-3), "{a} {angle} {length} {other}: {forth} {worst:?}");
                assert!(
                    back <= worst.1 * (1.0 + 1e-3) + 1e-9,
                    "{a} {angle} {length} {other}: {back} {worst:?}"
                );
            }
        }
    }
}

#[test]
fn bounds_for_zero_out_are_close() {
    for (sample, units, noise, steps, failure) in [
        (100, 10_000, 2.0, 1000, 1e-5),
        (100, 10_000, 1.0, 1000, 1e-5),
        (256, 60_000, 1.1, 14_062, 1e-5),
        (1000, 1_000_000, 4.0, 10_000, 1e-7),
    ] {
        let event = fixed(sample, units, noise, steps);
        let bounds = epsilon(&event, Delta::new(failure).unwrap(), ZeroOut).unwrap();
        // The law of one step alone is 1.3 to 12 % above the lower bound.
        assert!(bounds.upper - bounds.lower <= 3e-3 * bounds.lower, "{bounds:?}");
    }
}

#[test]
fn bounds_for_exchange_over_many_rare_draws_are_close() {
    for (sample, units, noise, steps, failure, widest) in
        [(256, 60_000, 1.1, 14_062, 1e-5, 0.04), (1000, 1_000_000, 4.0, 10_000, 1e-7, 0.015)]
    {
        let (event, at) = (fixed(sample, units, noise, steps), Delta::new(failure).unwrap());
        let (exchanged, removed) =
            (epsilon(&event, at, ReplaceOne).unwrap(), epsilon(&event, at, AddOrRemoveOne).unwrap());
        // The law of one step alone is 17 to 25 % above the cost of removal.
        assert!(exchanged.upper - exchanged.lower <= widest * exchanged.lower, "{exchanged:?}");
        assert!(exchanged.lower > 1.01 * removed.upper, "{exchanged:?} {removed:?}");
    }
}

/// ε at δ = 1e-5 by a random walk of the loss: an attacker who chooses in each draw between data sets that cost most at high and at low losses.
fn adaptive_delta(q: f64, sigma: f64, steps: u32, at: f64) -> f64 {
    // Displacements of P and Q over σ, on a line or at an angle of 60°.
    let triangle = 3.0_f64.sqrt();
    let places = [([2.0, 0.0], [0.0, 0.0]), ([0.0, 0.0], [2.0, 0.0]), ([2.0, 0.0], [1.0, triangle])];
    let (width, reach) = (2e-3, 2500_i32);
    let laws = places.map(|(own, other)| {
        let mut law = std::collections::BTreeMap::new();
        let step = 0.1;
        for row in -80..120 {
            for column in -80..110 {
                let point = [f64::from(row) * step, f64::from(column) * step];
                let density = |mean: [f64; 2]| {
                    let square = (point[0] - mean[0] / sigma).powi(2) + (point[1] - mean[1] / sigma).powi(2);
                    (-0.5 * square).exp() * step * step / (2.0 * std::f64::consts::PI)
                };
                let rest = (1.0 - q) * density([0.0, 0.0]);
                let (p, other) = (rest + q * density(own), rest + q * density(other));
                // Merged to the lower point of a grid, which costs no more.
                *law.entry(((p / other).ln() / width).floor() as i32).or_insert(0.0) += p;
            }
        }
        law
    });
    let threshold = |index: i32| f64::from(index) * width;
    let mut curve: Vec<f64> =
        (-reach..=reach).map(|index| -threshold(index).exp_m1()).map(|x| x.max(0.0)).collect();
    for _ in 0..steps {
        let value = |index: i32| match index {
            below if below < -reach => -threshold(below).exp_m1(),
            above if above > reach => 0.0,
            within => curve[(within + reach) as usize],
        };
        let best = |index: i32| {
            let of = |law: &std::collections::BTreeMap<i32, f64>| -> f64 {
                law.iter().map(|(loss, p)| p * value(index - loss)).sum()
            };
            laws.iter().map(of).fold(0.0, f64::max)
        };
        curve = (-reach..=reach).map(best).collect();
    }
    curve[(reach + (at / width).floor() as i32) as usize]
}

#[test]
fn an_attacker_who_chooses_anew_before_each_draw_stays_below_the_upper_bound() {
    for (sample, units, noise, steps, at) in [(100, 1000, 2.0, 12, 0.8), (50, 1000, 3.0, 20, 0.3)] {
        let q = f64::from(sample) / f64::from(units);
        let found = adaptive_delta(q, noise, steps, at);
        let bounds =
            delta(&fixed(sample as u64, units as u64, noise, u64::from(steps)), at, ReplaceOne).unwrap();
        assert!(found <= bounds.upper && found > 0.7 * bounds.lower, "{found} {bounds:?}");
    }
}

#[test]
fn exchange_stays_below_the_published_renyi_bound_of_the_reference_table() {
    // Oracle: f_truncated_wor.json, Wang, Balle & Kasiviswanathan 2019 by dp_accounting 0.6.0, an upper bound whose σ
    // is relative to the exchange: half of the noise multiplier here, which is relative to one unit's norm.
    let rows = [
        row(
            100,
            10_000,
            2.0 * 1.0,
            1000,
            [3.576_111_482_350_549, 4.021_208_091_777_972, 4.788_736_456_109_321],
        ),
        row(
            500,
            50_000,
            2.0 * 1.0,
            500,
            [2.538_897_891_218_763, 2.885_132_401_760_579, 3.543_013_856_901_735],
        ),
        row(256, 1065, 2.0 * 4.0, 104, [6.298_108_372_575_053, 6.880_668_519_696_102, 8.018_448_905_132_228]),
        row(
            2048,
            22_051,
            2.0 * 2.0,
            269,
            [8.717_824_913_023_787, 9.485_353_277_355_134, 11.020_410_006_017_832],
        ),
        row(
            256,
            60_000,
            2.0 * 1.1,
            2000,
            [1.798_274_362_565_43, 2.028_532_871_864_835, 2.451_535_448_682_572],
        ),
    ];
    beside_figures(&rows, ReplaceOne, |bounds, figure| {
        bounds.upper <= figure && bounds.lower > 0.4 * figure && bounds.upper <= 1.5 * bounds.lower
    });
}

#[test]
fn it_never_gets_the_poisson_figure() {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier: 1.0 };
    let poisson = DpEvent::SelfComposed { event: Box::new(step), count: 1000 };
    for relation in [AddOrRemoveOne, ZeroOut, ReplaceOne] {
        let at = Delta::new(1e-5).unwrap();
        let ours = epsilon(&fixed(100, 10_000, 1.0, 1000), at, relation).unwrap();
        let poisson = epsilon(&poisson, at, relation).unwrap();
        assert!(ours.upper > 2.0 * poisson.upper && ours.lower > poisson.upper, "{relation:?} {ours:?}");
    }
}

#[test]
fn a_batch_of_everyone_is_the_gaussian_where_the_number_of_units_is_public() {
    let whole =
        DpEvent::SelfComposed { event: Box::new(DpEvent::Gaussian { noise_multiplier: 2.0 }), count: 5 };
    let at = Delta::new(1e-6).unwrap();
    for relation in [ZeroOut, ReplaceOne] {
        assert_eq!(epsilon(&fixed(10, 10, 2.0, 5), at, relation), epsilon(&whole, at, relation));
    }
}

#[test]
fn what_has_no_proof_or_no_meaning_is_refused_by_name() {
    let at = Delta::new(1e-6).unwrap();
    let group = group_epsilon(&fixed(10, 100, 1.0, 1), 2, at, ReplaceOne).unwrap_err().to_string();
    assert!(group.contains("fixed_size_sampled_gaussian"), "{group}");
    let refused = |event: DpEvent, relation: NeighboringRelation| {
        assert!(epsilon(&event, at, relation).is_err(), "{event:?} {relation:?}");
    };
    refused(fixed(10, 10, 1.0, 1), AddOrRemoveOne);
    for relation in [AddOrRemoveOne, ZeroOut, ReplaceOne] {
        refused(fixed(0, 10, 1.0, 1), relation);
        refused(fixed(11, 10, 1.0, 1), relation);
        refused(fixed(1, 0, 1.0, 1), relation);
        refused(fixed(1, 10, 0.0, 1), relation);
        refused(fixed(1, u64::MAX, 1.0, 1), relation);
    }
}
