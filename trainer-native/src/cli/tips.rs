//! Tells what to give in place of a file without its option, and in place of arguments that other trainers have.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use training::run::shell_word;

/// Arguments of other trainers. A plan holds the settings that they set.
pub(super) const TIPS: ::cli::Tips = &[
    (
        &["epochs", "num-epochs", "num-train-epochs", "max-steps"],
        "set training.steps in the plan, or give `init` --steps: E passes over N units in batches of B are E·N/B steps",
    ),
    (&["target-epsilon", "eps"], "set privacy.epsilon in the plan, or give `init` --epsilon"),
    (&["target-delta"], "set privacy.delta in the plan, or give `init` --delta"),
    (
        &["sigma", "noise-multiplier", "noise"],
        "set privacy.noise_multipliers in the plan in place of privacy.epsilon",
    ),
    (
        &["max-grad-norm", "clip", "clipping-norm", "l2-norm-clip", "l2-clip-norm"],
        "set training.l2_clip_norm in the plan",
    ),
    (
        &[
            "lot-size",
            "train-batch-size",
            "per-device-train-batch-size",
            "per-gpu-train-batch-size",
            "virtual-batch-size",
        ],
        "set training.expected_batch_size in the plan, or give `init` --batch-size",
    ),
    (&["gradient-accumulation-steps", "max-physical-batch-size", "microbatch-size"], "give --physical-batch"),
    (
        &["lr", "learning-rate", "learningrate"],
        "set training.learning_rate.peak in the plan; `rehearse` compares several on public text",
    ),
    (
        &["optimizer", "optim", "weight-decay", "warmup-steps"],
        "set training.optimizer and training.learning_rate in the plan",
    ),
    (
        &["lora", "lora-r", "lora-rank", "r", "use-lora", "peft"],
        "set model.trainable to {\"lora\": …} in the plan",
    ),
    (
        &["accountant", "accounting", "prv", "rdp", "pld"],
        "ε is always certified by the project's accountant, which has a command line: `accountant epsilon`",
    ),
    (
        &["model", "model-name", "model-name-or-path", "base-model", "pretrained"],
        "give `init` --checkpoint DIR, a folder of transformers",
    ),
    (
        &["dataset", "data", "train-file", "input", "file", "corpus", "dataset-name"],
        "`trainer-native init FILE` writes a plan for a text",
    ),
    (&["output", "output-dir", "save-dir", "logging-dir"], "name the run's folder with --out DIR"),
    (&["secure-mode", "secure-rng"], "noise is always drawn from the system's secure random numbers"),
    (&["seed"], "noise that may be published has no seed; --test-key N repeats a run that is NOT PRIVATE"),
    (&["gpu", "cuda", "use-cuda", "fp16", "bf16", "no-cuda"], "give --device cpu, wgpu or cuda"),
    (&["max-length", "max-seq-length", "block-size", "seq-len", "context"], "set model.context in the plan"),
    (&["resume-from-checkpoint", "continue"], "give --resume with --out DIR"),
    (
        &["test", "evaluate", "evaluation"],
        "`trainer-native eval RUN --text FILE` measures a finished run on public text",
    ),
    (&["run", "fit", "start"], "to carry out a plan, give --plan PLAN.json"),
    (&["tokenize", "tokenizer", "vocab"], "`dp-tokenizer` makes and uses vocabularies"),
    (&["merge", "push", "save"], "`trainer-native export RUN --out DIR` writes a model for others"),
    (&["sample", "chat", "infer", "inference"], "`trainer-native generate RUN` writes text"),
    (
        &["plan"],
        "`trainer-native init FILE` writes a plan, and `trainer-native --plan PLAN.json` carries it out",
    ),
];

/// Returns the refusal of a file in place of a command or an option.
pub(super) fn of_file(error: &clap::Error) -> Option<String> {
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let is_command = error.get(ContextKind::InvalidSubcommand);
    let given = match is_command.or_else(|| error.get(ContextKind::InvalidArg)) {
        Some(ContextValue::String(given)) if !given.starts_with('-') => given,
        _ => return None,
    };
    let word = shell_word(Path::new(given));
    if given.ends_with(".json") {
        Some(format!("\"{given}\" is not a command; to carry out a plan, run: trainer-native --plan {word}"))
    } else if is_command.is_some() && Path::new(given).is_file() {
        Some(format!(
            "\"{given}\" is not a command; to make a plan for a text, run: trainer-native init {word}"
        ))
    } else if is_command.is_some() && Path::new(given).is_dir() {
        Some(format!("\"{given}\" is not a command; to verify a run, run: trainer-native verify {word}"))
    } else {
        None
    }
}
