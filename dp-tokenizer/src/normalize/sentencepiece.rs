//! SentencePiece's normaliser: the character map, then its rules for spaces.

use super::Charsmap;
use crate::aligned::Aligned;
use crate::encode::DoubleArray;
use crate::format::FormatError;
use crate::format::sentencepiece::{PieceKind, SentencePieceModel};
use crate::pretokenize::METASPACE;

/// Text to the form in which a `.model` looks for its pieces.
pub(crate) struct SentencePieceNormalizer {
    map: Charsmap,
    /// Symbols of the user, which the map must leave alone.
    protected: DoubleArray,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    space: char,
    space_as_suffix: bool,
}

impl SentencePieceNormalizer {
    pub(crate) fn new(model: &SentencePieceModel) -> Result<Self, FormatError> {
        let spec = &model.normalizer;
        let of_user = model.pieces.iter().filter(|p| p.kind == PieceKind::UserDefined);
        let protected: std::collections::BTreeSet<&str> = of_user.map(|p| p.text.as_str()).collect();
        Ok(Self {
            map: Charsmap::from_bytes(&spec.precompiled_charsmap)?,
            protected: DoubleArray::new(&protected.into_iter().collect::<Vec<_>>()),
            add_dummy_prefix: spec.add_dummy_prefix,
            remove_extra_whitespaces: spec.remove_extra_whitespaces,
            space: if spec.escape_whitespaces { METASPACE } else { ' ' },
            space_as_suffix: model.treat_whitespace_as_suffix,
        })
    }

    pub(crate) fn map(&self) -> &Charsmap {
        &self.map
    }

    pub(crate) fn normalize(&self, text: &str) -> String {
        self.form(text, None)
    }

    /// The same with the places of what it comes from.
    pub(crate) fn align(&self, text: &Aligned) -> Aligned {
        let mut places = Vec::new();
        let form = self.form(&text.text, Some(&mut places));
        let place = |at: usize| {
            text.spans.get(at).or(text.spans.last()).map_or(0, |span| match at {
                at if at < text.spans.len() => span.0,
                _ => span.1,
            })
        };
        let spans = places.windows(2).map(|two| (place(two[0]), place(two[1]))).collect();
        Aligned::from_spans(form, spans)
    }

    /// The normal form; `places` gets, for each of its bytes and its end, the byte of the text that had been reached.
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
        while let Some((form, length)) = self.first(rest) {
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

    /// The normal form of what `text` starts with, and its length.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::sentencepiece::{ModelType, Piece};

    fn normalizer(change: impl FnOnce(&mut SentencePieceModel)) -> SentencePieceNormalizer {
        let piece = Piece { text: "a  b".to_owned(), score: 0.0, kind: PieceKind::UserDefined };
        let mut model = SentencePieceModel::new(vec![piece], ModelType::Unigram);
        change(&mut model);
        SentencePieceNormalizer::new(&model).unwrap()
    }

    #[test]
    fn spaces_follow_the_settings() {
        // Oracle: SentencePiece 0.2.3's rules, `Normalizer::Normalize`.
        assert_eq!(normalizer(|_| {}).normalize("  x   y "), "▁x▁y");
        assert_eq!(normalizer(|_| {}).normalize("   "), "");
        assert_eq!(normalizer(|m| m.normalizer.add_dummy_prefix = false).normalize(" x"), "x");
        assert_eq!(
            normalizer(|m| m.normalizer.remove_extra_whitespaces = false).normalize(" x  y "),
            "▁▁x▁▁y▁"
        );
        assert_eq!(normalizer(|m| m.normalizer.escape_whitespaces = false).normalize("x  y"), " x y");
        assert_eq!(normalizer(|m| m.treat_whitespace_as_suffix = true).normalize("x y"), "x▁y▁");
    }

    #[test]
    fn symbols_of_the_user_are_left_alone() {
        assert_eq!(normalizer(|_| {}).normalize("x  a  b"), "▁x▁a▁▁b");
    }
}
