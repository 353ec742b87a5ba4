//! Finds the special tokens that an objective needs.

use tokenizer::Tokenizer;

use crate::RunError;
use crate::data::CanaryTokens;
use network::lengths::corruption_lengths;
use network::model::ROBERTA_PADDING;

/// Names of a special token: BERT's first, then RoBERTa's.
pub(super) type Names = [&'static str; 2];
/// Names of the first token of an input.
pub(super) const CLASSIFY: Names = ["[CLS]", "<s>"];
/// Names of the token after each sentence.
pub(super) const SEPARATE: Names = ["[SEP]", "</s>"];
/// Names of the token that replaces a hidden one.
pub(super) const MASK: Names = ["[MASK]", "<mask>"];

/// Returns the names of the special tokens of this objective, besides those for padding, end of text and unknown
/// tokens.
pub(crate) fn special_tokens(objective: plan::Objective, context: usize) -> Vec<String> {
    match objective {
        plan::Objective::CausalLm
        | plan::Objective::PrefixLm
        | plan::Objective::TextToText
        | plan::Objective::Chat => Vec::new(),
        plan::Objective::SpanCorruption => (0..corruption_lengths(context).spans).map(sentinel).collect(),
        plan::Objective::MaskedLm | plan::Objective::MaskedLmNextSentence => {
            [CLASSIFY, SEPARATE, MASK].map(|names| names[0].to_owned()).to_vec()
        }
        // Decoders do not need these tokens, but the plan may name any family.
        plan::Objective::SequenceClassification
        | plan::Objective::MultiLabelClassification
        | plan::Objective::TokenClassification => {
            [CLASSIFY, SEPARATE].map(|names| names[0].to_owned()).to_vec()
        }
    }
}

/// Returns the tokens of which canaries are made: all tokens of text, without special ones.
pub fn canary_tokens(plan: &plan::Plan, tokenizer: &Tokenizer) -> CanaryTokens {
    let names = special_tokens(plan.training().objective, plan.model().context as usize);
    let others = [CLASSIFY, SEPARATE, MASK].map(|names| names[1]);
    let others = others.into_iter().filter(|_| names.iter().any(|name| name == CLASSIFY[0]));
    let named = names.iter().map(String::as_str).chain(others).filter_map(|name| tokenizer.id(name));
    let marks = [tokenizer.pad_id(), tokenizer.eos_id(), tokenizer.bos_id(), tokenizer.unk_id()];
    let special: Vec<u32> =
        named.chain(marks.into_iter().flatten()).chain(first_of_file(tokenizer)).collect();
    let vocab_size = tokenizer.vocab_size();
    let of_text = (0..vocab_size as u32).filter(|token| !special.contains(token)).collect();
    CanaryTokens { vocab_size, of_text }
}

/// Returns the name of a sentinel in T5's vocabularies.
fn sentinel(at: usize) -> String {
    format!("<extra_id_{at}>")
}

/// Looks up the special tokens of an objective.
pub(super) struct Special<'a> {
    pub objective: plan::Objective,
    pub tokenizer: &'a Tokenizer,
}

impl Special<'_> {
    /// Returns as many sentinels as a window of this context has runs.
    pub fn sentinels(&self, context: usize) -> Result<Vec<u32>, RunError> {
        (0..corruption_lengths(context).spans).map(|at| self.token(&sentinel(at))).collect()
    }

    /// Returns the padding token, from which T5's decoder starts.
    pub fn padding(&self) -> Result<u32, RunError> {
        self.tokenizer.pad_id().ok_or_else(|| self.lacks("a padding token"))
    }

    /// Returns the token that has one of these names.
    pub fn any(&self, names: Names) -> Result<u32, RunError> {
        let found = names.iter().find_map(|name| self.tokenizer.id(name));
        found.ok_or_else(|| self.lacks(names[0]))
    }

    /// Refuses a tokenizer whose padding token does not have the id that the family needs.
    pub fn check_padding(&self, family: plan::Family) -> Result<(), RunError> {
        let given = self.tokenizer.pad_id();
        if family != plan::Family::Roberta || given == Some(ROBERTA_PADDING) {
            return Ok(());
        }
        let given =
            given.map_or("it has no padding token".to_owned(), |id| format!("its padding token has id {id}"));
        Err(RunError::Refused(format!(
            "tokenizer: {given}, but RoBERTa counts positions from a padding token of id {ROBERTA_PADDING}; give the \
             checkpoint's own tokenizer, or set model.family to \"bert\""
        )))
    }

    /// Returns the token of this name.
    pub fn token(&self, name: &str) -> Result<u32, RunError> {
        self.tokenizer.id(name).ok_or_else(|| self.lacks(name))
    }

    fn lacks(&self, what: &str) -> RunError {
        let family = match self.objective {
            plan::Objective::SpanCorruption | plan::Objective::PrefixLm | plan::Objective::TextToText => "T5",
            _ => "BERT",
        };
        RunError::Refused(format!(
            "tokenizer: it lacks {what}, which training.objective needs; use a vocabulary made for {family}, or have one \
             trained, which includes these tokens"
        ))
    }
}

/// Returns the token before a text: the one that the tokenizer's file puts there, else the end-of-text token.
pub(crate) fn begin_of_text(tokenizer: &Tokenizer) -> Result<u32, RunError> {
    first_of_file(tokenizer).map_or_else(|| end_of_text(tokenizer), Ok)
}

/// Returns the only token that the tokenizer's file puts before a text. Returns none for BERT's, which no decoder
/// reads.
pub(super) fn first_of_file(tokenizer: &Tokenizer) -> Option<u32> {
    match tokenizer.first_ids().as_slice() {
        [first] if tokenizer.id(CLASSIFY[0]) != Some(*first) => Some(*first),
        _ => None,
    }
}

/// Returns the token after a text.
pub(crate) fn end_of_text(tokenizer: &Tokenizer) -> Result<u32, RunError> {
    tokenizer.eos_id().ok_or_else(|| {
        RunError::Refused(format!(
            "tokenizer: it has no end-of-text token; state eos_token in the {} beside it, use one that has {}, or have a \
             tokenizer trained",
            crate::store::files::TOKENIZER_CONFIG,
            tokenizer::EOS
        ))
    })
}
