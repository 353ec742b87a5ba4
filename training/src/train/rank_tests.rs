//! A model that several ranks train together.

use mechanisms::{GaussianMechanism, Purpose, TestRng};
use serde_json::{Value, json};

use super::*;
use crate::ranks::threads::{messages, on_ranks};
use network::tensor::{Flex, FlexDevice};
use network::tensor_file::Values;

fn trainer(training: &Value, ranks: &Ranks) -> Trainer<Flex> {
    let model =
        json!({ "family": "gpt2", "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 10 });
    let (model, training) =
        (serde_json::from_value(model).unwrap(), serde_json::from_value(training.clone()).unwrap());
    let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
    Trainer::new(Vec::new(), &model, &training, 40, &mut init, 2, FlexDevice).unwrap().on_ranks(ranks)
}

/// What a rank has after some steps.
struct Trained {
    /// The state, on the first rank.
    state: Vec<NamedTensor>,
    weights: Vec<NamedTensor>,
    to_noise: Option<f64>,
    /// Number of values of the optimizer's state.
    kept: usize,
}

/// Takes steps `from..to`, on lots of 0 to 11 examples. Only the first rank reads a saved state.
fn train(training: &Value, saved: Option<&Vec<NamedTensor>>, [from, to]: [u64; 2], ranks: &Ranks) -> Trained {
    let mut trainer = trainer(training, ranks);
    if let Some(saved) = saved {
        trainer.load_state_of_first(ranks.is_first().then(|| saved.clone()), ranks, true).unwrap();
    }
    for step in from..to {
        let mut stream = TestRng::from_seed(1).stream(Purpose::Data, step, 0);
        let mut window = || (0..1 + stream.below(10)).map(|_| stream.below(40) as u32).collect::<Vec<_>>();
        let share = ranks.share(2);
        let lot: Vec<Example> = (0..(step * 5) % 12).map(|_| Example::causal(&window())).collect();
        let own: Vec<Example> =
            lot.into_iter().enumerate().filter(|(place, _)| share.has(*place)).map(|(_, own)| own).collect();
        let noise = GaussianMechanism::new(0.7).unwrap();
        let step = DpStep { noise, l2_clip_norm: 0.5, expected_batch_size: 6.0, learning_rate: 1e-2, step };
        trainer.dp_step(&own, step, &TestRng::from_seed(2)).unwrap();
    }
    let kept = trainer.optimizer.state().iter().map(|tensor| tensor.dims()[0]).sum();
    Trained {
        state: trainer.state(),
        weights: trainer.trained(),
        to_noise: trainer.gradient_to_noise(),
        kept,
    }
}

fn settings(optimizer: Value, clipping: Value) -> Value {
    json!({
        "objective": "causal_lm", "expected_batch_size": 6, "steps": 9, "l2_clip_norm": 1.0, "optimizer": optimizer,
        "clipping": clipping, "learning_rate": { "peak": 1e-3 }
    })
}

/// Oracle: one process. The same state results from a run that continues with another number of
/// ranks.
#[test]
fn weights_state_and_figures_do_not_depend_on_the_number_of_ranks() {
    let adaptive = json!({ "adaptive": { "count_noise": 1.0 } });
    for (optimizer, clipping) in [
        (json!({ "adamw": { "dp_bias_correction": { "floor": 1e-8 } } }), adaptive),
        (json!({ "sgd": { "momentum": 0.9 } }), json!("per_layer")),
        (json!({ "adafactor": {} }), json!("flat")),
        (json!({ "lamb": {} }), json!("flat")),
    ] {
        let training = settings(optimizer.clone(), clipping);
        let whole = train(&training, None, [0, 7], &Ranks::alone());
        for (before, after) in [(2, 2), (3, 1), (1, 4), (5, 2)] {
            let begun = on_ranks(before, |ranks| train(&training, None, [0, 3], ranks).state);
            assert!(begun[1..].iter().all(Vec::is_empty));
            let ended = on_ranks(after, |ranks| train(&training, Some(&begun[0]), [3, 7], ranks));
            assert!(ended[0].state == whole.state, "{optimizer}: {before} ranks, then {after}");
            for rank in &ended {
                assert!(rank.weights == whole.weights, "{optimizer}: {before} ranks, then {after}");
                assert_eq!(rank.to_noise, whole.to_noise);
            }
        }
    }
}

/// A full disk ends a checkpoint after some of its tensors. The other ranks must not wait for the rest.
#[test]
fn ranks_send_the_tensors_that_the_first_one_asks_for_and_no_others() {
    let training = settings(json!({ "adamw": {} }), json!("flat"));
    let found = on_ranks(3, |ranks| {
        let trainer = trainer(&training, ranks);
        let before = messages();
        let state = trainer.shared_state(true);
        if ranks.is_first() {
            state.receive(|tensors| {
                let of_optimizer = tensors.iter().filter(|tensor| tensor.name.starts_with("optimizer.first"));
                of_optimizer.take(2).for_each(|tensor| drop(tensor.data.on_host()));
            });
        } else {
            state.send();
        }
        messages() - before
    });
    // Two requests with their answers, and the end.
    assert_eq!(found, [5; 3]);
}

/// After the last step the optimizer's tensors are of no use. Two thirds of the state of AdamW are these.
#[test]
fn the_state_after_the_last_step_has_the_weights_alone() {
    let mut training = settings(json!({ "adamw": {} }), json!("flat"));
    training["averaging"] = json!({ "tail": 0.5 });
    let whole = train(&training, None, [0, 7], &Ranks::alone());
    let mut trainer = trainer(&training, &Ranks::alone());
    trainer.load_state(whole.state.clone()).unwrap();
    let last = trainer.copied_state(false);
    let values = |state: &[NamedTensor]| state.iter().map(|tensor| tensor.data.len()).sum::<usize>();
    // Weights and their averages, beside two moments.
    assert_eq!(2 * (values(&last) - 2), values(&whole.state) - 2);
    for state in [&last, &whole.state] {
        let loaded = on_ranks(2, |ranks| {
            let mut ended = self::trainer(&training, ranks);
            ended.load_state_of_first(ranks.is_first().then(|| state.clone()), ranks, false).unwrap();
            ended.trained()
        });
        assert!(loaded.iter().all(|weights| *weights == whole.weights));
    }
    assert!(trainer.load_state(last).unwrap_err().to_string().contains("is missing"));
}

/// All ranks get an error if the first one's state does not fit.
#[test]
fn a_state_that_does_not_fit_is_refused_on_all_ranks() {
    let training = settings(json!({ "adamw": {} }), json!("flat"));
    let state = train(&training, None, [0, 1], &Ranks::alone()).state;
    let refused = on_ranks(3, |ranks| {
        let others: Vec<NamedTensor> = state[1..].to_vec();
        let own = ranks.is_first().then_some(others);
        trainer(&training, ranks).load_state_of_first(own, ranks, true).unwrap_err().to_string()
    });
    assert!(
        refused[0].contains("is missing") && refused[1..].iter().all(|error| error.contains("first rank"))
    );
}

#[test]
fn a_rank_keeps_its_share_of_the_optimizers_state() {
    for (optimizer, slack) in [
        (json!({ "adamw": {} }), 2),
        (json!({ "sgd": {} }), 1),
        // Slack: half a block of the parameters of each of ten shapes at either end, where a block
        // is a row of a matrix or a vector of up to 48 elements, and there are two moments of each.
        (json!({ "lamb": {} }), 2 * (48 + 32 + 16 + 4 * 48)),
        // Slack: the same for vectors, half a row, and an element of the columns of each of seven
        // matrices.
        (json!({ "adafactor": {} }), 48 + 32 + 16 + 4 + 7),
    ] {
        let training = settings(optimizer.clone(), json!("flat"));
        let whole = train(&training, None, [0, 1], &Ranks::alone()).kept;
        for count in [2, 4] {
            let kept: Vec<usize> = on_ranks(count, |ranks| train(&training, None, [0, 1], ranks).kept);
            let (all, most) = (kept.iter().sum::<usize>(), kept.iter().copied().max().unwrap());
            assert!((whole..=whole + count * slack).contains(&all), "{optimizer}: {kept:?} of {whole}");
            assert!(most <= whole / count + slack, "{optimizer}: {kept:?} of {whole}");
        }
    }
}

/// The parameters of each shape are cut separately, and no two ranks hold the same columns, so each
/// of P ranks holds 1/P of the state of GPT-2.
#[test]
fn adafactors_state_of_gpt2_small_falls_as_one_over_the_number_of_ranks() {
    let spec = |shape: &[usize]| ParamSpec {
        name: String::new(),
        shape: shape.to_vec(),
        initial: network::nn::Initializer::Constant(0.0),
    };
    let block = [
        &[768][..],
        &[768],
        &[768, 2304],
        &[2304],
        &[768, 768],
        &[768],
        &[768],
        &[768],
        &[768, 3072],
        &[3072],
    ];
    let block = block.into_iter().chain([&[3072, 768][..], &[768]]);
    let tables = [&[50257, 768][..], &[1024, 768]].into_iter();
    let params: Vec<ParamSpec> = tables.chain(std::iter::repeat_n(block, 12).flatten()).map(spec).collect();
    let optimizer: plan::Optimizer = serde_json::from_value(json!({ "adafactor": {} })).unwrap();
    let kept = |ranks: &Ranks| {
        let whole = Optimizer::<Flex>::new(&optimizer, &params, &FlexDevice);
        let shards = Shards::new(ranks.clone(), params.clone().into(), whole.grain());
        let elements: usize = shards.specs().iter().map(ParamSpec::len).sum();
        let state = whole.of_pieces(&shards, &FlexDevice).state();
        (state.iter().map(|tensor| tensor.dims()[0]).sum::<usize>(), elements)
    };
    let (whole, elements) = kept(&Ranks::alone());
    for (count, excess) in [(2, 1.01), (4, 1.02), (16, 1.15)] {
        let ranks = on_ranks(count, kept);
        assert_eq!(ranks.iter().map(|rank| rank.1).sum::<usize>(), elements);
        let most =
            |of: fn(&(usize, usize)) -> usize| ranks.iter().map(of).max().unwrap() as f64 * count as f64;
        assert!(most(|rank| rank.0) <= whole as f64 * excess, "{count}: {ranks:?} of {whole}");
        assert!(most(|rank| rank.1) <= elements as f64 * excess, "{count}: {ranks:?} of {elements}");
        assert!(ranks.iter().map(|rank| rank.0).sum::<usize>() <= whole + 20 * 12 * count);
    }
}
