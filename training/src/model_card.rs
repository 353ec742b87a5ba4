//! Writes the model card of an export. The card follows from the certificate, the plan, the figures on public text and
//! the licence, so it can be verified too.

use std::path::Path;

use plan::{Initial, Objective, Plan, Tokenizer};

use crate::infer::Evaluation;
use crate::store::certificate::Certificate;

/// Name of the card's file.
pub const NAME: &str = "README.md";

/// The licence of a model whose owner stated none, in the words of model hubs.
pub const NO_LICENCE: &str = "unknown";

const LICENCE_FIELD: &str = "license: ";

/// Returns whether this may be the licence of a card: an identifier such as `apache-2.0`.
#[must_use]
pub fn is_licence(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(is_plain)
}

/// Returns the licence that a card states.
pub(crate) fn licence_in(card: &str) -> Option<&str> {
    card.lines().find_map(|line| line.strip_prefix(LICENCE_FIELD)).filter(|name| is_licence(name))
}

/// Writes a model card in the form of model hubs. It begins with the guarantee and its limits.
#[must_use]
pub fn render(c: &Certificate, plan: &Plan, evaluation: Option<&Evaluation>, licence: &str) -> String {
    let title = c.name.replace(['\n', '\r'], " ");
    let mut card = format!("{}\n# {title}\n\n{}\n", front_matter(c, plan, licence), c.promise());
    card.push_str(&c.promise_in_markdown());
    card.push_str(&format!("\n## Model and data\n\n{}", made_from(plan)));
    if licence == NO_LICENCE {
        card.push_str("- licence: none was stated; `trainer-native export --licence ID` states one\n");
    }
    if let Some(evaluation) = evaluation {
        card.push_str(&format!(
            "\n## Scores\n\nOn held-out public text: {}.\n",
            evaluation.to_string().replace('\n', "; ")
        ));
        if let Some(warning) = evaluation.warning() {
            card.push_str(&format!("\n**Warning: {warning}.**\n"));
        }
    }
    card.push_str("\n## What is not protected\n\n");
    for item in &c.not_protected {
        card.push_str(&format!("- {item}\n"));
    }
    card.push_str(
        "\n`certificate.md` has every parameter and condition. `trainer-native verify` on this folder recomputes ε from the plan \
         and the ledger, compares every file with the digests on the ledger, also weights in 16 bits, and lists every file that \
         no digest covers.\n",
    );
    card
}

/// Writes the fields that model hubs read.
fn front_matter(c: &Certificate, plan: &Plan, licence: &str) -> String {
    let library = match plan.model().pooling {
        Some(plan::Pooling::Mean) => "library_name: sentence-transformers\n",
        None if plan.model().family.is_in_transformers() => "library_name: transformers\n",
        None => "",
    };
    let base = base_model(plan).map(|name| format!("base_model: {}\n", serde_json::Value::from(name)));
    let task = match plan.training().objective {
        Objective::CausalLm | Objective::Chat => "text-generation",
        Objective::SpanCorruption | Objective::PrefixLm | Objective::TextToText => "text2text-generation",
        Objective::MaskedLm | Objective::MaskedLmNextSentence => "fill-mask",
        Objective::SequenceClassification | Objective::MultiLabelClassification => "text-classification",
        Objective::TokenClassification => "token-classification",
    };
    let tags = if c.private { "\n- differential-privacy" } else { "" };
    format!(
        "---\n{LICENCE_FIELD}{licence}\n{}{library}pipeline_tag: {task}\ntags:\n- {task}{tags}\n---\n",
        base.unwrap_or_default()
    )
}

/// Returns the name of the folder of the checkpoint that training began from.
#[must_use]
pub fn base_model(plan: &Plan) -> Option<String> {
    let Initial::Checkpoint(path) = &plan.model().initial else { return None };
    Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned())
}

/// Writes what the plan says of the model and its text.
fn made_from(plan: &Plan) -> String {
    let (model, data) = (plan.model(), plan.data());
    let base = match base_model(plan) {
        Some(name) => format!("the weights of `{}`", name.replace('`', "")),
        None if plan.training().warm_start.is_some() => "texts drawn from the released words".to_owned(),
        None => "random weights".to_owned(),
    };
    let vocabulary = match plan.tokenizer() {
        Tokenizer::Train(_) => "from words released with noise",
        Tokenizer::Extend(_) => "a public one with words released with noise",
        Tokenizer::Public(_) => "of a public file or an earlier stage",
        Tokenizer::Bytes => "bytes",
    };
    let visibility = if plan.is_public() { "public" } else { "private" };
    format!(
        "- model: {}, texts of at most {} tokens; training began from {base}\n- vocabulary: {vocabulary}\n- data: \
         {visibility} text of about {} units (unit: {}), as the plan declares\n",
        model.shape_in_words(),
        model.context,
        data.units,
        plan.privacy().unit
    )
}
