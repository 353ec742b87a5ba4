//! Tests of the ways to clip: each moves the sum by at most the clip norm, and the step's budget
//! pays for the count that adaptive clipping releases.

use plan::{Adaptive, Automatic};

use super::*;

const AUTOMATIC: Clipping = Clipping::Automatic(Automatic { stability: 0.05 });
const ADAPTIVE: Adaptive = Adaptive { quantile: 0.5, learning_rate: 0.2, count_noise: 0.4 };

fn sum(clipping: Clipping, seed: u64, examples: &[Example], bound: f64) -> Vec<f64> {
    let (model, weights) = model(small(), seed);
    flatten(clipped_sum(&model, &weights, &lot(&model, examples, 4), bound, clipping))
}

/// Oracle: the definition, with one data set less one example.
#[test]
fn every_way_of_clipping_moves_the_sum_by_at_most_the_clip_norm() {
    for clipping in [AUTOMATIC, Clipping::PerLayer, Clipping::Adaptive(ADAPTIVE)] {
        for bound in [1e-3, 0.1, 1.0] {
            let whole = sum(clipping, 6, &ragged_lot(), bound);
            for removed in 0..ragged_lot().len() {
                let mut rest = ragged_lot();
                rest.remove(removed);
                let part = sum(clipping, 6, &rest, bound);
                let moved = norm(&whole.iter().zip(&part).map(|(a, b)| a - b).collect::<Vec<_>>());
                // Sums of 8 others are rounded to f32 in another grouping: 1e-6 of their length.
                assert!(moved <= bound * (1.0 + 1e-5), "{clipping:?} {removed}: {moved} > {bound}");
            }
        }
    }
}

#[test]
fn automatic_clipping_gives_every_gradient_the_length_of_its_formula() {
    let (model, weights) = model(small(), 6);
    for example in ragged_lot() {
        let length = norm(&single_gradient(&model, &weights, &example, &DEVICE));
        let got = norm(&sum(AUTOMATIC, 6, &[example], 3.0));
        let want = 3.0 * length / (length + 0.05);
        assert!(got <= 3.0 && (got - want).abs() <= 3e-5 * want, "{got} {want}");
    }
}

/// Oracle: the whole gradient of each example, cut into layers, each clipped by itself.
#[test]
fn layers_are_clipped_one_by_one_to_equal_parts_of_the_norm() {
    let (model, weights) = model(small(), 6);
    let layer = |name: &str| name.rsplit_once('.').unwrap().0.to_owned();
    let specs = weights.specs();
    let layers: std::collections::BTreeSet<String> = specs.iter().map(|spec| layer(&spec.name)).collect();
    let bound = 0.2;
    let share = bound / (layers.len() as f64).sqrt();
    let (mut want, mut scaled) = (vec![0.0; specs.iter().map(ParamSpec::len).sum()], 0);
    for example in ragged_lot() {
        let gradient = single_gradient(&model, &weights, &example, &DEVICE);
        for one in &layers {
            let mut places = Vec::new();
            let mut offset = 0;
            for spec in specs {
                if layer(&spec.name) == *one {
                    places.extend(offset..offset + spec.len());
                }
                offset += spec.len();
            }
            let length = norm(&places.iter().map(|&at| gradient[at]).collect::<Vec<_>>());
            let factor = (share / length).min(1.0);
            scaled += usize::from(factor < 1.0);
            places.into_iter().for_each(|at| want[at] += factor * gradient[at]);
        }
    }
    assert!(scaled > 20, "too few layers are clipped for the test to see it: {scaled}");
    assert!(relative_distance(&sum(Clipping::PerLayer, 6, &ragged_lot(), bound), &want) < 1e-4);
    assert!(relative_distance(&sum(Clipping::Flat, 6, &ragged_lot(), bound), &want) > 1e-2);
}

fn noisy_step(noise_multiplier: f64, l2_clip_norm: f64, expected_batch_size: f64, step: u64) -> DpStep {
    let noise = GaussianMechanism::new(noise_multiplier).unwrap();
    DpStep { noise, l2_clip_norm, expected_batch_size, learning_rate: 0.0, step }
}

/// Returns the gradient of one step and the clip norm that follows it.
fn step(examples: &[Example], number: u64, bound: f64, clipping: Clipping) -> (Vec<f64>, Option<f64>) {
    let (model, weights) = model(small(), 6);
    let step = noisy_step(0.6, bound, 1.0, number);
    let lot = lot(&model, examples, 4);
    let (gradient, next) = private_gradient(
        &model,
        &weights,
        &lot,
        &step,
        fast(clipping),
        &mut Carried::default(),
        &TestRng::from_seed(2),
    )
    .unwrap();
    (gradient.into_parts().into_iter().flat_map(to_host_f64).collect(), next)
}

/// The step's own event pays for the count: 1/σ² = 1/σ_Δ² + 1/(2σ_b)². Oracle: sample variances of
/// both noises.
#[test]
fn count_and_gradient_together_cost_the_steps_event() {
    let clipping = Clipping::Adaptive(ADAPTIVE);
    let (bound, steps) = (0.25, 800);
    let (mut square, mut elements, mut logs) = (0.0, 0.0, 0.0);
    for number in 0..steps {
        let (noise, next) = step(&[], number, bound, clipping);
        square += noise.iter().map(|z| (z / bound).powi(2)).sum::<f64>();
        elements += noise.len() as f64;
        // Without examples, the unclipped share is ½ plus the noise of the count.
        logs += (next.unwrap() / bound).ln().powi(2);
    }
    let of_gradient = square / elements;
    let of_count = logs / f64::from(steps as u32) / (0.2 * 0.2);
    let cost = 1.0 / of_gradient + 1.0 / (4.0 * of_count);
    // The count's variance has a relative standard error of √(2/800) = 0.05, and a share of 0.5625 in the cost.
    let tolerance = 4.9 * 0.05 * 0.5625;
    assert!((cost * 0.36 - 1.0).abs() < tolerance, "{cost}");
    // Σ_Δ itself is known to 4 digits: σ/√(1 − (0.6/0.8)²).
    assert!((of_gradient / (0.36 / 0.4375) - 1.0).abs() < 4.9 * (2.0 / elements).sqrt(), "{of_gradient}");
    assert!((of_count / 0.16 - 1.0).abs() < 4.9 * (2.0 / 800.0_f64).sqrt(), "{of_count}");
    assert!(
        (of_gradient / 0.36 - 1.0).abs() > 0.5,
        "noise of the whole event on the gradient would be too little"
    );
}

#[test]
fn one_example_moves_the_unclipped_count_by_a_half() {
    let (model, weights) = model(small(), 6);
    let halves = |examples: &[Example]| {
        clipped_sum(&model, &weights, &lot(&model, examples, 4), 0.3, Clipping::Flat).unclipped_halves
    };
    let whole = halves(&ragged_lot());
    for removed in 0..ragged_lot().len() {
        let mut rest = ragged_lot();
        rest.remove(removed);
        assert_eq!((whole - halves(&rest)).abs(), 1);
    }
}

/// The clip norm approaches the median of the norms from far above and from far below.
#[test]
fn the_clip_norm_follows_the_quantile() {
    let (model, weights) = model(small(), 6);
    // Two of nine examples have no target, so the median of all nine norms is the second of the
    // other seven.
    let median = median_norm(&model, &weights, &ragged_lot());
    for start in [100.0, 0.1] {
        let mut bound = start * median;
        for number in 0..100 {
            let step = noisy_step(0.5, bound, 9.0, number);
            let (examples, rng) = (ragged_lot(), TestRng::from_seed(2));
            let lot = lot(&model, &examples, 9);
            let adaptive = Clipping::Adaptive(Adaptive { count_noise: 0.05, ..ADAPTIVE });
            bound = private_gradient(
                &model,
                &weights,
                &lot,
                &step,
                fast(adaptive),
                &mut Carried::default(),
                &rng,
            )
            .unwrap()
            .1
            .unwrap();
        }
        assert!((0.4..2.5).contains(&(bound / median)), "from {start}: {bound} {median}");
    }
}

/// Oracle: a sum of known length under known noise.
#[test]
fn the_gradient_to_noise_estimate_is_unbiased_and_sees_noise_alone_as_none() {
    let specs = [network::nn::ParamSpec {
        name: "layer.w".into(),
        shape: vec![100_000],
        initial: network::nn::Initializer::Constant(0.0),
    }];
    let noise = GaussianMechanism::new(2.0).unwrap();
    let unit = noise.grid(L2Sensitivity::new(1.0).unwrap()).unwrap().unit();
    let estimate = |value: f64| {
        let mut sum = GridSum::zero(&specs, 1.0, unit).finish().unwrap();
        sum.parts[0].fill((value / unit) as i64);
        let release = NoisyAverage { noise, step: 0, divisor: 7.0 };
        let gradient: PrivateGradient<Flex> = release
            .of(&mut Carried::default(), sum.bounded().unwrap(), &TestRng::from_seed(3), &DEVICE)
            .unwrap();
        gradient.to_noise()
    };
    // Standard error √(2/n), and 2·(value/σ)/√n more from the product.
    assert!(estimate(0.0).abs() < 4.9 * (2.0 / 1e5_f64).sqrt(), "{}", estimate(0.0));
    assert!((estimate(1.0) - 0.25).abs() < 4.9 * (3.0 / 1e5_f64).sqrt(), "{}", estimate(1.0));
}
