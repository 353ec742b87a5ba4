//! Poisson batches that are cut to a largest size, against the reference table and against their
//! limits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::{Delta, DpEvent, NeighboringRelation, delta, epsilon, rdp};

fn run(units: u64, largest_batch: u64, steps: u64) -> DpEvent {
    let step = DpEvent::TruncatedPoissonSampledGaussian {
        sampling_probability: 0.01,
        noise_multiplier: 1.0,
        units,
        largest_batch,
    };
    DpEvent::SelfComposed { event: Box::new(step), count: steps }
}

fn whole(steps: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.01, noise_multiplier: 1.0 };
    DpEvent::SelfComposed { event: Box::new(step), count: steps }
}

fn upper(event: &DpEvent, at: f64, relation: NeighboringRelation) -> f64 {
    epsilon(event, Delta::new(at).unwrap(), relation).unwrap().upper
}

#[test]
fn upper_bounds_are_the_reference_figures() {
    // Oracle: dp_accounting 0.6.0, PLD of the same dominating pairs, to the table's tolerance of 1e-3. What it calls
    // ADD_OR_REMOVE_ONE takes the number of units as public, which is zero-out here.
    for (units, cap, steps, relation, figures) in [
        (10_000, 120, 1000, ZeroOut, [5.297_168_911_630_385, 6.523_815_265_546_665, 8.942_219_425_697_866]),
        (
            10_000,
            120,
            1000,
            ReplaceOne,
            [5.677_786_622_815_549, 6.919_856_744_827_157, 9.339_492_789_960_037],
        ),
        (10_000, 150, 1000, ZeroOut, [1.830_465_655_657_063, 2.137_829_237_745_33, 3.527_240_349_546_286]),
        (10_000, 150, 1000, ReplaceOne, [2.844_440_349_606_834, 3.219_165_612_829_57, 4.067_110_466_635_011]),
        (50_000, 550, 500, ZeroOut, [4.274_292_372_011_97, 5.452_315_919_778_559, 7.576_146_708_244_972]),
        (50_000, 550, 500, ReplaceOne, [4.466_368_718_430_375, 5.658_513_812_561_733, 7.799_763_704_138_778]),
        (50_000, 600, 500, ZeroOut, [1.333_770_081_886_487, 1.638_521_994_746_153, 3.846_399_085_914_564]),
        (50_000, 600, 500, ReplaceOne, [1.959_459_853_319_634, 2.264_586_981_063_933, 4.038_455_728_461_399]),
    ] {
        let event = run(units, cap, steps);
        for (at, figure) in [1e-5, 1e-6, 1e-8].into_iter().zip(figures) {
            // ε(δ) is within 1e-3 of the figure just when δ(ε) crosses δ between its neighbours.
            let (before, after) = (figure * (1.0 - 1e-3), figure * (1.0 + 1e-3));
            let (early, late) = (
                delta(&event, before, relation).unwrap().upper,
                delta(&event, after, relation).unwrap().upper,
            );
            assert!(
                early > at && late < at,
                "N={units} cap={cap} {relation:?} {at} {figure}: {early} {late}"
            );
        }
    }
    let ours = upper(&run(10_000, 120, 1000), 1e-5, ZeroOut);
    assert!((ours / 5.297_168_911_630_385 - 1.0).abs() < 1e-3, "{ours}");
}

#[test]
fn bounds_enclose_what_the_unit_alone_reveals_and_meet_where_cuts_are_rare() {
    let at = Delta::new(1e-5).unwrap();
    for relation in [ZeroOut, ReplaceOne] {
        let plain = epsilon(&whole(1000), at, relation).unwrap();
        let rarely = epsilon(&run(10_000, 200, 1000), at, relation).unwrap();
        assert!((rarely.upper / plain.upper - 1.0).abs() < 1e-3, "{rarely:?} against {plain:?}");
        assert!(rarely.upper - rarely.lower <= 2e-3 * rarely.upper, "{rarely:?}");
        // Batches are full half of the time: a unit is kept less often, yet may cost far more.
        let often = epsilon(&run(10_000, 120, 1000), at, relation).unwrap();
        assert!(often.lower <= plain.upper && often.lower > 0.9 * plain.lower, "{often:?} against {plain:?}");
        assert!(often.upper > 1.5 * plain.upper, "{often:?} against {plain:?}");
    }
}

#[test]
fn many_steps_that_are_often_cut_are_answered() {
    // Each of six steps in a hundred is cut, at low noise: 6,000 in all, more than can be counted one by one.
    let step = DpEvent::TruncatedPoissonSampledGaussian {
        sampling_probability: 1e-3,
        noise_multiplier: 0.4,
        units: 1_000_000,
        largest_batch: 1050,
    };
    let event = DpEvent::SelfComposed { event: Box::new(step), count: 100_000 };
    let bounds = epsilon(&event, Delta::new(1e-9).unwrap(), ZeroOut).unwrap();
    let loose = rdp::epsilon(&event, Delta::new(1e-9).unwrap(), ZeroOut, rdp::Conversion::Improved).unwrap();
    assert!(bounds.lower > 52.0 && bounds.upper < 210.2 && bounds.upper < loose, "{bounds:?} {loose}");
    let back = delta(&event, bounds.upper, ZeroOut).unwrap().upper;
    assert!(back <= 1.001e-9 && back > 0.9e-9, "{back}");
}

#[test]
fn delta_at_the_certified_epsilon_is_within_the_budget() {
    let event = run(10_000, 150, 1000);
    let spent = upper(&event, 1e-6, ReplaceOne);
    let back = delta(&event, spent, ReplaceOne).unwrap();
    // The grid of a δ is another one than that of an ε; each is within a thousandth.
    assert!(back.upper <= 1e-6 * (1.0 + 1e-3) && back.upper > 0.98e-6, "{back:?}");
}

#[test]
fn orders_of_renyi_bound_the_same_mixture_from_above() {
    // Two routes to the same pair: moments of the coin, and compositions written out.
    let (event, at) = (run(10_000, 120, 1000), Delta::new(1e-5).unwrap());
    let loose = rdp::epsilon(&event, at, ZeroOut, rdp::Conversion::Improved).unwrap();
    let ours = upper(&event, 1e-5, ZeroOut);
    assert!(loose > ours && loose < 1.35 * ours, "{loose} against {ours}");
}

#[test]
fn a_number_of_units_that_is_not_public_is_refused_by_name() {
    let refused = epsilon(&run(10_000, 150, 1000), Delta::new(1e-5).unwrap(), AddOrRemoveOne).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("truncated_poisson_sampled_gaussian") && text.contains("add_or_remove_one"),
        "{text}"
    );
    for broken in [run(0, 10, 1), run(100, 0, 1), run(10_000, 50, 1)] {
        assert!(epsilon(&broken, Delta::new(1e-5).unwrap(), ReplaceOne).is_err(), "{broken:?}");
    }
}

#[test]
fn a_largest_batch_of_everyone_is_poisson_sampling_to_the_last_bit() {
    let at = Delta::new(1e-5).unwrap();
    assert_eq!(
        epsilon(&run(10_000, 10_000, 1000), at, ReplaceOne).unwrap().upper,
        epsilon(&whole(1000), at, ReplaceOne).unwrap().upper
    );
}

#[test]
fn the_event_is_read_back_as_it_was_written() {
    let text = serde_json::to_string(&run(10_000, 150, 7)).unwrap();
    assert!(text.contains("\"type\":\"truncated_poisson_sampled_gaussian\""), "{text}");
    assert_eq!(serde_json::from_str::<DpEvent>(&text).unwrap(), run(10_000, 150, 7));
}
