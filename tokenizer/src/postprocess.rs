//! What a `tokenizer.json` does after encoding: tokens at the ends of a text, and spaces that are no part of a token's place.

use serde_json::{Value, json};

use crate::encoding::Encoding;

/// A post-processor as in a `tokenizer.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PostProcessor {
    /// As it was written.
    json: Value,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Excludes leading and trailing spaces of tokens from their places.
    Trim {
        /// A single space at the beginning of the text was added by the pre-tokenizer.
        adds_prefix_space: bool,
    },
    /// Puts tokens around the text.
    Template(Vec<Part>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text,
    Tokens(Vec<u32>),
}

impl PostProcessor {
    /// Reads the part of the file.
    ///
    /// # Errors
    /// What is allowed.
    pub(crate) fn read(part: &Value) -> Result<Self, &'static str> {
        let mut steps = Vec::new();
        if !part.is_null() {
            read_steps(part, &mut steps)?;
        }
        Ok(Self { json: part.clone(), steps })
    }

    /// BERT's: a token at each end.
    pub(crate) fn bert(first: (&str, u32), last: (&str, u32)) -> Self {
        let json = json!({"type": "BertProcessing", "sep": last, "cls": first});
        Self { json, steps: vec![around(first.1, last.1)] }
    }

    /// As the file writes it.
    pub(crate) fn json(&self) -> &Value {
        &self.json
    }

    /// All ids that it adds.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        let parts = self.steps.iter().flat_map(|step| match step {
            Step::Trim { .. } => [].as_slice(),
            Step::Template(parts) => parts,
        });
        parts.flat_map(|part| match part {
            Part::Text => Vec::new(),
            Part::Tokens(ids) => ids.clone(),
        })
    }

    /// Excludes spaces from the places of tokens, where the file says so. `token` names the token of an id.
    /// `widened`: places of added tokens that took blanks, and what they took.
    pub(crate) fn trim<'t>(
        &self,
        token: impl Fn(u32) -> Option<&'t str>,
        widened: &[(usize, String)],
        found: &mut Encoding,
    ) {
        for step in &self.steps {
            if let Step::Trim { adds_prefix_space } = step {
                trim(&token, *adds_prefix_space, widened, found);
            }
        }
    }

    /// Puts the file's tokens around a text. They have no place in it: their offsets are 0.
    pub(crate) fn surround(&self, mut found: Encoding) -> Encoding {
        let has_offsets = found.offsets.len() == found.ids.len();
        for step in &self.steps {
            let Step::Template(parts) = step else { continue };
            let inner = std::mem::take(&mut found);
            for part in parts {
                match part {
                    Part::Text => {
                        found.ids.extend(&inner.ids);
                        found.offsets.extend(&inner.offsets);
                    }
                    Part::Tokens(ids) => {
                        found.ids.extend(ids);
                        found.offsets.extend(ids.iter().filter(|_| has_offsets).map(|_| (0, 0)));
                    }
                }
            }
        }
        found
    }
}

fn around(first: u32, last: u32) -> Step {
    Step::Template(vec![Part::Tokens(vec![first]), Part::Text, Part::Tokens(vec![last])])
}

fn read_steps(part: &Value, steps: &mut Vec<Step>) -> Result<(), &'static str> {
    const ALLOWED: &str =
        "null, TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, or a Sequence of them";
    let trims = |steps: &mut Vec<Step>| {
        if part["trim_offsets"] != Value::Bool(false) {
            steps.push(Step::Trim { adds_prefix_space: part["add_prefix_space"] != Value::Bool(false) });
        }
    };
    let end = |name: &str| {
        let id = part[name][1].as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or("cls and sep as [token, id]")
    };
    match part["type"].as_str().unwrap_or_default() {
        "ByteLevel" => trims(steps),
        "BertProcessing" => steps.push(around(end("cls")?, end("sep")?)),
        "RobertaProcessing" => {
            trims(steps);
            steps.push(around(end("cls")?, end("sep")?));
        }
        "TemplateProcessing" => steps.push(Step::Template(read_template(part).ok_or(
            "TemplateProcessing whose single names the sequence A, and tokens listed in special_tokens with their ids",
        )?)),
        "Sequence" => {
            for each in part["processors"].as_array().ok_or(ALLOWED)? {
                read_steps(each, steps)?;
            }
        }
        _ => return Err(ALLOWED),
    }
    Ok(())
}

fn read_template(part: &Value) -> Option<Vec<Part>> {
    let pieces = part["single"].as_array()?.iter().map(|piece| {
        match (piece["Sequence"]["id"].as_str(), piece["SpecialToken"]["id"].as_str()) {
            (Some("A"), None) => Some(Part::Text),
            (None, Some(name)) => {
                let ids = part["special_tokens"][name]["ids"].as_array()?.iter();
                let ids = ids.map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()));
                Some(Part::Tokens(ids.collect::<Option<_>>()?))
            }
            _ => None,
        }
    });
    pieces.collect()
}

fn trim<'t>(
    name: &impl Fn(u32) -> Option<&'t str>,
    adds_prefix_space: bool,
    widened: &[(usize, String)],
    found: &mut Encoding,
) {
    let is_space = |c: &char| *c == 'Ġ' || c.is_whitespace();
    for (at, (id, (start, end))) in found.ids.iter().zip(&mut found.offsets).enumerate() {
        let matched =
            widened.binary_search_by_key(&at, |widened| widened.0).ok().map(|n| widened[n].1.as_str());
        let token = matched.or_else(|| name(*id)).unwrap_or_default();
        let opening = token.chars().take_while(is_space).count();
        let closing = token.chars().rev().take_while(is_space).count();
        if !((at == 0 || *start == 0) && adds_prefix_space && opening == 1) {
            *start = (*start + opening).min(*end);
        }
        if *end >= closing {
            *end = (*end - closing).max(*start);
        }
    }
}
