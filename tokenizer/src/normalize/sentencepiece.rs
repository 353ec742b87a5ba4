//! SentencePiece's normalizer: the character map, then its rules for spaces.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::{Charsmap, Normalize};
use crate::FormatError;
use crate::aligned_text::AlignedText;
use crate::encode::DoubleArray;
use crate::pretokenize::METASPACE;
use crate::sentencepiece::{NormalizerSpec, PieceKind, SentencePieceModel};

/// Transforms a text into the form in which a `.model` finds pieces.
#[derive(Debug)]
pub(crate) struct SentencePieceNormalizer {
    map: Charsmap,
    /// User-defined symbols, which the map must leave alone.
    protected: DoubleArray,
    /// Whether each ASCII character stays as it is wherever another one follows; false for the blank.
    plain: [bool; 128],
    /// Whether a blank stays as it is wherever an ASCII character follows.
    plain_blank: bool,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    space: char,
    space_as_suffix: bool,
}

impl SentencePieceNormalizer {
    pub(crate) fn new(model: &SentencePieceModel) -> Result<Self, FormatError> {
        let of_user = model.pieces.iter().filter(|p| p.kind == PieceKind::UserDefined);
        let protected = of_user.map(|p| p.text.as_str()).collect();
        Self::with_spec(&model.normalizer, protected, model.treat_whitespace_as_suffix)
    }

    /// Returns the rules of a `.model` for decoded text, if it has any.
    pub(crate) fn of_decoded(model: &SentencePieceModel) -> Result<Option<Self>, FormatError> {
        let spec = model.denormalizer.as_ref().filter(|spec| !spec.precompiled_charsmap.is_empty());
        spec.map(|spec| Self::with_spec(spec, BTreeSet::new(), false)).transpose()
    }

    fn with_spec(
        spec: &NormalizerSpec,
        protected: BTreeSet<&str>,
        space_as_suffix: bool,
    ) -> Result<Self, FormatError> {
        let map = Charsmap::from_bytes(&spec.precompiled_charsmap)?;
        let mut plain = [false; 128];
        for (byte, plain) in (0..).zip(&mut plain) {
            let opens_symbol = protected.iter().any(|symbol| symbol.as_bytes().first() == Some(&byte));
            *plain = !opens_symbol && map.stays_before_ascii(byte);
        }
        let plain_blank = std::mem::replace(&mut plain[usize::from(b' ')], false);
        Ok(Self {
            map,
            plain,
            plain_blank,
            protected: DoubleArray::new(&protected.into_iter().collect::<Vec<_>>()),
            add_dummy_prefix: spec.add_dummy_prefix,
            remove_extra_whitespaces: spec.remove_extra_whitespaces,
            space: if spec.escape_whitespaces { METASPACE } else { ' ' },
            space_as_suffix,
        })
    }

    /// Returns the normal form. `places` gets, for each byte of the form and for its end, the byte of the text that had
    /// been reached.
    fn form(&self, text: &str, mut places: Option<&mut Vec<usize>>) -> String {
        let mut rest = text;
        if self.remove_extra_whitespaces {
            while let Some((" ", length)) = self.first(rest) {
                rest = &rest[length..];
            }
        }
        let mut out = String::with_capacity(text.len() + text.len() / 4);
        if rest.is_empty() {
            return out;
        }
        let is_aligned = places.is_some();
        let mut note = |length: usize, at: usize| {
            if let Some(places) = &mut places {
                places.resize(length, at);
            }
        };
        if self.add_dummy_prefix && !self.space_as_suffix {
            out.push(self.space);
            note(out.len(), text.len() - rest.len());
        }
        let mut follows_space = self.remove_extra_whitespaces;
        loop {
            if !is_aligned {
                let found_blank;
                (rest, found_blank) = self.copy_plain(rest, &mut out, &mut follows_space);
                if found_blank {
                    continue;
                }
            }
            let Some((form, length)) = self.first(rest) else { break };
            let form = if follows_space { form.trim_start_matches(' ') } else { form };
            out.extend(form.chars().map(|c| if c == ' ' { self.space } else { c }));
            note(out.len(), text.len() - rest.len());
            rest = &rest[length..];
            if !form.is_empty() {
                follows_space = self.remove_extra_whitespaces && form.ends_with(' ');
            }
        }
        let mut end = text.len();
        if self.remove_extra_whitespaces {
            // A literal mark at the end goes too: it looks like a space by now.
            let kept = out.trim_end_matches(self.space).len();
            if let Some(first) = places.as_ref().and_then(|places| places.get(kept)) {
                end = *first;
            }
            out.truncate(kept);
        }
        if self.add_dummy_prefix && self.space_as_suffix {
            out.push(self.space);
        }
        if let Some(places) = places {
            places.truncate(out.len());
            places.resize(out.len() + 1, end);
        }
        out
    }

    /// Copies the characters at the start of `text` that stay as they are, and a blank behind them. Returns the rest,
    /// and whether there was a blank.
    fn copy_plain<'a>(&self, text: &'a str, out: &mut String, follows_space: &mut bool) -> (&'a str, bool) {
        let (plain, rest) = text.split_at(self.plain_length(text.as_bytes()));
        out.push_str(plain);
        *follows_space &= plain.is_empty();
        if !self.plain_blank || !matches!(rest.as_bytes(), [b' ', 0..0x80, ..]) {
            return (rest, false);
        }
        if !*follows_space {
            out.push(self.space);
        }
        *follows_space = self.remove_extra_whitespaces;
        (&rest[1..], true)
    }

    /// Returns a number of characters at the start of `text` that certainly stay as they are.
    fn plain_length(&self, text: &[u8]) -> usize {
        let length =
            text.iter().take_while(|byte| self.plain.get(usize::from(**byte)) == Some(&true)).count();
        // The last one may belong to the character after it.
        length.saturating_sub(usize::from(text.get(length).is_some_and(|next| *next >= 0x80)))
    }

    /// Returns the normal form of the symbol, key or character that `text` starts with, and its length in `text`.
    fn first<'a>(&'a self, text: &'a str) -> Option<(&'a str, usize)> {
        let c = text.chars().next()?;
        let mut protected = None;
        self.protected.prefixes(text.as_bytes(), |length, _| protected = Some(length));
        if let Some(length) = protected {
            return Some((&text[..length], length));
        }
        let mapped = self.map.longest_match(text.as_bytes()).filter(|(n, _)| text.is_char_boundary(*n));
        Some(mapped.map_or((&text[..c.len_utf8()], c.len_utf8()), |(length, form)| (form, length)))
    }
}

impl Normalize for SentencePieceNormalizer {
    fn normalize<'a>(&self, text: &'a str, _: usize) -> Cow<'a, str> {
        Cow::Owned(self.form(text, None))
    }

    fn align(&self, text: &mut AlignedText, _: usize) {
        let mut places = Vec::new();
        let form = self.form(&text.text, Some(&mut places));
        let place = |at: usize| {
            text.spans.get(at).or(text.spans.last()).map_or(0, |span| match at {
                at if at < text.spans.len() => span.0,
                _ => span.1,
            })
        };
        let spans = places.windows(2).map(|two| (place(two[0]), place(two[1]))).collect();
        *text = AlignedText::from_spans(form, spans);
    }

    /// Returns the map alone. The rules for spaces are those of the stages that [`crate::format`] writes for a whole
    /// `.model`.
    fn json(&self) -> Value {
        self.map.json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentencepiece::{ModelType, Piece};

    fn normalizer(change: impl FnOnce(&mut SentencePieceModel)) -> SentencePieceNormalizer {
        let piece = Piece { text: "a  b".to_owned(), score: 0.0, kind: PieceKind::UserDefined };
        let mut model = SentencePieceModel::new(vec![piece], ModelType::Unigram);
        change(&mut model);
        SentencePieceNormalizer::new(&model).unwrap()
    }

    #[test]
    fn spaces_follow_the_settings() {
        // Oracle: SentencePiece 0.2.3's rules, `Normalizer::Normalize`.
        assert_eq!(normalizer(|_| {}).normalize("  x   y ", 0), "▁x▁y");
        assert_eq!(normalizer(|_| {}).normalize("   ", 0), "");
        assert_eq!(normalizer(|m| m.normalizer.add_dummy_prefix = false).normalize(" x", 0), "x");
        assert_eq!(
            normalizer(|m| m.normalizer.remove_extra_whitespaces = false).normalize(" x  y ", 0),
            "▁▁x▁▁y▁"
        );
        assert_eq!(normalizer(|m| m.normalizer.escape_whitespaces = false).normalize("x  y", 0), " x y");
        assert_eq!(normalizer(|m| m.treat_whitespace_as_suffix = true).normalize("x y", 0), "x▁y▁");
    }

    #[test]
    fn the_short_way_for_ascii_equals_the_way_with_places() {
        let file = include_bytes!("../../tests/fixtures/small.model");
        let mut model = SentencePieceModel::from_bytes(file).unwrap();
        model.pieces.push(Piece { text: "xy".to_owned(), score: 0.0, kind: PieceKind::UserDefined });
        let normalizer = SentencePieceNormalizer::new(&model).unwrap();
        assert!(normalizer.plain[usize::from(b'a')] && !normalizer.plain[usize::from(b'x')]);
        let parts = [
            "a", "e", "e\u{301}", "\u{301}", " ", "xy", "x", "\u{FB01}", "\t", "\u{2581}", "1/2", "\u{BD}",
            "…",
        ];
        let mut state = 1_u32;
        for _ in 0..3000 {
            let text: String = (0..8)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    parts[(state >> 16) as usize % parts.len()]
                })
                .collect();
            let mut aligned = AlignedText::new(&text, 0);
            normalizer.align(&mut aligned, 0);
            assert_eq!(normalizer.normalize(&text, 0), aligned.text, "{text:?}");
        }
    }

    #[test]
    fn symbols_of_the_user_are_left_alone() {
        assert_eq!(normalizer(|_| {}).normalize("x  a  b", 0), "▁x▁a▁▁b");
    }
}
