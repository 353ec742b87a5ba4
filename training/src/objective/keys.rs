//! Every key of a `tokenizer_config.json`, changed one at a time: ids, texts, special tokens and padding are those of `transformers`, or the
//! key is named. `tests/vectors/make_tokenizer_keys.py` records what `transformers` makes of each change.

use serde_json::Value;
use tokenizer::{Encoding, Tokenizer};

use crate::network_tests::keys;

/// Returns what a tokenizer makes of texts, where it differs from `theirs`.
fn difference(tokenizer: &Tokenizer, texts: &[String], theirs: &Value) -> Option<String> {
    let ids = |text: &String| {
        let own = Encoding { ids: tokenizer.encode(text), ..Encoding::default() };
        tokenizer.post_process(own).ids
    };
    let ids: Vec<Vec<u32>> = texts.iter().map(ids).collect();
    if Value::from_iter(ids.iter().map(|ids| Value::from(ids.as_slice()))) != theirs["ids"] {
        return Some(format!("ids {ids:?}"));
    }
    let shown = |ids: &Vec<u32>| {
        let of_text: Vec<u32> = ids.iter().copied().filter(|id| !tokenizer.is_special(*id)).collect();
        tokenizer.decode(&of_text)
    };
    let shown: Vec<String> = ids.iter().map(shown).collect();
    if Value::from(shown.clone()) != theirs["decoded"] {
        return Some(format!("texts {shown:?}"));
    }
    let written: Value = serde_json::from_str(&tokenizer.to_config_json()).unwrap();
    for (role, id) in theirs["roles"].as_object().unwrap() {
        let own = written[format!("{role}_token")].as_str().and_then(|token| tokenizer.id(token));
        if id.as_u64().is_some_and(|id| own.map(u64::from) != Some(id)) {
            return Some(format!("{role} {own:?}"));
        }
    }
    let side = if tokenizer.pads_left() { "left" } else { "right" };
    (theirs["padding_side"] != side).then(|| format!("padding on the {side}"))
}

/// Oracle: `transformers`. What it refuses itself may be read or refused.
#[test]
fn each_key_of_a_tokenizer_config_has_the_effect_that_it_has_in_transformers_or_is_named() {
    let record = keys::record("tokenizer_keys.json", "make_tokenizer_keys.py");
    let mut table = keys::Table::default();
    for (name, file) in record["files"].as_object().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, file["tokenizer"].to_string()).unwrap();
        let texts: Vec<String> = serde_json::from_value(file["texts"].clone()).unwrap();
        table.compare(name, file, |key, config, outcome| {
            std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
            let tokenizer = crate::vocabulary::read_file(&path).map_err(|error| error.to_string())?;
            let mut theirs = file["usual"].clone();
            theirs.as_object_mut().unwrap().extend(outcome.as_object().cloned().unwrap_or_default());
            match difference(&tokenizer, &texts, &theirs) {
                None => Ok(()),
                Some(what) => {
                    let named = tokenizer.unapplied_settings().unwrap_or_default();
                    let names = named.rsplit(": ").next().unwrap_or_default().split(", ");
                    Err(if names.into_iter().any(|name| name == key) { key.to_owned() } else { what })
                }
            }
        });
    }
    table.check(1_000, 100);
}
