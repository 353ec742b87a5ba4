//! Cost of a private step beside the same step without privacy, in one process: medians of paired ratios.
//!
//! `cargo bench -p trainer-native --bench step [-- quickstart|reference]`

use std::io::Write;
use std::time::Instant;

use mechanisms::{PrivacyRng, Purpose, TestRng};
use serde_json::json;
use trainer_native::engine::{DpStep, Engine, Example, PlainStep};
use trainer_native::tensor::{Flex, FlexDevice};

struct Setting {
    name: &'static str,
    d_model: u32,
    layers: u32,
    heads: u32,
    context: usize,
    vocabulary: usize,
    lot: usize,
    physical_batch: usize,
}

const SETTINGS: [Setting; 2] = [
    Setting {
        name: "quickstart",
        d_model: 128,
        layers: 2,
        heads: 4,
        context: 64,
        vocabulary: 2048,
        lot: 256,
        physical_batch: 16,
    },
    Setting {
        name: "reference",
        d_model: 256,
        layers: 4,
        heads: 4,
        context: 128,
        vocabulary: 4096,
        lot: 16,
        physical_batch: 8,
    },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let mut out = std::io::stdout();
    for setting in
        SETTINGS.iter().filter(|setting| wanted.is_empty() || wanted.iter().any(|w| w == setting.name))
    {
        let [plain, private, ratio, processor] = measure(setting)?;
        let tokens = (setting.lot * setting.context) as f64 / private;
        writeln!(
            out,
            "{}: plain {plain:.3} s, private {private:.3} s ({tokens:.0} tokens/s), private/plain {ratio:.3} of elapsed \
             time, {processor:.3} of processor time",
            setting.name,
        )?;
    }
    Ok(())
}

/// Median seconds of a plain and of a private step, the median of their ratios pair by pair, and the ratio of all
/// processor time, which other programs on the machine disturb less.
fn measure(setting: &Setting) -> Result<[f64; 4], Box<dyn std::error::Error>> {
    let model = json!({
        "family": "gpt2", "d_model": setting.d_model, "layers": setting.layers, "heads": setting.heads,
        "d_ff": 4 * setting.d_model, "context": setting.context
    });
    let training = json!({
        "objective": "causal_lm", "expected_batch_size": setting.lot, "steps": 100, "l2_clip_norm": 1.0,
        "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
    });
    let rng = TestRng::from_seed(0);
    let mut init = rng.stream(Purpose::Initialization, 0, 0);
    let (model, training) = (serde_json::from_value(model)?, serde_json::from_value(training)?);
    let mut engine = Engine::<Flex>::new(
        &model,
        &training,
        setting.vocabulary,
        &mut init,
        setting.physical_batch,
        FlexDevice,
    )?;
    let mut stream = rng.stream(Purpose::Data, 0, 0);
    let mut window = || {
        (0..=setting.context).map(|_| stream.below(setting.vocabulary as u64) as u32).collect::<Vec<u32>>()
    };
    let lot: Vec<Example> = (0..setting.lot).map(|_| Example::causal(&window())).collect();
    let expected_batch_size = setting.lot as f64;
    let (mut plain, mut private, mut ratios, mut processor) = (Vec::new(), Vec::new(), Vec::new(), [0.0; 2]);
    for pair in 0..9 {
        let (start, busy) = (Instant::now(), processor_seconds());
        engine.plain_step(&lot, PlainStep { expected_batch_size, learning_rate: 1e-5 })?;
        let without = (start.elapsed().as_secs_f64(), processor_seconds() - busy);
        let step = DpStep {
            noise_multiplier: 1.0,
            l2_clip_norm: 1.0,
            expected_batch_size,
            learning_rate: 1e-5,
            step: pair,
        };
        let (start, busy) = (Instant::now(), processor_seconds());
        engine.dp_step(&lot, step, &rng)?;
        let with = (start.elapsed().as_secs_f64(), processor_seconds() - busy);
        if pair > 0 {
            plain.push(without.0);
            private.push(with.0);
            ratios.push(with.0 / without.0);
            processor[0] += without.1;
            processor[1] += with.1;
        }
    }
    Ok([median(plain), median(private), median(ratios), processor[1] / processor[0]])
}

/// Processor time of this process so far, from Linux's /proc; NaN elsewhere.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = |field: usize| {
        let after_name = stat.rsplit(')').next()?;
        after_name.split_whitespace().nth(field)?.parse::<f64>().ok()
    };
    // User and system time, in hundredths of a second.
    ticks(11).zip(ticks(12)).map_or(f64::NAN, |(user, system)| (user + system) / 100.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
