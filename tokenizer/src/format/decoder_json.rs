//! The decoder in a `tokenizer.json`.

use serde_json::{Value, json};

use super::stages_json::{one_character, read_metaspace, read_pattern, write_metaspace};
use super::tokenizer_json::unsupported;
use crate::FormatError;
use crate::decode::{Cleanup, Decoder};
use crate::pretokenize::{Metaspace, PrependScheme};

pub(super) fn read_decoder(part: &Value) -> Result<Decoder, FormatError> {
    const ALLOWED: &str = "null, Metaspace, ByteLevel, WordPiece, BPEDecoder, ByteFallback, Fuse, Strip, Replace, or a Sequence \
                           of them";
    let refused = || unsupported("decoder", part, ALLOWED);
    let text = |name: &str| part[name].as_str().map(str::to_owned);
    let count = |name: &str| part[name].as_u64().and_then(|n| usize::try_from(n).ok());
    match part["type"].as_str() {
        None if part.is_null() => Ok(Decoder::Spaces),
        Some("ByteLevel") => Ok(Decoder::ByteLevel),
        Some("ByteFallback") => Ok(Decoder::ByteFallback),
        Some("Fuse") => Ok(Decoder::Fuse),
        Some("WordPiece") => Ok(Decoder::WordPiece {
            prefix: text("prefix").unwrap_or_else(|| "##".to_owned()),
            cleanup: if part["cleanup"].as_bool().unwrap_or(true) { Cleanup::Tokens } else { Cleanup::Never },
        }),
        Some("Metaspace") => read_metaspace(part).map(Decoder::Metaspace).ok_or_else(refused),
        Some("BPEDecoder") => {
            Ok(Decoder::Bpe { suffix: text("suffix").unwrap_or_else(|| "</w>".to_owned()) })
        }
        Some("Strip") => {
            let content = part["content"].as_str().and_then(one_character).ok_or_else(refused)?;
            let (start, stop) = count("start").zip(count("stop")).ok_or_else(refused)?;
            Ok(Decoder::Strip { content, start, stop })
        }
        Some("Replace") => Ok(Decoder::Replace {
            pattern: read_pattern("decoder Replace", part)?,
            content: text("content").ok_or_else(refused)?,
        }),
        Some("Sequence") => {
            let all = part["decoders"].as_array().ok_or_else(refused)?;
            Ok(Decoder::Sequence(all.iter().map(read_decoder).collect::<Result<_, _>>()?))
        }
        _ => Err(refused()),
    }
}

pub(super) fn write_decoder(decoder: &Decoder) -> Value {
    match decoder {
        Decoder::Spaces => Value::Null,
        Decoder::ByteLevel => {
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})
        }
        Decoder::ByteFallback => json!({"type": "ByteFallback"}),
        Decoder::Fuse => json!({"type": "Fuse"}),
        Decoder::WordPiece { prefix, cleanup } => {
            json!({"type": "WordPiece", "prefix": prefix, "cleanup": *cleanup != Cleanup::Never})
        }
        Decoder::Metaspace(space) => write_metaspace(space),
        Decoder::Bpe { suffix } => json!({"type": "BPEDecoder", "suffix": suffix}),
        Decoder::Strip { content, start, stop } => {
            json!({"type": "Strip", "content": content, "start": start, "stop": stop})
        }
        Decoder::Replace { pattern, content } => {
            json!({"type": "Replace", "pattern": pattern.json(), "content": content})
        }
        Decoder::Sequence(all) => {
            json!({"type": "Sequence", "decoders": all.iter().map(write_decoder).collect::<Vec<_>>()})
        }
        Decoder::SentencePiece { drop_first_space } => {
            let prepend_scheme = if *drop_first_space { PrependScheme::Always } else { PrependScheme::Never };
            let space = write_metaspace(&Metaspace { prepend_scheme, ..Metaspace::default() });
            json!({"type": "Sequence", "decoders": [space, {"type": "ByteFallback"}, {"type": "Fuse"}]})
        }
    }
}
