//! Tokens that stand for themselves wherever they occur in a text.

use std::ops::Range;

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::encode::DoubleArray;

/// Tokens that are never cut and never made from ordinary text pieces.
pub(crate) struct SpecialTokens {
    pub(crate) tokens: Vec<(u32, String)>,
    /// The options of each token.
    pub(crate) options: Vec<TokenOptions>,
    /// The text that decoding shows for each token; empty if each token is shown as it is.
    forms: Vec<String>,
    /// Finds the tokens that are sought in the text as it is.
    as_written: Finder,
    /// Finds the tokens that are sought in the normalized text, if there are any.
    normalized: Option<Finder>,
}

/// The way in which a token is sought, as in `added_tokens` of a `tokenizer.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenOptions {
    /// Whether the token counts only where it touches no character of a word.
    pub(crate) single_word: bool,
    /// Whether the match also consumes the white space before the token.
    pub(crate) lstrip: bool,
    /// Whether the match also consumes the white space after the token.
    pub(crate) rstrip: bool,
    /// Whether the token is sought after normalization, in its normalized form.
    pub(crate) normalized: bool,
    /// Whether the token is for the model, not for a reader of the decoded text.
    pub(crate) special: bool,
}

impl Default for TokenOptions {
    fn default() -> Self {
        Self { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }
    }
}

/// A function that returns the part of the text that a token with options takes where it was found; `None` if it does
/// not count there. The last argument is the end of the token before.
type Extent = fn(TokenOptions, &str, Range<usize>, usize) -> Option<Range<usize>>;

impl SpecialTokens {
    /// Returns tokens that are sought as they are.
    pub(crate) fn new(tokens: Vec<(u32, String)>) -> Self {
        let options = vec![TokenOptions::default(); tokens.len()];
        let as_written = Finder::new(tokens.iter().map(|(id, name)| (*id, name.as_str())).collect());
        Self { tokens, options, forms: Vec::new(), as_written, normalized: None }
    }

    /// Returns tokens with options. `normalize` gives their normalized form.
    pub(crate) fn with_options(
        tokens: Vec<(u32, String)>,
        options: Vec<TokenOptions>,
        normalize: impl Fn(&str) -> String,
    ) -> Self {
        let forms: Vec<String> = tokens
            .iter()
            .zip(&options)
            .map(|((_, name), options)| if options.normalized { normalize(name) } else { name.clone() })
            .collect();
        let finder = |is_normalized| {
            let all = tokens.iter().zip(&options).zip(&forms);
            let some =
                all.filter(|((_, options), form)| options.normalized == is_normalized && !form.is_empty());
            let (tokens, options): (Vec<_>, Vec<_>) =
                some.map(|((token, options), form)| ((token.0, form.as_str()), *options)).unzip();
            let needs_extent = options.iter().any(|o: &TokenOptions| o.single_word || o.lstrip || o.rstrip);
            Finder { extent: needs_extent.then_some((extent as Extent, options)), ..Finder::new(tokens) }
        };
        let (as_written, normalized) = (finder(false), Some(finder(true)));
        let normalized = normalized.filter(|finder| !finder.ids.is_empty());
        Self { tokens, options, forms, as_written, normalized }
    }

    /// Hands the parts of a text to `take`, in order: each token with its id, and the text between tokens without one.
    #[inline]
    pub(crate) fn each_part(&self, text: &str, take: impl FnMut(Range<usize>, Option<u32>)) {
        self.as_written.each_part(text, take);
    }

    /// Returns the finder of the tokens that are sought in the normalized text, if there are any.
    #[inline]
    pub(crate) fn normalized(&self) -> Option<&Finder> {
        self.normalized.as_ref()
    }

    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.tokens.iter().find(|t| t.0 == id).map(|t| t.1.as_str())
    }

    /// Returns the text that decoding shows for a token: the form in which it is sought, as in Hugging Face tokenizers.
    pub(crate) fn shown(&self, id: u32) -> Option<&str> {
        let place = self.tokens.iter().position(|token| token.0 == id)?;
        self.forms.get(place).or(self.tokens.get(place).map(|token| &token.1)).map(String::as_str)
    }

    /// Whether `id` is one of these tokens, and for the model.
    pub(crate) fn is_for_the_model(&self, id: u32) -> bool {
        let place = self.tokens.iter().position(|token| token.0 == id);
        place.is_some_and(|place| self.options[place].special)
    }

    pub(crate) fn id(&self, name: &str) -> Option<u32> {
        self.tokens.iter().find(|t| t.1 == name).map(|t| t.0)
    }
}

/// Finds tokens in a text.
pub(crate) struct Finder {
    trie: DoubleArray,
    ids: Vec<u32>,
    /// The first bytes of the tokens, by which most of a text is skipped.
    opens: Vec<u8>,
    opens_any: Box<[bool; 256]>,
    /// The options of the tokens, if some have any.
    extent: Option<(Extent, Vec<TokenOptions>)>,
}

impl Finder {
    fn new(tokens: Vec<(u32, &str)>) -> Self {
        let (ids, names): (Vec<u32>, Vec<&str>) = tokens.into_iter().unzip();
        let mut opens: Vec<u8> = names.iter().filter_map(|name| name.bytes().next()).collect();
        opens.sort_unstable();
        opens.dedup();
        let mut opens_any = Box::new([false; 256]);
        opens.iter().for_each(|byte| opens_any[usize::from(*byte)] = true);
        Self { trie: DoubleArray::new(&names), ids, opens, opens_any, extent: None }
    }

    /// Hands the parts of a text to `take`, in order: each token with its id, and the text between tokens without one.
    #[inline]
    pub(crate) fn each_part(&self, text: &str, mut take: impl FnMut(Range<usize>, Option<u32>)) {
        let (mut from, mut last) = (0, 0);
        while let Some((found, index)) = self.find(text.as_bytes(), from) {
            from = found.end;
            let place = match &self.extent {
                None => Some(found),
                Some((extent, options)) => extent(options[index], text, found, last),
            };
            let Some(place) = place else { continue };
            if last < place.start {
                take(last..place.start, None);
            }
            last = place.end;
            take(place, Some(self.ids[index]));
        }
        if last < text.len() {
            take(last..text.len(), None);
        }
    }

    /// Returns the first token from `from` on, the longest where several start.
    fn find(&self, text: &[u8], mut from: usize) -> Option<(Range<usize>, usize)> {
        loop {
            let rest = &text[from..];
            let next = match *self.opens.as_slice() {
                [] => None,
                [a] => memchr::memchr(a, rest),
                [a, b] => memchr::memchr2(a, b, rest),
                [a, b, c] => memchr::memchr3(a, b, c, rest),
                _ => rest.iter().position(|byte| self.opens_any[usize::from(*byte)]),
            };
            let at = from + next?;
            let mut longest = None;
            self.trie.prefixes(&text[at..], |length, index| longest = Some((length, index)));
            if let Some((length, index)) = longest {
                return Some((at..at + length, index as usize));
            }
            from = at + 1;
        }
    }
}

fn extent(options: TokenOptions, text: &str, found: Range<usize>, last: usize) -> Option<Range<usize>> {
    let (before, after) = (&text[..found.start], &text[found.end..]);
    let touches_word =
        before.chars().next_back().is_some_and(is_word) || after.chars().next().is_some_and(is_word);
    if options.single_word && touches_word {
        return None;
    }
    let start = if options.lstrip { before.trim_end().len().max(last) } else { found.start };
    let end = if options.rstrip { text.len() - after.trim_start().len() } else { found.end };
    Some(start..end)
}

/// Whether `c` is a word character: `\w` of the `regex` crate.
fn is_word(c: char) -> bool {
    let is_mark = || c.general_category_group() == GeneralCategoryGroup::Mark;
    let is_word_category = || {
        matches!(c.general_category(), GeneralCategory::DecimalNumber | GeneralCategory::ConnectorPunctuation)
    };
    c.is_alphabetic() || matches!(c, '\u{200C}' | '\u{200D}') || is_mark() || is_word_category()
}
