use mechanisms::{GaussianMechanism, TestRng};
use serde_json::Value;

use super::*;
use crate::dp::{NoisyAverage, noise_alone};
use network::nn::Initializer;
use network::tensor::{Flex, FlexDevice, to_host_f64};

const DEVICE: FlexDevice = FlexDevice;

/// Weights, rates and gradients of the vectors, and the weights that the reference optimizers reach.
fn vectors() -> Value {
    serde_json::from_str(include_str!("../../tests/vectors/optimizers/expected.json")).unwrap()
}

fn figures(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn tensors(list: &Value) -> Vec<Tensor<Flex, 1>> {
    list.as_array().unwrap().iter().map(figures).map(|x| Tensor::from_floats(x.as_slice(), &DEVICE)).collect()
}

fn start(vectors: &Value) -> Weights<Flex> {
    let spec = |(index, shape): (usize, &Value)| ParamSpec {
        name: format!("layer.{index}"),
        shape: serde_json::from_value(shape.clone()).unwrap(),
        initial: Initializer::Constant(0.0),
    };
    let specs: Vec<ParamSpec> = vectors["shapes"].as_array().unwrap().iter().enumerate().map(spec).collect();
    let mut stream = mechanisms::PrivacyRng::stream(&TestRng::from_seed(0), mechanisms::Purpose::Data, 0, 0);
    let mut weights = Weights::initialize(specs.into(), &mut stream, &DEVICE);
    weights.replace(tensors(&vectors["start"]));
    weights
}

/// Returns the largest distance from the reference over all steps. At step `resumed` the state is
/// saved and loaded.
fn distance(settings: &plan::Optimizer, name: &str, resumed: usize) -> f64 {
    let vectors = vectors();
    let mut weights = start(&vectors);
    let mut optimizer = Optimizer::<Flex>::new(settings, weights.specs(), &DEVICE);
    let mut worst = 0.0_f64;
    for (step, gradient) in vectors["gradients"].as_array().unwrap().iter().enumerate() {
        if step == resumed {
            let saved = optimizer.state();
            let mut fresh = Optimizer::new(settings, weights.specs(), &DEVICE);
            fresh.restore(optimizer.steps(), saved);
            optimizer = fresh;
        }
        let gradient = OptimizerGradient { parts: tensors(gradient), noise_variance: 0.0 };
        optimizer.step(&mut weights, gradient, vectors["rates"][step].as_f64().unwrap());
        for (value, want) in weights.values().iter().zip(vectors[name][step].as_array().unwrap()) {
            let want = want.as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
            let far = to_host_f64(value.clone()).into_iter().zip(want).map(|(a, b)| (a - b).abs());
            worst = far.fold(worst, f64::max);
        }
    }
    worst
}

/// Weights are of order 1 and are added up six times in single precision.
const TOLERANCE: f64 = 5e-6;

fn parsed(text: &str) -> plan::Optimizer {
    serde_json::from_str(text).unwrap()
}

#[test]
fn adamw_and_momentum_follow_torch() {
    let adamw = parsed(r#"{ "adamw": { "beta2": 0.95, "epsilon": 1e-6, "weight_decay": 0.5 } }"#);
    let sgd = parsed(r#"{ "sgd": { "momentum": 0.9 } }"#);
    for resumed in [0, 3] {
        assert!(distance(&adamw, "adamw", resumed) < TOLERANCE);
        // Momentum carries the gradient of 50 forward, so the tolerance is a relative error of
        // single precision.
        assert!(distance(&sgd, "sgd", resumed) < 10.0 * TOLERANCE);
    }
    assert!(distance(&parsed(r#"{ "adamw": { "weight_decay": 0.5 } }"#), "adamw", 0) > 1e-3);
}

#[test]
fn adafactor_follows_transformers_and_lamb_follows_optax() {
    let adafactor = parsed(r#"{ "adafactor": { "weight_decay": 0.1 } }"#);
    let lamb = parsed(r#"{ "lamb": { "beta2": 0.95, "weight_decay": 0.5 } }"#);
    for resumed in [0, 3] {
        assert!(distance(&adafactor, "adafactor", resumed) < TOLERANCE);
        assert!(distance(&lamb, "lamb", resumed) < TOLERANCE);
    }
    let other = parsed(r#"{ "adafactor": { "weight_decay": 0.1, "clipping_threshold": 2.0 } }"#);
    assert!(distance(&other, "adafactor", 0) > 1e-3);
    assert!(distance(&parsed(r#"{ "lamb": { "beta2": 0.95 } }"#), "lamb", 0) > 1e-3);
}

/// Oracle: a gradient g with noise of variance Φ has E v = g² + Φ. With Φ subtracted, the step is
/// the rate itself; without, it is the rate times |g|/√(g² + Φ).
#[test]
fn the_bias_correction_takes_the_noises_variance_out_and_survives_a_save() {
    let specs = [ParamSpec { name: "w".into(), shape: vec![100, 200], initial: Initializer::Constant(0.0) }];
    let moved = |text: &str, saved: bool| {
        let settings = parsed(text);
        let mut stream =
            mechanisms::PrivacyRng::stream(&TestRng::from_seed(0), mechanisms::Purpose::Data, 0, 0);
        let mut weights = Weights::<Flex>::initialize(specs.to_vec().into(), &mut stream, &DEVICE);
        let mut optimizer = Optimizer::new(&settings, &specs, &DEVICE);
        // σC/B = 0.1 in every element, on a gradient of 0.1, over many steps, so that v is near its mean.
        for step in 0..400 {
            if saved && step == 200 {
                let state = optimizer.state();
                let steps = optimizer.steps();
                optimizer = Optimizer::new(&settings, &specs, &DEVICE);
                optimizer.restore(steps, state);
            }
            let release = NoisyAverage { noise: GaussianMechanism::new(1.0).unwrap(), step, divisor: 30.0 };
            let noise = noise_alone::<Flex>(&specs, 3.0, &release, &TestRng::from_seed(9), &DEVICE);
            let mut gradient = OptimizerGradient::from(noise);
            gradient.parts = gradient.parts.into_iter().map(|part| part + 0.1).collect();
            let before = weights.values()[0].clone();
            optimizer.step(&mut weights, gradient, 1.0);
            if step == 399 {
                return to_host_f64((before - weights.values()[0].clone()).mean())[0];
            }
        }
        unreachable!("the last step returns")
    };
    let plain = moved(r#"{ "adamw": { "beta2": 0.999 } }"#, false);
    let corrected = r#"{ "adamw": { "beta2": 0.999, "dp_bias_correction": { "floor": 1e-4 } } }"#;
    let (whole, resumed) = (moved(corrected, false), moved(corrected, true));
    // v is within about a tenth of 0.02, which moves the mean of 1/√(v − Φ) by less than 0.02; the mean over 20,000
    // elements of m has a standard error of 0.002.
    assert!((plain - 0.5_f64.sqrt()).abs() < 0.02, "{plain}");
    assert!((whole - 1.0).abs() < 0.03, "{whole}");
    assert_eq!(whole.to_bits(), resumed.to_bits());
}
