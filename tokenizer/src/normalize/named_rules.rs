//! The rules of normalization that SentencePiece names.
//!
//! # References
//! SentencePiece's `src/builder.cc`, and the maps of its version 0.2.3, which are of Unicode 17.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

use super::NormalizationRules;
use crate::regex::class;

/// A name of `--normalization_rule_name` of SentencePiece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleName {
    /// NFKC, with the blanks and control characters that translation systems clean up.
    NmtNfkc,
    /// NFKC.
    Nfkc,
    /// `nmt_nfkc` with case folded.
    NmtNfkcCf,
    /// NFKC with case folded.
    NfkcCf,
}

/// The characters that the rules may change: those of Unicode 16, and those of Unicode 17 with a decomposition or a
/// lower case.
const CHARACTERS: &str = "[\\p{age=16.0}\u{A7CE}\u{A7D2}\u{A7D4}\u{A7F1}\u{16EA0}-\u{16EB8}]";

/// Characters that become a blank.
const BLANKS: &str =
    "\t\n\u{C}\r\u{61C}\u{1680}\u{200B}\u{200C}\u{200E}\u{200F}\u{2028}\u{2029}\u{2581}\u{FEFF}\u{FFFD}";
/// Controls that are dropped.
const DROPPED: &str = "\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}\u{B}\u{E}\u{F}\u{10}\u{11}\u{12}\u{13}\u{14}\u{15}\u{16}\u{17}\u{18}\
                       \u{19}\u{1A}\u{1B}\u{1C}\u{1D}\u{1E}\u{1F}\u{7F}\u{8F}\u{9F}";
/// The fullwidth tilde, which Japanese text uses otherwise than `~`.
const KEPT: &str = "\u{FF5E}";

impl NormalizationRules {
    /// The rules with this name.
    ///
    /// ```
    /// use tokenizer::normalize::{NormalizationRules, RuleName};
    /// let map = NormalizationRules::named(RuleName::NmtNfkcCf).map()?;
    /// assert_eq!(map.normalize("Ｆever\u{200b}№ １"), "fever no 1");
    /// # Ok::<(), tokenizer::FormatError>(())
    /// ```
    #[must_use]
    pub fn named(name: RuleName) -> Self {
        let characters = characters();
        let mut rules = without_redundant(nfkc(&characters));
        if matches!(name, RuleName::NmtNfkc | RuleName::NmtNfkcCf) {
            rules.extend(BLANKS.chars().map(|c| (c.to_string(), " ".to_owned())));
            rules.extend(DROPPED.chars().map(|c| (c.to_string(), String::new())));
            rules.remove(KEPT);
        }
        if matches!(name, RuleName::NmtNfkcCf | RuleName::NfkcCf) {
            rules.values_mut().for_each(|to| *to = to.chars().map(fold).collect());
            let folded = characters.iter().filter(|c| fold(**c) != **c);
            for c in folded {
                rules.entry(c.to_string()).or_insert_with(|| fold(*c).to_string());
            }
            rules = without_redundant(rules);
        }
        Self::of(rules)
    }
}

/// Returns all characters that the rules may change, or change others to.
fn characters() -> Vec<char> {
    let ranges = class(CHARACTERS).map(|class| class.ranges().to_vec()).unwrap_or_default();
    ranges.iter().flat_map(|range| range.start()..=range.end()).filter(|c| *c != '\0').collect()
}

/// Returns rules for the characters and sequences that NFKC changes: each one that decomposes into the same as some
/// character.
fn nfkc(characters: &[char]) -> BTreeMap<String, String> {
    let mut rules = BTreeMap::new();
    // Characters that decompose into a single one, by that one, and the longer decompositions.
    let (mut singles, mut sequences) = (BTreeMap::<char, Vec<char>>::new(), BTreeSet::new());
    for &c in characters {
        let composed: String = std::iter::once(c).nfkc().collect();
        if !composed.chars().eq([c]) {
            rules.insert(c.to_string(), composed);
        }
        let decomposed: Vec<char> = std::iter::once(c).nfkd().collect();
        match decomposed.as_slice() {
            [one] => singles.entry(*one).or_default().push(c),
            _ => {
                sequences.insert(decomposed);
            }
        }
    }
    for decomposed in sequences {
        let composed: String = decomposed.iter().copied().nfc().collect();
        if composed.chars().eq(decomposed.iter().copied()) {
            continue;
        }
        let mut forms = vec![String::new()];
        for c in decomposed {
            let same = singles.get(&c).map_or([].as_slice(), Vec::as_slice);
            forms = forms.iter().flat_map(|form| same.iter().map(move |c| format!("{form}{c}"))).collect();
        }
        let others = forms.into_iter().filter(|form| *form != composed);
        rules.extend(others.map(|form| (form, composed.clone())));
    }
    rules
}

/// Leaves out rules for sequences that shorter rules bring about.
fn without_redundant(rules: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut by_length: BTreeMap<usize, Vec<(String, String)>> = BTreeMap::new();
    for (from, to) in rules {
        by_length.entry(from.chars().count()).or_default().push((from, to));
    }
    let mut kept = BTreeMap::new();
    for (length, rules) in by_length {
        let needed = |(from, to): &(String, String)| length == 1 || replaced(&kept, from, length - 1) != *to;
        let needed: Vec<_> = rules.into_iter().filter(needed).collect();
        kept.extend(needed);
    }
    kept
}

/// Replaces from the left, each time by the longest rule of at most `most` characters.
fn replaced(rules: &BTreeMap<String, String>, text: &str, most: usize) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(most);
        let longest = ends.filter_map(|end| Some((end, rules.get(&rest[..end])?))).last();
        let end = match longest {
            Some((end, to)) => {
                out.push_str(to);
                end
            }
            None => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[end..];
    }
    out
}

/// Folds case simply: one character becomes one.
fn fold(c: char) -> char {
    fn one(mut form: impl Iterator<Item = char>) -> Option<char> {
        form.next().filter(|_| form.next().is_none())
    }
    let upper = one(c.to_uppercase()).unwrap_or(c);
    match c {
        // The dotless i, whose capital is that of i.
        '\u{131}' => c,
        // Cherokee letters fold to capitals, which Unicode had first.
        '\u{13A0}'..='\u{13FD}' | '\u{AB70}'..='\u{ABBF}' => upper,
        _ => one(upper.to_lowercase()).unwrap_or(c),
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn named_rules_are_those_of_sentencepiece() {
        // Oracle: the maps of models that sentencepiece 0.2.3 trained with each name, read back as rules: their number, and the
        // SHA-256 of the rules as a TSV file, sorted.
        for (name, count, digest) in [
            (RuleName::NmtNfkc, 225_276, "39673132abeab6ecd2cd591e9af9028b28b33ce73e091b038ea1d165860733e5"),
            (RuleName::Nfkc, 225_232, "4ec92a12758a6f3f80ecd321549f1776513260b02971dd3d281d59751641566f"),
            (
                RuleName::NmtNfkcCf,
                226_684,
                "5482df1c5ea1a7be2acbf3cb4c6450d5d88b427fc84cda8c8551a126517c7394",
            ),
            (RuleName::NfkcCf, 226_640, "46a3d7594d8d8a1be20bfbc36289da8cc5ff4975e113d602b4b7073be9c0494a"),
        ] {
            let rules = NormalizationRules::named(name);
            let codes = |text: &str| {
                text.chars().map(|c| format!("{:X}", u32::from(c))).collect::<Vec<_>>().join(" ")
            };
            let tsv: String =
                rules.iter().map(|(from, to)| format!("{}\t{}\n", codes(from), codes(to))).collect();
            assert_eq!(rules.iter().count(), count, "{name:?}");
            let found: String = Sha256::digest(&tsv).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, digest, "{name:?}");
            let map = rules.map().unwrap();
            assert!(rules.iter().all(|(from, to)| map.normalize(from) == to), "{name:?}");
            // The maps of sentencepiece have at most 247,165 bytes.
            assert!(map.to_bytes().len() < 400_000, "{name:?}: {}", map.to_bytes().len());
        }
    }
}
