//! `privacy.json` in one line.

use std::path::Path;

use dp_tokenizer::unit::PrivacyUnit;
use serde_json::Value;

/// Parses the statement in a file. Returns a text if the file is damaged.
pub(super) fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::from("not valid JSON"))
}

/// The text in place of a statement that belongs to another tokenizer.
pub(super) const OF_ANOTHER: &str = "the privacy.json beside it is of another tokenizer";

/// The `outcome` of a release whose vocabulary is not written, or not yet.
const SPENT: &str = "the budget is spent, and no tokenizer was written";

/// Returns the statement that stands on the disk from the release on until its tokenizer is written.
pub(super) fn spent(privacy: &Value) -> Value {
    let mut spent = privacy.clone();
    spent["outcome"] = SPENT.into();
    spent
}

/// Whether the statement is of a release without a tokenizer.
pub(super) fn is_spent(privacy: &Value) -> bool {
    privacy["outcome"] == SPENT
}

/// Whether the statement says that nothing private was used. A damaged one does not.
pub(super) fn is_of_public_text(privacy: &Value) -> bool {
    privacy["private"] == false && privacy["event"].is_null()
}

/// The field with the digests of files in other formats that `convert` made of the tokenizer and wrote to another
/// folder.
const CONVERTED: &str = "converted_sha256";

/// Whether a statement is of the tokenizer in a file beside it. A file in another format counts if the `tokenizer.json`
/// beside it does, or if `convert` named it where it wrote it.
pub(super) fn is_of(privacy: &Value, tokenizer: &Path) -> bool {
    let Some(stated) = privacy["tokenizer_sha256"].as_str() else { return !is_spent(privacy) };
    let converted = privacy[CONVERTED].as_array().into_iter().flatten().filter_map(Value::as_str);
    let digest = |path: &Path| std::fs::read(path).map(|bytes| durable::sha256_hex(&bytes)).ok();
    let own = digest(tokenizer);
    converted.chain([stated]).any(|stated| own.as_deref() == Some(stated))
        || digest(&tokenizer.with_file_name("tokenizer.json")).as_deref() == Some(stated)
}

/// Returns the statement with further files that `convert` made of its tokenizer.
pub(super) fn with_converted(privacy: &Value, files: impl Iterator<Item = String>) -> Value {
    let mut all: Vec<Value> = privacy[CONVERTED].as_array().cloned().unwrap_or_default();
    for digest in files.filter(|digest| privacy["tokenizer_sha256"] != **digest) {
        let digest = Value::from(digest);
        if !all.contains(&digest) {
            all.push(digest);
        }
    }
    let mut privacy = privacy.clone();
    if !all.is_empty() {
        privacy[CONVERTED] = all.into();
    }
    privacy
}

/// Returns the statement without the files that `convert` made of its tokenizer.
pub(super) fn without_converted(privacy: &Value) -> Value {
    let mut privacy = privacy.clone();
    if let Value::Object(fields) = &mut privacy {
        fields.remove(CONVERTED);
    }
    privacy
}

/// Whether the statement in a folder is of a release without a tokenizer.
pub(super) fn is_spent_in(folder: &Path) -> bool {
    std::fs::read(folder.join("privacy.json")).is_ok_and(|bytes| is_spent(&parse(&bytes)))
}

/// Returns the promise of a statement in a few words, with ε rounded up.
pub(super) fn guarantee(privacy: &Value) -> String {
    let text = |field: &str| privacy[field].as_str().unwrap_or("unstated").to_owned();
    match (&privacy["private"], privacy["epsilon"]["upper"].as_f64(), &privacy["delta"]) {
        (Value::Bool(true), Some(epsilon), Value::Number(delta)) => format!(
            "ε ≤ {} at δ = {delta} for one {} ({})",
            rounded_up(epsilon),
            unit_in_words(&text("unit")),
            text("relation").replace('_', " "),
        ),
        (Value::Bool(false), ..) => format!("NOT PRIVATE: {}", text("reason")),
        _ if privacy.is_null() => "no privacy.json beside it".to_owned(),
        _ if privacy == OF_ANOTHER => format!("NOT KNOWN: {OF_ANOTHER}; take its own from where it is from"),
        _ => "NOT KNOWN: the privacy.json beside it is damaged; train again, or take it from where the tokenizer is from"
            .to_owned(),
    }
}

/// Returns a statement in one line. Null means that there is no file.
pub(super) fn in_words(privacy: &Value) -> String {
    let guarantee = guarantee(privacy);
    match (&privacy["private"], privacy["method"].as_str()) {
        (Value::Bool(true), Some(method)) if guarantee.starts_with('ε') => {
            format!(
                "{guarantee}, by {method}, {} words released; --json shows all",
                privacy["released_words"]
            )
        }
        _ => guarantee,
    }
}

fn unit_in_words(unit: &str) -> String {
    match unit.parse() {
        Ok(PrivacyUnit::Words(n)) => format!("run of {n} words"),
        _ => unit.to_owned(),
    }
}

/// Writes four significant digits, never below the value, without zeros at the end.
fn rounded_up(value: f64) -> String {
    if !(value.is_finite() && value > 0.0) {
        return value.to_string();
    }
    let mut decimals = 3 - value.log10().floor() as i32;
    let mut shown;
    loop {
        let unit = 10_f64.powi(-decimals);
        let digits = decimals.max(0) as usize;
        shown = format!("{value:.digits$}");
        if let Some(below) = shown.parse().ok().filter(|near: &f64| *near < value) {
            shown = format!("{:.digits$}", below + unit);
        }
        // If adding one to the last digit was not enough, one more digit is shown.
        if shown.parse().is_ok_and(|near: f64| near >= value) {
            break;
        }
        decimals += 1;
    }
    if shown.contains('.') {
        shown.truncate(shown.trim_end_matches('0').trim_end_matches('.').len());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::rounded_up;

    #[test]
    fn a_bound_has_four_digits_and_is_never_below_the_value() {
        for (value, want) in [
            (0.999_999_784_575, "1"),
            (1.0, "1"),
            (1.1, "1.1"),
            (2.000_000_1, "2.001"),
            (99.999_981, "100"),
            (0.012_341, "0.01235"),
            (12_345.6, "12346"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(rounded_up(value), want);
        }
        for n in 1..20_000_u32 {
            let value = f64::from(n) * 0.000_731;
            let shown: f64 = rounded_up(value).parse().unwrap();
            assert!(shown >= value && shown <= value * 1.001 + 1e-9, "{value}: {shown}");
        }
    }
}
