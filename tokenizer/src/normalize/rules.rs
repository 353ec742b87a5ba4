//! Rules of normalization as SentencePiece's trainer reads them, and the map that it compiles from them.

use std::collections::{BTreeMap, HashMap};

use super::Charsmap;
use crate::FormatError;

/// Texts to replace, each with its replacement.
///
/// ```
/// use tokenizer::normalize::NormalizationRules;
/// let rules = NormalizationRules::from_tsv("41\t61\t# A becomes a\nDF\t73 73\n1F600\t\n")?;
/// assert_eq!(rules.map()?.normalize("Aß😀!"), "ass!");
/// # Ok::<(), tokenizer::FormatError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NormalizationRules(BTreeMap<String, String>);

/// The children of a node lie within a block: a place for each byte.
const BLOCK: usize = 256;
/// The number of blocks at the end in which children are placed.
const LAST_BLOCKS: usize = 16;
/// The content of a unit that no byte leads to.
const UNUSED: u32 = 1 << 31;
/// The most units: offsets of children fit in 21 bits.
const MAX_UNITS: usize = 1 << 21;

impl NormalizationRules {
    /// Reads rules, one a line: the code points to replace, in hexadecimal and separated by spaces, a tab, those that replace
    /// them, and perhaps another tab and a comment. It is the format of `--normalization_rule_tsv` of SentencePiece.
    ///
    /// # Errors
    /// If a line is no such rule, a text is replaced by two others, or there is no rule.
    pub fn from_tsv(text: &str) -> Result<Self, FormatError> {
        let mut rules = BTreeMap::new();
        for (line, row) in (1..).zip(text.lines()).filter(|(_, row)| !row.trim().is_empty()) {
            let refused = |reason: String| FormatError::malformed("normalization rules", line, reason);
            let mut columns = row.split('\t');
            let (Some(from), Some(to)) = (columns.next(), columns.next()) else {
                return Err(refused(
                    "no tab; allowed: code points, a tab, code points, as in \"41 301\tC1\"".to_owned(),
                ));
            };
            let from = characters(from).map_err(refused)?;
            let to = characters(to).map_err(refused)?;
            if from.is_empty() {
                return Err(refused(
                    "nothing is replaced; allowed: at least one code point before the tab".to_owned(),
                ));
            }
            if rules.get(&from).is_some_and(|other| *other != to) {
                return Err(refused(format!(
                    "{from:?} is replaced by something else before; remove one of both rules"
                )));
            }
            rules.insert(from, to);
        }
        if rules.is_empty() {
            return Err(FormatError::malformed("normalization rules", 0, "there is no rule"));
        }
        Ok(Self(rules))
    }

    pub(super) fn of(rules: BTreeMap<String, String>) -> Self {
        Self(rules)
    }

    /// Returns each text to replace with its replacement, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(from, to)| (from.as_str(), to.as_str()))
    }

    /// Returns the first text of a rule, with or without a combining mark, to which Hugging Face's library applies the
    /// map in another way than SentencePiece: the library looks at single graphemes of up to five bytes, and takes the
    /// shortest rule with which one begins.
    #[must_use]
    pub fn read_otherwise(&self, map: &Charsmap) -> Option<String> {
        let forms = self.0.keys().flat_map(|from| [from.clone(), format!("{from}\u{301}")]);
        forms.into_iter().find(|from| map.normalize_graphemes(from) != map.normalize(from))
    }

    /// Compiles these rules to a map.
    ///
    /// # Errors
    /// If there are too many rules for the format, which holds far more than a million bytes of them.
    pub fn map(&self) -> Result<Charsmap, FormatError> {
        let mut replacements = Vec::new();
        let mut place_of: BTreeMap<&str, u32> = BTreeMap::new();
        let mut keys: Vec<(&[u8], u32)> = Vec::with_capacity(self.0.len());
        for (from, to) in &self.0 {
            let place = *place_of.entry(to).or_insert_with(|| {
                let place = replacements.len() as u32;
                replacements.extend(to.bytes().chain([0]));
                place
            });
            keys.push((from.as_bytes(), place));
        }
        let units = Builder::new().build(&keys).ok_or_else(|| {
            FormatError::malformed("normalization rules", 0, "too many for a map; leave some out")
        })?;
        let mut blob = ((units.len() * 4) as u32).to_le_bytes().to_vec();
        blob.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        blob.extend(replacements);
        Charsmap::from_bytes(&blob)
    }
}

fn characters(column: &str) -> Result<String, String> {
    column
        .split_whitespace()
        .map(|code| {
            let c = u32::from_str_radix(code, 16).ok().filter(|code| *code > 0).and_then(char::from_u32);
            c.ok_or_else(|| {
                format!("{code:?} is no code point in hexadecimal; allowed: 1 to 10FFFF without D800 to DFFF")
            })
        })
        .collect()
}

/// A node of a trie, which stands for all nodes with the same keys below.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Node {
    value: Option<u32>,
    /// The bytes in rising order, each with the number of its node.
    children: Vec<(u8, usize)>,
}

/// Returns the nodes of a trie of sorted keys, each kind once, the root last (Daciuk et al. 2000,
/// <https://aclanthology.org/J00-1002>).
fn nodes(keys: &[(&[u8], u32)]) -> Vec<Node> {
    let (mut nodes, mut known) = (Vec::new(), HashMap::new());
    // The nodes along the last key, which may still get children.
    let mut open = vec![Node::default()];
    let mut last: &[u8] = &[];
    let mut close = |open: &mut Vec<Node>, key: &[u8], depth: usize| {
        while open.len() > depth + 1 {
            let Some(node) = open.pop() else { return };
            let number = *known.entry(node).or_insert_with_key(|node| {
                nodes.push(node.clone());
                nodes.len() - 1
            });
            let byte = key[open.len() - 1];
            if let Some(parent) = open.last_mut() {
                parent.children.push((byte, number));
            }
        }
    };
    for &(key, value) in keys {
        let common = key.iter().zip(last).take_while(|(a, b)| a == b).count();
        close(&mut open, last, common);
        open.resize_with(key.len() + 1, Node::default);
        if let Some(node) = open.last_mut() {
            node.value = Some(value);
        }
        last = key;
    }
    close(&mut open, last, 0);
    nodes.extend(open);
    nodes
}

/// Builds a double array of darts-clone's format: the children of a node lie at `base ^ byte`, and its value at `base`. A unit
/// holds the byte that leads to it, whether the node has a value, and the difference to its base.
struct Builder {
    units: Vec<u32>,
    is_used: Vec<bool>,
    /// Whether each unit is a base. A unit does not say whose child it is, so two nodes share a base only if they have
    /// the same keys below.
    is_base: Vec<bool>,
}

impl Builder {
    fn new() -> Self {
        Self { units: vec![UNUSED; BLOCK], is_used: vec![false; BLOCK], is_base: vec![false; BLOCK] }
    }

    /// Returns the units of sorted keys; `None` if there are too many.
    fn build(mut self, keys: &[(&[u8], u32)]) -> Option<Vec<u32>> {
        let nodes = nodes(keys);
        let mut bases = vec![None; nodes.len()];
        self.is_used[0] = true;
        // SentencePiece refuses a root without an offset.
        self.is_base[0] = true;
        self.units[0] = 0;
        // Units, each with the number of the node that it leads to.
        let mut work = vec![(0, nodes.len() - 1)];
        while let Some((unit, number)) = work.pop() {
            let Node { value, children } = &nodes[number];
            let lead_to = |units: &mut [u32], base: usize| {
                units[unit] =
                    (units[unit] & 0xFF) | u32::from(value.is_some()) << 8 | ((unit ^ base) as u32) << 10;
            };
            if let Some(base) = bases[number] {
                lead_to(&mut self.units, base);
                continue;
            }
            // A value lies where the byte 0 would lead to, which no key has.
            let bytes = value.map(|_| 0).into_iter().chain(children.iter().map(|child| child.0));
            let base = self.place(&bytes.collect::<Vec<u8>>())?;
            bases[number] = Some(base);
            lead_to(&mut self.units, base);
            if let Some(value) = value {
                self.units[base] = value | UNUSED;
            }
            for &(byte, child) in children {
                let place = base ^ usize::from(byte);
                self.units[place] = u32::from(byte);
                work.push((place, child));
            }
        }
        Some(self.units)
    }

    /// Returns a base at which the units of all these bytes are free, and marks them as used.
    fn place(&mut self, bytes: &[u8]) -> Option<usize> {
        let first = usize::from(*bytes.first()?);
        // Free units further back are few, and looking for them takes longer than they are worth.
        let mut at = self.units.len().saturating_sub(LAST_BLOCKS * BLOCK);
        let base = loop {
            if at == self.units.len() {
                self.units.resize(self.units.len() + BLOCK, UNUSED);
                self.is_used.resize(self.units.len(), false);
                self.is_base.resize(self.units.len(), false);
            }
            let base = at ^ first;
            if !self.is_base[base] && bytes.iter().all(|byte| !self.is_used[base ^ usize::from(*byte)]) {
                break base;
            }
            at += 1;
        };
        self.is_base[base] = true;
        bytes.iter().for_each(|byte| self.is_used[base ^ usize::from(*byte)] = true);
        (self.units.len() <= MAX_UNITS).then_some(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: the longest rule at each place, from the left.
    fn by_definition(rules: &BTreeMap<String, String>, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(c) = rest.chars().next() {
            let longest =
                rules.iter().filter(|rule| rest.starts_with(rule.0.as_str())).max_by_key(|rule| rule.0.len());
            match longest {
                Some((from, to)) => {
                    out.push_str(to);
                    rest = &rest[from.len()..];
                }
                None => {
                    out.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn the_map_applies_the_longest_rule_at_each_place(
            rules in prop::collection::btree_map("[abcé\u{301}ß日]{1,4}", "[a-cß]{0,3}", 1..60),
            text in "[abcé\u{301}ß日 \u{0}]{0,40}",
        ) {
            let rules = NormalizationRules(rules);
            let map = rules.map().unwrap();
            prop_assert_eq!(map.normalize(&text), by_definition(&rules.0, &text));
            prop_assert_eq!(Charsmap::from_bytes(&map.to_bytes()).unwrap(), map);
        }

        #[test]
        fn any_text_is_read_as_rules_or_refused(text in "([0-9A-F]{1,6}[ \t]?|\\PC|\n)*") {
            if let Ok(rules) = NormalizationRules::from_tsv(&text) {
                rules.map().unwrap();
            }
        }
    }

    #[test]
    fn rules_that_are_none_are_refused_by_line() {
        for (text, expected) in [
            ("41\t61\n42", "(at 2)"),
            ("41\t61\n\tC1", "nothing is replaced; allowed"),
            ("D800\t61", "\"D800\" is no code point"),
            ("0\t61", "\"0\" is no code point"),
            ("110000\t61", "\"110000\" is no code point"),
            ("x\t61", "\"x\" is no code point"),
            ("41\t61\n41\t62", "\"A\" is replaced by something else before"),
            ("\n\n", "there is no rule"),
        ] {
            let refused = NormalizationRules::from_tsv(text).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text:?}: {refused}");
        }
    }

    #[test]
    fn a_map_of_rules_is_applied_as_the_one_that_sentencepiece_makes_of_them() {
        let file = include_bytes!("../../tests/fixtures/denormalized.model");
        let model = crate::sentencepiece::SentencePieceModel::from_bytes(file).unwrap();
        let theirs = Charsmap::from_bytes(&model.normalizer.precompiled_charsmap).unwrap();
        let ours = NormalizationRules::from_tsv("41\t61\n42\t62\t# B\r\nDF\t73 73\n").unwrap().map().unwrap();
        for text in ["A Bass straße, ABBA; Äß\u{301}", "", "x\u{0}\u{1}B"] {
            assert_eq!(ours.normalize(text), theirs.normalize(text));
            assert_eq!(ours.normalize_graphemes(text), theirs.normalize_graphemes(text));
        }
        let rules = NormalizationRules::from_tsv("41\t61\n41 301\tC1\n").unwrap();
        assert_eq!(rules.read_otherwise(&rules.map().unwrap()).as_deref(), Some("A\u{301}"));
        let rules = NormalizationRules::from_tsv("DF\t73 73\n3A9\t3C9\n").unwrap();
        assert_eq!(rules.read_otherwise(&rules.map().unwrap()).as_deref(), Some("ß\u{301}"));
        let rules = NormalizationRules::from_tsv("3002\t2E\n").unwrap();
        assert_eq!(rules.read_otherwise(&rules.map().unwrap()).as_deref(), Some("。\u{301}"));
    }

    #[test]
    fn what_many_rules_have_in_common_is_written_once() {
        let marks: String = (0x300..0x330).map(|mark| format!("\t{mark:X}\n")).collect();
        let tsv = |letters: std::ops::Range<u32>| -> String {
            let of = |letter: u32| {
                marks.lines().map(move |mark| format!("{letter:X} {}\t78\n", mark.trim())).collect::<String>()
            };
            letters.map(of).collect()
        };
        let bytes =
            |rules: String| NormalizationRules::from_tsv(&rules).unwrap().map().unwrap().to_bytes().len();
        assert!(bytes(tsv(0x3B1..0x3B3)) > bytes(tsv(0x3B1..0x3C9)) / 2);
        let map = NormalizationRules::from_tsv(&tsv(0x3B1..0x3C9)).unwrap().map().unwrap();
        let root = |rules: &str| {
            let blob = NormalizationRules::from_tsv(rules).unwrap().map().unwrap().to_bytes();
            u32::from_le_bytes([blob[4], blob[5], blob[6], blob[7]])
        };
        assert!(root("1\t\n") >> 10 > 0 && root("42\t62\n") >> 10 > 0, "a root without an offset");
        assert_eq!(map.normalize("\u{3B1}\u{300}\u{3C8}\u{32F}\u{3C9}\u{300}"), "xx\u{3C9}\u{300}");
    }

    #[test]
    fn many_rules_make_a_small_map() {
        let tsv: String =
            (0x4E00..0x9000).map(|code| format!("{code:X}\t{:X}\n{code:X} 301\t61\n", code + 1)).collect();
        let map = NormalizationRules::from_tsv(&tsv).unwrap().map().unwrap();
        assert_eq!(map.normalize("\u{4E00}\u{4E01}\u{301}\u{8FFF}x"), "\u{4E01}a\u{9000}x");
        // A unit for each node and each value, with some left free, and the replacements.
        assert!(map.to_bytes().len() < 1_000_000, "{}", map.to_bytes().len());
    }
}
