//! Counts the kernels that a step launches on a graphics device. The test is a process of its own, because the log of launches is a setting
//! of the process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use mechanisms::{GaussianMechanism, PrivacyRng, Purpose, TestRng};
use network::Example;
use network::device::check;
use network::tensor::{Wgpu, WgpuDevice};
use plan::Arithmetic;
use serde_json::json;
use training::dp::DpStep;
use training::train::{PlainStep, Trainer};

const LOG: &str = "launches.log";

/// Rows of a micro-batch.
const ROWS: usize = 4;

/// A model of the GPT-2 family.
struct Model {
    trainer: Trainer<Wgpu>,
    step: u64,
}

impl Model {
    fn with(layers: u32) -> Self {
        let model = json!({ "family": "gpt2", "d_model": 32, "layers": layers, "heads": 2, "d_ff": 64, "context": 16 });
        let training = json!({
            "objective": "causal_lm", "expected_batch_size": 8, "steps": 100, "l2_clip_norm": 1.0,
            "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
        });
        let trainer = Trainer::new(
            Vec::new(),
            &serde_json::from_value(model).unwrap(),
            &serde_json::from_value(training).unwrap(),
            64,
            &mut TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0),
            ROWS,
            WgpuDevice::default(),
        );
        Self { trainer: trainer.unwrap().arithmetic(Arithmetic::Fast), step: 0 }
    }

    /// Returns the number of kernels of a step on so many full micro-batches.
    fn launches(&mut self, micro_batches: usize, private: bool) -> usize {
        let example = |at: usize| Example::causal(&[(at % 60) as u32; 17]);
        let lot: Vec<Example> = (0..micro_batches * ROWS).map(example).collect();
        // The first step of a shape chooses between kernels by trying them.
        let counts = [(); 2].map(|()| {
            let before = logged();
            let (expected_batch_size, learning_rate) = (8.0, 1e-3);
            if private {
                let noise = GaussianMechanism::new(1.0).unwrap();
                let step =
                    DpStep { step: self.step, noise, l2_clip_norm: 1.0, expected_batch_size, learning_rate };
                self.trainer.dp_step(&lot, step, &TestRng::from_seed(1)).unwrap();
            } else {
                let step = PlainStep { expected_batch_size, learning_rate };
                self.trainer.plain_step(&lot, step).unwrap();
            }
            self.step += 1;
            check::<Wgpu>(&WgpuDevice::default()).unwrap();
            logged() - before
        });
        counts[1]
    }
}

/// Returns the number of launches in the log, as soon as the thread that writes it rests.
fn logged() -> usize {
    let count = || {
        let log = std::fs::read_to_string(Path::new(LOG)).unwrap_or_default();
        log.lines().filter(|line| line.starts_with("Executing")).count()
    };
    let mut counted = count();
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = count();
        if now == counted {
            return now;
        }
        counted = now;
    }
}

/// Kernels of a micro-batch beside those of its blocks, of a micro-batch for each block, and of a step's noise and optimizer for each block.
/// A step may launch fewer; each further one takes microseconds on a device.
const AT_MOST: [usize; 3] = [77, 215, 168];

/// Clipping launches kernels for each micro-batch in proportion to the blocks; the optimizer launches its own once a step, however many
/// examples it has.
#[test]
fn a_step_launches_a_bounded_number_of_kernels() {
    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let settings = format!("[profiling]\nlogger = {{ level = \"minimal\", file = \"{LOG}\" }}\n");
    std::fs::write("cubecl.toml", settings).unwrap();
    let counts = [1, 2].map(|layers| {
        let mut model = Model::with(layers);
        [(1, false), (1, true), (2, true), (3, true)].map(|(parts, private)| model.launches(parts, private))
    });
    let [one, two] = counts;
    let of_part = [one, two].map(|[_, one, two, three]| {
        assert_eq!(two - one, three - two, "{counts:?}");
        two - one
    });
    let of_block = of_part[1] - of_part[0];
    let once_of_block = two[1] - one[1] - of_block;
    for (found, most) in [of_part[0] - of_block, of_block, once_of_block].into_iter().zip(AT_MOST) {
        assert!(found <= most, "{found} launches in place of {most}: {counts:?}");
    }
    // Privacy adds a quarter at the most.
    assert!(one[0] > 0 && 4 * one[1] <= 5 * one[0] && 4 * two[1] <= 5 * two[0], "{counts:?}");
}
