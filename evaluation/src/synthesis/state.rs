//! The state of a synthesis: it lets an interrupted synthesis continue, and keeps others out of the
//! same text.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Synthesis;
use training::RunError;
use training::infer::DecodingStrategy;

/// The settings that determine each record.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    /// Digest of the model.
    pub model: String,
    /// Digest of the prompts and their weights.
    pub prompts: String,
    /// The way in which tokens are chosen.
    pub decoding: Value,
    /// Seed of all random choices.
    pub seed: u64,
}

impl State {
    /// Records the settings of this synthesis, or checks that an earlier process recorded the same.
    /// A seed that is not given stays unchanged.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the file belongs to another synthesis.
    pub(crate) fn begin_or_resume(
        path: &Path,
        synthesis: &Synthesis,
        model: String,
        drawn_seed: u64,
    ) -> Result<Self, RunError> {
        let earlier: Option<Self> = durable::read_json(path)?;
        let given = synthesis.options.seed;
        let seed = given.or(earlier.as_ref().map(|earlier| earlier.seed)).unwrap_or(drawn_seed);
        let prompts = json!(synthesis.prompts).to_string();
        let prompts = durable::sha256_hex(prompts.as_bytes());
        let state = Self { model, prompts, decoding: decoding(synthesis), seed };
        match earlier {
            Some(earlier) if earlier == state => Ok(state),
            Some(_) => Err(RunError::Refused(format!(
                "{}: other records were begun there, of another model, other prompts or other options; give the same as then, \
                 remove that file and the .partial beside it, or choose another --out",
                path.display()
            ))),
            None => {
                let bytes =
                    serde_json::to_vec_pretty(&state).map_err(|error| RunError::Failed(error.to_string()))?;
                durable::write_atomic(path, &bytes)?;
                Ok(state)
            }
        }
    }
}

fn decoding(synthesis: &Synthesis) -> Value {
    let options = &synthesis.options;
    let sampling = match options.strategy {
        DecodingStrategy::Sample(how) => {
            json!({ "temperature": how.temperature, "top_k": how.top_k, "top_p": how.top_p, "min_p": how.min_p })
        }
        DecodingStrategy::Search(_) => Value::Null,
    };
    json!({
        "tokens": options.tokens,
        "min_tokens": options.min_tokens,
        "no_repeat_ngram": options.no_repeat_ngram,
        "repetition_penalty": options.repetition_penalty,
        "stop": options.stops,
        "sampling": sampling,
    })
}
