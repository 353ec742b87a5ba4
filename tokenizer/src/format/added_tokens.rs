//! The list `added_tokens` in a `tokenizer.json`.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::FormatError;
use crate::encode::Model;
use crate::sentencepiece::PieceKind;
use crate::special_tokens::{SpecialTokens, TokenOptions};
use crate::tokenizer::Tokenizer;

/// Reads the list for a tokenizer whose other parts are read. The tokens `apart` are in the file's vocabulary, but not
/// in the model.
pub(super) fn read_added_tokens(
    list: &Value,
    tokenizer: &Tokenizer,
    apart: &HashSet<String>,
) -> Result<SpecialTokens, FormatError> {
    let (mut tokens, mut options) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    let mut next = tokenizer.model.len() as u32;
    for token in list.as_array().into_iter().flatten() {
        let (id, content) = read_token(token, &tokenizer.model)?;
        // Hugging Face's library numbers tokens that the model does not have by their order, whatever the file says.
        if tokenizer.model.id(&content).is_none() && !apart.contains(&content) && id != next {
            return Err(FormatError::Inconsistent {
                reason: format!("added token {content:?} has id {id}; its place in the list gives it {next}"),
            });
        }
        if !names.insert(content.clone()) {
            return Err(FormatError::Inconsistent {
                reason: format!("added token {content:?} is listed twice"),
            });
        }
        next = next.max(id + 1);
        tokens.push((id, content));
        options.push(read_options(token));
    }
    Ok(match options.iter().all(|options| *options == TokenOptions::default()) {
        true => SpecialTokens::new(tokens),
        false => SpecialTokens::with_options(tokens, options, |text| {
            tokenizer.normalizer.normalize(text).into_owned()
        }),
    })
}

fn read_options(token: &Value) -> TokenOptions {
    let flag = |name: &str, default| token[name].as_bool().unwrap_or(default);
    TokenOptions {
        single_word: flag("single_word", false),
        lstrip: flag("lstrip", false),
        rstrip: flag("rstrip", false),
        normalized: flag("normalized", false),
        special: flag("special", true),
    }
}

fn read_token(token: &Value, model: &Model) -> Result<(u32, String), FormatError> {
    let content = token["content"].as_str().unwrap_or_default();
    let id = token["id"].as_u64().and_then(|id| u32::try_from(id).ok());
    // The token is the model's own, or its id lies beyond the model's last one.
    let fits = |id: u32| {
        model.id(content) == Some(id) || (id as usize >= model.len() && model.id(content).is_none())
    };
    match id {
        Some(id) if !content.is_empty() && fits(id) => Ok((id, content.to_owned())),
        _ => Err(FormatError::Inconsistent {
            reason: format!(
                "added token {content:?} has another id in model.vocab, or another token has its id"
            ),
        }),
    }
}

/// Returns the list as a `tokenizer.json` has it.
pub(super) fn added_tokens_json(tokenizer: &Tokenizer) -> Vec<Value> {
    let special = &tokenizer.special;
    let mut added: Vec<Value> = special
        .tokens
        .iter()
        .zip(&special.options)
        .map(|((id, name), options)| added_token(*id, name, *options))
        .collect();
    if let Model::SentencePiece(model) = &tokenizer.model {
        // Hugging Face has no kinds of pieces. There, a piece that was not learnt is an added token.
        let pieces = (0u32..).zip(&model.model().pieces);
        let kinds = [PieceKind::Unknown, PieceKind::Control, PieceKind::UserDefined];
        let some = pieces.filter(|(_, piece)| kinds.contains(&piece.kind));
        added.extend(some.map(|(id, piece)| {
            let special = piece.kind != PieceKind::UserDefined;
            added_token(id, &piece.text, TokenOptions { special, ..TokenOptions::default() })
        }));
    }
    added
}

fn added_token(id: u32, name: &str, options: TokenOptions) -> Value {
    json!({
        "id": id,
        "content": name,
        "single_word": options.single_word,
        "lstrip": options.lstrip,
        "rstrip": options.rstrip,
        "normalized": options.normalized,
        "special": options.special,
    })
}
