//! Properties that must hold for any setting.
//!
//! 25 to 30 random settings a property by default; ACCOUNTANT_FULL=1 runs 10,000, as a release should.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::calibrate::{Compute, EpsilonTarget};
use accountant::rdp::{self, Conversion};
use accountant::{Delta, DpEvent, delta, epsilon, group_epsilon};
use proptest::prelude::*;

fn cases(few: u32) -> ProptestConfig {
    let cases = if std::env::var_os("ACCOUNTANT_FULL").is_some() { 10_000 } else { few };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn sampled(q: f64, sigma: f64, steps: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability: q, noise_multiplier: sigma };
    DpEvent::SelfComposed { event: Box::new(step), count: steps }
}

/// Log-uniform over what a trainer might ask: q 1e-9…1, σ 0.1…100, T 1…1e7, δ 1e-15…1e-3.
fn setting() -> impl Strategy<Value = (f64, f64, u64, f64)> {
    (-9.0..0.0_f64, -1.0..2.0_f64, 0.0..7.0_f64, -15.0..-3.0_f64).prop_map(|(q, sigma, steps, delta)| {
        (10_f64.powf(q), 10_f64.powf(sigma), 10_f64.powf(steps) as u64, 10_f64.powf(delta))
    })
}

proptest! {
    #![proptest_config(cases(30))]

    // The gap is 0.1 % of ε from 1e-3 to 1e6. An ε closer to 0, or at a δ near the probability that
    // a unit takes part at all, may depend on the last digits of δ: there the gap is 5 %. Beyond
    // that range, a few settings of σ near 0.1 with millions of steps are bounded only from above.
    #[test]
    fn bounds_are_ordered_close_and_never_above_renyi((q, sigma, steps, at) in setting()) {
        let named = format!("q={q:?} sigma={sigma:?} T={steps} delta={at:?}");
        let (event, at) = (sampled(q, sigma, steps), Delta::new(at).unwrap());
        let answer = epsilon(&event, at, AddOrRemoveOne);
        prop_assert!(answer.is_ok(), "{named}: {answer:?}");
        let bounds = answer.unwrap();
        prop_assert!(bounds.lower >= 0.0 && bounds.lower <= bounds.upper && bounds.upper.is_finite(), "{named}: {bounds:?}");
        let hanging = bounds.upper < 1e-3 || at.get() > 0.2 * q * steps as f64;
        let widest = if hanging { 0.05 } else { 1e-3 };
        let narrow = bounds.upper - bounds.lower <= widest * bounds.upper;
        prop_assert!(narrow || bounds.upper > 1e6, "{named}: {bounds:?}");
        let renyi = rdp::epsilon(&event, at, AddOrRemoveOne, Conversion::Improved).unwrap();
        prop_assert!(bounds.lower <= renyi.max(0.0) * (1.0 + 1e-9), "{named}: {bounds:?} above {renyi:?}");
    }

    #[test]
    fn more_noise_never_has_a_lower_bound_above_less_noise((q, sigma, steps, at) in setting()) {
        let at = Delta::new(at).unwrap();
        let less = epsilon(&sampled(q, sigma, steps), at, AddOrRemoveOne).unwrap();
        let more = epsilon(&sampled(q, 1.1 * sigma, steps), at, AddOrRemoveOne).unwrap();
        prop_assert!(more.lower <= less.upper, "q={q:?} sigma={sigma:?} T={steps} {at:?}: {more:?} {less:?}");
    }

    #[test]
    fn more_steps_and_likelier_sampling_never_cost_less((q, sigma, steps, at) in setting()) {
        let at = Delta::new(at).unwrap();
        let once = epsilon(&sampled(q, sigma, steps), at, AddOrRemoveOne).unwrap();
        let longer = epsilon(&sampled(q, sigma, 2 * steps), at, AddOrRemoveOne).unwrap();
        let denser = epsilon(&sampled((1.2 * q).min(1.0), sigma, steps), at, AddOrRemoveOne).unwrap();
        prop_assert!(
            once.lower <= longer.upper && once.lower <= denser.upper,
            "q={q:?} sigma={sigma:?} T={steps} {at:?}: {once:?} {longer:?} {denser:?}"
        );
    }
}

/// Two steps of rare sampling: Chernoff's ε is so far off that a first grid lies wholly above the answer.
/// Oracle: the closed form for one step, which two steps cannot undercut.
#[test]
fn a_grid_above_the_answer_bounds_it_by_its_own_lower_end() {
    let (q, at) = (3.087852272343675e-8, Delta::new(3.1203748825970945e-12).unwrap());
    let once = epsilon(&sampled(q, 1.0, 1), at, AddOrRemoveOne).unwrap();
    let twice = epsilon(&sampled(q, 1.0, 2), at, AddOrRemoveOne).unwrap();
    assert!(twice.upper >= once.lower && twice.lower <= 2.0 * once.upper, "{once:?} {twice:?}");
}

proptest! {
    #![proptest_config(cases(25))]

    #[test]
    fn delta_at_the_epsilon_of_a_delta_is_that_delta(
        q in 1e-3..0.3_f64, sigma in 0.6..4.0_f64, steps in 20..3000_u64, power in -9.0..-4.0_f64,
    ) {
        let (event, at) = (sampled(q, sigma, steps), 10_f64.powf(power));
        let spent = epsilon(&event, Delta::new(at).unwrap(), AddOrRemoveOne).unwrap();
        prop_assert!(delta(&event, spent.upper, AddOrRemoveOne).unwrap().lower <= at * (1.0 + 1e-9));
        if spent.lower > 0.0 {
            prop_assert!(delta(&event, spent.lower, AddOrRemoveOne).unwrap().upper >= at * (1.0 - 1e-9));
        }
    }

    #[test]
    fn composition_commutes_and_repetition_is_composition(
        q in 1e-3..0.3_f64, sigma in 0.6..4.0_f64, mu in 0.05..1.0_f64, steps in 1..500_u64,
    ) {
        let (train, count) = (sampled(q, sigma, steps), DpEvent::Gaussian { noise_multiplier: 1.0 / mu });
        let at = Delta::new(1e-6).unwrap();
        let ask = |events: Vec<DpEvent>| epsilon(&DpEvent::Composed { events }, at, AddOrRemoveOne).unwrap();
        let one = ask(vec![train.clone(), count.clone()]);
        let other = ask(vec![count, train.clone()]);
        prop_assert_eq!(one, other);
        let twice = ask(vec![train.clone(), train]);
        let doubled = epsilon(&sampled(q, sigma, 2 * steps), at, AddOrRemoveOne).unwrap();
        prop_assert_eq!(twice, doubled);
    }

    #[test]
    fn replacing_is_never_cheaper_and_zeroing_out_costs_what_removing_costs(
        q in 1e-3..0.3_f64, sigma in 0.6..4.0_f64, steps in 1..500_u64,
    ) {
        let (event, at) = (sampled(q, sigma, steps), Delta::new(1e-6).unwrap());
        let removed = epsilon(&event, at, AddOrRemoveOne).unwrap();
        prop_assert!(epsilon(&event, at, ReplaceOne).unwrap().upper >= removed.lower);
        prop_assert_eq!(epsilon(&event, at, ZeroOut).unwrap(), removed);
    }
}

proptest! {
    #![proptest_config(cases(2))]

    #[test]
    fn a_calibrated_batch_passes_and_the_next_fails(
        epsilon_target in 0.3..8.0_f64, sigma in 0.6..3.0_f64, steps in 10..3000_u64, units in 1_000..1_000_000_u64,
    ) {
        let at = Delta::new(1e-7).unwrap();
        let event_for = |batch: u64| sampled(batch as f64 / units as f64, sigma, steps);
        let spent = |batch| epsilon(&event_for(batch), at, AddOrRemoveOne).unwrap().upper;
        let target = EpsilonTarget { epsilon: epsilon_target, delta: at, relation: AddOrRemoveOne };
        let batch = target.batch_size(units, event_for).unwrap();
        prop_assert!(batch == 0 || spent(batch) <= epsilon_target);
        prop_assert!(batch == units || spent(batch + 1) > epsilon_target);
        // At a given noise-batch ratio it is the smaller batch that costs more.
        let ratio = sigma / (0.3 * units as f64);
        let at_ratio = |batch: u64| sampled(batch as f64 / units as f64, ratio * batch as f64, steps);
        let spent = |batch| epsilon(&at_ratio(batch), at, AddOrRemoveOne).unwrap().upper;
        match target.smallest_batch_size(units, at_ratio) {
            Ok(batch) => {
                prop_assert!(spent(batch) <= epsilon_target);
                prop_assert!(batch == 1 || spent(batch - 1) > epsilon_target);
            }
            Err(_) => prop_assert!(spent(units) > epsilon_target),
        }
    }

    #[test]
    fn the_examples_of_a_unit_cost_what_a_group_of_as_many_units_costs(
        q in 1e-4..0.2_f64, sigma in 0.5..5.0_f64, steps in 1..500_u64, examples in 1..40_u32,
    ) {
        let at = Delta::new(1e-6).unwrap();
        let step = DpEvent::PoissonSampledExamplesGaussian {
            sampling_probability: q, noise_multiplier: sigma, examples_per_unit: examples,
        };
        let of_examples = DpEvent::SelfComposed { event: Box::new(step), count: steps };
        for relation in [AddOrRemoveOne, ReplaceOne, ZeroOut] {
            let of_group = group_epsilon(&sampled(q, sigma, steps), examples, at, relation);
            prop_assert_eq!(epsilon(&of_examples, at, relation), of_group);
        }
        // Two units with three examples each are six of them.
        let six = group_epsilon(&sampled(q, sigma, steps), 6, at, AddOrRemoveOne);
        let three = DpEvent::PoissonSampledExamplesGaussian {
            sampling_probability: q, noise_multiplier: sigma, examples_per_unit: 3,
        };
        let of_two = DpEvent::SelfComposed { event: Box::new(three), count: steps };
        prop_assert_eq!(group_epsilon(&of_two, 2, at, AddOrRemoveOne), six);
    }

    #[test]
    fn no_candidate_batch_beats_the_least_noise_batch_ratio(
        epsilon_target in 0.5..8.0_f64, steps in 20..2000_u64, units in 1_000..100_000_u64, slack in 0.0..0.5_f64,
    ) {
        let at = Delta::new(1e-6).unwrap();
        let event_for =
            |batch: u64, steps, noise| sampled(batch as f64 / units as f64, noise, steps);
        let examples = steps * 256;
        for compute in [Compute::Steps(steps), Compute::Examples(examples)] {
            let target = EpsilonTarget { epsilon: epsilon_target, delta: at, relation: AddOrRemoveOne };
            let least = |slack| target.noise_batch_ratio(units, compute, slack, event_for);
            let (best, cheap) = (least(0.0).unwrap(), least(slack).unwrap());
            prop_assert!(cheap.ratio <= best.ratio * (1.0 + slack) && cheap.expected_batch_size <= best.expected_batch_size);
            let spent = epsilon(
                &event_for(cheap.expected_batch_size, cheap.steps, cheap.noise_multiplier), at, AddOrRemoveOne,
            );
            prop_assert!(spent.unwrap().upper <= epsilon_target);
            // A batch of 256, which is a candidate, needs at least the least ratio.
            if units > 256 {
                let steps = if let Compute::Steps(steps) = compute { steps } else { examples / 256 };
                let noise = target.noise_multiplier(|noise| event_for(256, steps, noise));
                prop_assert!(noise.unwrap() / 256.0 >= best.ratio * (1.0 - 1e-5));
            }
        }
    }
}

#[test]
fn a_batch_that_grows_in_two_hundred_phases_lies_between_the_bounds_of_runs_of_them() {
    // Oracle: twenty phases of ten times the steps at the smallest and at the largest batch of ten, which are few enough to be composed
    // exactly. The inversion declines these settings, whose jumps are rare.
    let run = |phases: &[(f64, u64)]| DpEvent::Composed {
        events: phases.iter().map(|(batch, steps)| sampled(batch / 1e5, 1.0, *steps)).collect(),
    };
    let all: Vec<(f64, u64)> = (0..200).map(|index| (100.0 + f64::from(index), 2)).collect();
    let of_tens = |first: f64| -> Vec<(f64, u64)> {
        (0..20).map(|index| (first + 10.0 * f64::from(index), 20)).collect()
    };
    let ask =
        |phases: &[(f64, u64)]| epsilon(&run(phases), Delta::new(1e-6).unwrap(), AddOrRemoveOne).unwrap();
    let (bounds, most, least) = (ask(&all), ask(&of_tens(109.0)), ask(&of_tens(100.0)));
    assert!(bounds.lower >= least.lower && bounds.upper <= most.upper, "{bounds:?} {least:?} {most:?}");
    assert!(bounds.lower <= most.upper && bounds.upper >= least.lower, "{bounds:?} {least:?} {most:?}");
    let middle = ask(&of_tens(104.5));
    assert!(bounds.lower < middle.lower && bounds.upper > middle.upper, "{bounds:?} {middle:?}");
}
