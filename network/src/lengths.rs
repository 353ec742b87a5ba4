//! The lengths of inputs and targets that an objective needs.

/// Share of the tokens that is predicted in masked language modelling.
pub const MASKED_SHARE: f64 = 0.15;

/// Share of the tokens that is cut out in span corruption.
const NOISE_DENSITY: f64 = 0.15;
/// Mean length of a run that is cut out.
const MEAN_SPAN: f64 = 3.0;

/// Returns the largest number of tokens that masked language modelling predicts in `context` tokens.
#[must_use]
pub fn predictions(context: usize) -> usize {
    (context as f64 * MASKED_SHARE).ceil() as usize
}

/// Lengths of span corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptionLengths {
    /// Tokens of a window.
    pub window: usize,
    /// Tokens of the encoder's input, the end-of-text token included.
    pub input: usize,
    /// Targets, the end-of-text token included.
    pub targets: usize,
    /// Number of runs that are cut out.
    pub spans: usize,
}

/// Returns the lengths for the longest window whose corrupted form fits into `context`.
#[must_use]
pub fn corruption_lengths(context: usize) -> CorruptionLengths {
    let mut longest = corrupted(2);
    while corrupted(longest.window + 1).input <= context {
        longest = corrupted(longest.window + 1);
    }
    longest
}

/// Returns the longest input of the decoder.
#[must_use]
pub fn decoder_context(objective: plan::Objective, model: &plan::Model) -> usize {
    match (objective, model.decoder_context) {
        (plan::Objective::SpanCorruption, _) => corruption_lengths(model.context as usize).targets,
        // The decoder reads what the encoder reads.
        (objective, _) if objective.has_labels() => model.context as usize,
        (_, length) => length.unwrap_or(model.context) as usize,
    }
}

/// Returns the lengths for a window of `window` tokens, at least 2.
#[must_use]
pub fn corrupted(window: usize) -> CorruptionLengths {
    let noise = ((window as f64 * NOISE_DENSITY).round() as usize).clamp(1, window - 1);
    let spans = ((noise as f64 / MEAN_SPAN).round() as usize).clamp(1, window - noise);
    CorruptionLengths { window, input: window - noise + spans + 1, targets: noise + spans + 1, spans }
}
