//! Suggests fixes for common mistakes.

/// Returns the fix for a field that does not exist.
pub(crate) fn for_field(path: &str, name: &str) -> Option<String> {
    let fix = match (path, name) {
        ("", "batch_size" | "steps" | "epochs") => {
            "training.steps and training.expected_batch_size set these"
        }
        ("training", "batch_size" | "lot_size") => "did you mean \"expected_batch_size\"?",
        ("training", "noise_multiplier" | "sigma") | ("privacy", "noise_multiplier" | "sigma") => {
            "write it as privacy.noise_multipliers: {\"training\": …}, or give privacy.epsilon alone"
        }
        ("training", "lr") => "did you mean \"learning_rate\"?",
        ("privacy", "eps" | "target_epsilon") => "did you mean \"epsilon\"?",
        ("training", "physical_batch" | "microbatch" | "device") => "move it to performance",
        _ => return None,
    };
    Some(fix.to_owned())
}

/// Returns the fix for a choice that does not exist.
pub(crate) fn for_variant(path: &str, name: &str) -> Option<String> {
    let fix = match (path, name) {
        ("privacy.sampling", "shuffled" | "shuffling" | "deterministic" | "epochs") => {
            "did you mean \"shuffle\"? its ε is that of full participation; \"poisson\" has the amplified one"
        }
        ("privacy.relation", "add_remove" | "add_or_remove" | "unbounded") => {
            "did you mean \"add_or_remove_one\"?"
        }
        ("privacy.relation", "replace" | "substitute" | "swap" | "bounded") => {
            "did you mean \"replace_one\"?"
        }
        ("performance.precision", "f16" | "fp16" | "float16") => {
            "use \"bf16\", whose range is that of 32 bits, or \"f32\""
        }
        ("performance.precision", "bfloat16") => "did you mean \"bf16\"?",
        _ => return None,
    };
    Some(fix.to_owned())
}

/// Returns the fix for a number out of range.
pub(crate) fn for_range(path: &str) -> Option<String> {
    let fix = match path {
        "privacy.noise_multipliers.training" | "privacy.noise_multipliers.tokenizer" => {
            "give a larger number, or leave out privacy.noise_multipliers and give privacy.epsilon"
        }
        "privacy.epsilon" => "common values are 1 to 10",
        "privacy.delta" => "give a probability far below 1 / units, for example 1e-6",
        "data.units" => "declare how many units the data has, at least 1",
        "tokenizer.train.vocab_size" => {
            "256 byte tokens and the special ones need 259 places, so ask for 300 or more"
        }
        _ => return None,
    };
    Some(fix.to_owned())
}
