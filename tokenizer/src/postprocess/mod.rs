//! Post-processors, the steps of a `tokenizer.json` after encoding. They put tokens at the ends of a text, and exclude
//! spaces from the places of tokens.

mod template;
mod trim;

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::FormatError;
use crate::encoding::Encoding;
use crate::stage::Kinds;
use template::Template;
use trim::Trim;

/// A function that returns the text of a token, by its position and its id.
pub(crate) type TokenText<'t> = dyn Fn(usize, u32) -> &'t str + 't;

/// A step after encoding. A new one is registered in [`KINDS`].
pub(crate) trait PostProcess: Debug + Send + Sync {
    /// Excludes spaces from the places of tokens.
    fn trim(&self, _found: &mut Encoding, _token: &TokenText<'_>) {}

    /// Puts tokens around a text.
    fn surround(&self, found: Encoding) -> Encoding {
        found
    }

    /// Returns all ids that the step adds.
    fn ids(&self) -> Vec<u32> {
        Vec::new()
    }
}

type Steps = [Arc<dyn PostProcess>];

/// Every post-processor that a `tokenizer.json` can name. A build that reads no such file, such as that of the web
/// page, leaves this table out.
const KINDS: Kinds<Steps> = Kinds {
    part: "post_processor",
    list: "processors",
    read: &[
        ("TemplateProcessing", |part| Ok(Arc::new([Arc::new(Template::read(part)?)]))),
        ("BertProcessing", |part| Ok(Arc::new([Arc::new(Template::read_bert(part)?)]))),
        ("RobertaProcessing", |part| {
            let template: Arc<dyn PostProcess> = Arc::new(Template::read_bert(part)?);
            Ok(trim(part).into_iter().chain([template]).collect())
        }),
        ("ByteLevel", |part| Ok(trim(part).into_iter().collect())),
    ],
};

fn trim(part: &Value) -> Option<Arc<dyn PostProcess>> {
    Some(Arc::new(Trim::read(part)?))
}

/// The post-processor of a tokenizer; none by default.
#[derive(Debug, Default)]
pub(crate) struct PostProcessor {
    /// The field `post_processor` as it was read.
    json: Value,
    steps: Vec<Arc<dyn PostProcess>>,
}

impl PostProcessor {
    /// Reads the field `post_processor` of a `tokenizer.json`.
    ///
    /// # Errors
    /// If a post-processor is not supported.
    pub(crate) fn read(part: &Value) -> Result<Self, FormatError> {
        let steps = KINDS.read(part)?.iter().flat_map(|steps| steps.iter().cloned()).collect();
        Ok(Self { json: part.clone(), steps })
    }

    /// Returns the post-processor of BERT, which puts a token at each end.
    pub(crate) fn bert(first: (&str, u32), last: (&str, u32)) -> Self {
        let json = json!({"type": "BertProcessing", "sep": last, "cls": first});
        Self { json, steps: vec![Arc::new(Template::around(first.1, last.1))] }
    }

    /// Returns the post-processor of T5, which puts a token after each text.
    pub(crate) fn t5(last: (&str, u32)) -> Self {
        let (name, id) = last;
        let text = |which: &str| json!({"Sequence": {"id": which, "type_id": 0}});
        let end = json!({"SpecialToken": {"id": name, "type_id": 0}});
        let json = json!({
            "type": "TemplateProcessing",
            "single": [text("A"), end],
            "pair": [text("A"), end, text("B"), end],
            "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]}},
        });
        Self { json, steps: vec![Arc::new(Template::before(id))] }
    }

    /// Returns the post-processor as the file writes it.
    pub(crate) fn json(&self) -> &Value {
        &self.json
    }

    /// Returns all ids that the post-processor adds.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.steps.iter().flat_map(|step| step.ids()).collect()
    }

    /// Returns the tokens that the post-processor puts before a text.
    pub(crate) fn first_ids(&self) -> Vec<u32> {
        const TEXT: u32 = u32::MAX;
        let around = self.surround(Encoding { ids: vec![TEXT], offsets: Vec::new() });
        around.ids.into_iter().take_while(|id| *id != TEXT).collect()
    }

    /// Excludes spaces from the places of tokens, where the file says so.
    pub(crate) fn trim(&self, found: &mut Encoding, token: &TokenText<'_>) {
        self.steps.iter().for_each(|step| step.trim(found, token));
    }

    /// Puts the file's tokens around a text.
    pub(crate) fn surround(&self, found: Encoding) -> Encoding {
        self.steps.iter().fold(found, |found, step| step.surround(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: `post_processor` of the `tokenizer.json` of t5-small.
    #[test]
    fn the_post_processor_of_t5_is_that_of_its_own_file() {
        let expected = json!({
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
            "pair": [
                {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}
            ],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}
        });
        let made = PostProcessor::t5(("</s>", 1));
        assert_eq!(*made.json(), expected);
        let text = || Encoding { ids: vec![7, 8], ..Encoding::default() };
        assert_eq!(made.surround(text()).ids, [7, 8, 1]);
        assert_eq!(PostProcessor::read(&expected).unwrap().surround(text()).ids, [7, 8, 1]);
    }
}
