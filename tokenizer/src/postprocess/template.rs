//! The step of `TemplateProcessing`, `BertProcessing` and `RobertaProcessing` that puts tokens around a text.

use serde_json::Value;

use super::PostProcess;
use crate::FormatError;
use crate::encoding::Encoding;
use crate::stage::lacking;

/// Puts tokens around a text. They have no place in it: their offsets are 0.
#[derive(Debug)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text,
    Tokens(Vec<u32>),
}

impl Template {
    pub(super) fn read(part: &Value) -> Result<Self, FormatError> {
        let allowed = "a list that names the sequence A, and tokens listed in special_tokens with their ids";
        read_parts(part).map(Self).ok_or_else(|| lacking(part, "single", allowed))
    }

    /// Reads the template of BERT, from `cls` and `sep` as `[token, id]`.
    pub(super) fn read_bert(part: &Value) -> Result<Self, FormatError> {
        let end = |name: &str| {
            let id = part[name][1].as_u64().and_then(|id| u32::try_from(id).ok());
            id.ok_or_else(|| lacking(part, name, "[token, id]"))
        };
        Ok(Self::around(end("cls")?, end("sep")?))
    }

    pub(super) fn around(first: u32, last: u32) -> Self {
        Self(vec![Part::Tokens(vec![first]), Part::Text, Part::Tokens(vec![last])])
    }

    pub(super) fn before(last: u32) -> Self {
        Self(vec![Part::Text, Part::Tokens(vec![last])])
    }
}

fn read_parts(part: &Value) -> Option<Vec<Part>> {
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

impl PostProcess for Template {
    fn ids(&self) -> Vec<u32> {
        let tokens = self.0.iter().filter_map(|part| match part {
            Part::Text => None,
            Part::Tokens(ids) => Some(ids),
        });
        tokens.flatten().copied().collect()
    }

    fn surround(&self, inner: Encoding) -> Encoding {
        let has_offsets = inner.offsets.len() == inner.ids.len();
        let mut found = Encoding::default();
        for part in &self.0 {
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
        found
    }
}
