//! Writes the data card of synthetic records.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use plan::Objective;
use serde_json::Value;

use super::state::State;
use training::RunError;
use training::store::certificate::Certificate;

/// Largest number of prompts that are listed.
const MAX_LISTED: usize = 50;

/// Figures of the records. They follow from the model's output and cost no privacy.
pub(super) struct Statistics {
    records: usize,
    distinct: usize,
    empty: usize,
    /// Number of characters of each text, in ascending order.
    lengths: Vec<usize>,
    /// Number of records of each prompt; none if there are too many to list.
    prompts: BTreeMap<String, usize>,
}

impl Statistics {
    pub fn read(path: &Path, plan: &plan::Plan) -> Result<Self, RunError> {
        let failed = |error: std::io::Error| RunError::storage("read", path, &error);
        let is_answer = plan.training().objective == Objective::TextToText;
        let (prompt, text) = match is_answer {
            true => (Some(plan.data().text_field.as_str()), plan.data().target_field()),
            false => (None, plan.data().text_field.as_str()),
        };
        let (mut lengths, mut prompts, mut seen) = (Vec::new(), BTreeMap::new(), HashSet::new());
        for line in BufReader::new(File::open(path).map_err(failed)?).lines() {
            let record: Value = serde_json::from_str(&line.map_err(failed)?)
                .map_err(|error| RunError::Refused(format!("{}: {error}", path.display())))?;
            // Of a conversation, the model wrote the last message.
            let text = match value(&record, text).as_array().and_then(|messages| messages.last()) {
                Some(message) => message["content"].as_str().unwrap_or_default(),
                None => field(&record, text),
            };
            lengths.push(text.chars().count());
            seen.insert(durable::sha256_hex(text.as_bytes()));
            if let Some(prompt) = prompt.filter(|_| prompts.len() <= MAX_LISTED) {
                *prompts.entry(field(&record, prompt).to_owned()).or_insert(0) += 1;
            }
        }
        lengths.sort_unstable();
        if prompts.len() > MAX_LISTED {
            prompts.clear();
        }
        let empty = lengths.iter().take_while(|length| **length == 0).count();
        Ok(Self { records: lengths.len(), distinct: seen.len(), empty, lengths, prompts })
    }

    /// Returns the length that this share of the texts does not exceed.
    fn quantile(&self, share: f64) -> usize {
        let at = (share * self.lengths.len() as f64) as usize;
        self.lengths.get(at.min(self.lengths.len().saturating_sub(1))).copied().unwrap_or(0)
    }
}

fn value<'a>(record: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(record, |value, name| &value[name])
}

fn field<'a>(record: &'a Value, path: &str) -> &'a str {
    value(record, path).as_str().unwrap_or_default()
}

/// Returns the card in the form of data hubs. It begins with what the records are and whom the
/// guarantee protects.
pub(super) fn text(c: &Certificate, state: &State, statistics: &Statistics, plan: &plan::Plan) -> String {
    let title = c.name.replace(['\n', '\r'], " ");
    let tags = if c.private { "\n- differential-privacy" } else { "" };
    let mut card = format!("---\ntags:\n- synthetic{tags}\n---\n\n# Synthetic text of {title}\n\n");
    card.push_str("No record was written by a person: a language model wrote all of them. ");
    card.push_str(c.summary.as_ref().unwrap_or(&c.guarantee.statement));
    card.push_str(
        "\n\nDrawing records from the model is post-processing: the guarantee of the model holds for any number of them, and they \
         spend no ε. It holds for the text that trained the model, not for the prompts, which must be public.\n",
    );
    card.push_str(&c.promise_in_markdown());
    card.push_str(&format!(
        "\n## Records\n\n| | |\n|---|---|\n| records | {} |\n| different texts | {} |\n| empty texts | {} |\n| characters of a text | \
         median {}, nine in ten at most {}, all at most {} |\n",
        statistics.records,
        statistics.distinct,
        statistics.empty,
        statistics.quantile(0.5),
        statistics.quantile(0.9),
        statistics.quantile(1.0)
    ));
    let limit = state.decoding["tokens"].to_string();
    card.push_str(&format!("| longest text | {limit} tokens; a longer one is cut |\n"));
    card.push_str(&format!("| drawn with | `{}`, seed {} |\n", state.decoding, state.seed));
    card.push_str(&format!("| model | SHA-256 `{}` |\n", state.model));
    if !statistics.prompts.is_empty() {
        card.push_str(&format!("\n| {} | records |\n|---|---|\n", plan.data().text_field));
        for (prompt, records) in &statistics.prompts {
            let prompt = prompt.replace('|', "\\|").replace(['\n', '\r'], " ");
            card.push_str(&format!("| {prompt} | {records} |\n"));
        }
    }
    card.push_str("\n## What is not protected\n\n");
    for item in &c.not_protected {
        card.push_str(&format!("- {item}\n"));
    }
    card.push_str(
        "\nThe certificate of the model lies beside this card. `trainer-native verify` on the run, or on an export of it, recomputes \
         its ε.\n",
    );
    card
}
