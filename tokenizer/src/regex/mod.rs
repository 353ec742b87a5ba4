//! Regular expressions as Oniguruma reads them, for the stages of a `tokenizer.json`.
//!
//! A backtracking matcher with the operators that tokenizers use: classes, alternatives, greedy, lazy and possessive
//! repetition, atomic groups, look-ahead and look-behind of fixed width. Anything else is refused by name. The patterns of
//! current models become an automaton with the same matches. The time to find all matches of a text is at most proportional to
//! the size of the pattern × the length of the text, as long as what is remembered of a text fits into 1 GiB.
//!
//! # References
//! Oniguruma's `doc/RE`, syntax `ONIG_SYNTAX_ONIGURUMA`, which Hugging Face tokenizers uses.

mod automaton;
mod class;
mod grapheme;
mod memory;
mod node;
mod parse;
mod program;
mod search;

use std::ops::Range;

use crate::ascii_words::AsciiWords;
use automaton::Automaton;
pub(crate) use class::read as class;
use program::Program;
use search::Matcher;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Regex {
    source: String,
    program: Program,
    /// The automaton; `None` where an expression needs the search.
    automaton: Option<Automaton>,
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Regex {}

impl Regex {
    /// Compiles `source`.
    ///
    /// # Errors
    /// A message that says what is wrong or not supported, and where.
    pub(crate) fn new(source: &str) -> Result<Self, String> {
        let program = Program::new(&parse::parse(source)?)?;
        let automaton = Automaton::new(&program.ops, &program.sets, &program.entries);
        Ok(Self { source: source.to_owned(), program, automaton })
    }

    /// Returns the expression as it was written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Hands each match to `take`, from left to right. Matches do not overlap, and an empty one never follows another at once.
    pub(crate) fn each_match(&self, text: &str, mut take: impl FnMut(Range<usize>)) {
        self.each_with_key(text, |found, _| take(found));
    }

    /// Does what [`Self::each_match`] does, and passes on a match's [`crate::short_key::short_key`] if it was computed, else 0.
    #[inline]
    pub(crate) fn each_with_key(&self, text: &str, take: impl FnMut(Range<usize>, u128)) {
        let words = self.automaton.as_ref().and_then(|automaton| automaton.words.as_deref());
        each_match(Matcher::new(&self.program, self.automaton.as_ref(), text), words, text, take);
    }
}

#[inline]
fn each_match(
    mut matcher: Matcher<'_>,
    words: Option<&AsciiWords>,
    text: &str,
    mut take: impl FnMut(Range<usize>, u128),
) {
    let mut from = 0;
    let mut last_end = None;
    loop {
        let next = text.as_bytes().get(from..).and_then(|rest| rest.first_chunk());
        if let Some((length, key)) = words.zip(next).and_then(|(words, next)| words.short(next)) {
            take(from..from + length, key);
            from += length;
            last_end = Some(from);
            continue;
        }
        let Some(found) = matcher.next_from(from) else { return };
        if found.is_empty() && last_end == Some(found.end) {
            from = next_char(text, from);
            if from > text.len() {
                return;
            }
            continue;
        }
        from = found.end;
        last_end = Some(found.end);
        take(found, 0);
    }
}

/// Returns the start of the character after the one at `at`; past the end at the end.
fn next_char(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the matches, after comparing those of the automaton with those of the search.
    fn matches<'a>(pattern: &str, text: &'a str) -> Vec<&'a str> {
        let mut regex = Regex::new(pattern).unwrap();
        let found = |regex: &Regex| {
            let mut found = Vec::new();
            regex.each_match(text, |range| found.push(&text[range]));
            found
        };
        let first = found(&regex);
        if regex.automaton.take().is_some() {
            assert_eq!(found(&regex), first, "{pattern} {text:?}");
        }
        let mut with_memory = Vec::new();
        each_match(Matcher::with_memory(&regex.program, text), None, text, |range, _| {
            with_memory.push(&text[range]);
        });
        assert_eq!(with_memory, first, "{pattern} {text:?}");
        first
    }

    /// The patterns of GPT-4, GPT-4o, Qwen 2 and BLOOM, and runs with bounds.
    const OF_MODELS: [&str; 6] = [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r" ?[^(\s|[.,!?…。，、।۔،])]+",
        r"\s{2,}|[\n\r\t]",
        r"\s+$|a{2,3}+b|a{2,3}?c|x*y??z|[0-9]++1|\d{3}",
    ];

    #[test]
    fn patterns_of_models_are_automata() {
        for (number, pattern) in OF_MODELS.into_iter().enumerate() {
            let automaton = Regex::new(pattern).unwrap().automaton;
            // All but the last two have words of letters.
            assert_eq!(automaton.map(|automaton| automaton.words.is_some()), Some(number < 4), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn an_automaton_finds_what_the_search_finds(
            text in "([ \t\n\r]{0,3}([a-cx-zA-C]{1,6}|[0-9]{1,5}|'[a-zA-Z]{1,2}|[.,!?…/。é\u{301}ǅªЖ中٣½\u{a0}\u{2003}😀]{1,3})){0,12}"
        ) {
            for pattern in OF_MODELS {
                matches(pattern, &text);
            }
        }
    }

    #[test]
    fn matches_are_those_of_oniguruma() {
        // Oracle: `Split(Regex(pattern), "removed", invert=True)` of Hugging Face tokenizers 0.23.3.
        assert_eq!(
            matches("(?i:'s|'t)|\\p{N}{1,3}|\\s+(?!\\S)|\\s+", "IT'S 12345  a"),
            ["'S", " ", "123", "45", " ", " "]
        );
        assert_eq!(matches("a{2}+", "aaaaa"), ["aaaa"]);
        assert_eq!(matches("a{2}?b", "aab b"), ["aab", "b"]);
        assert_eq!(matches("a++a|b", "aaab"), ["b"]);
        assert_eq!(matches("(?<=a)b|(?<!a)c", "abcac"), ["b", "c"]);
        assert_eq!(matches("\\s+$", "a \nb  "), [" ", "  "]);
        assert_eq!(matches("a+\\z|b", "aba\nbaa"), ["b", "b", "aa"]);
        assert_eq!(matches("a\\Z|b", "aba\n"), ["b", "a"]);
        assert_eq!(matches("\\n(?!^)", "a\nb\n"), ["\n"]);
        assert_eq!(matches("(?>a|ab)c|.", "abc"), ["a", "b", "c"]);
        assert_eq!(matches("(?>ab|a)c|.", "abcac"), ["abc", "ac"]);
        assert_eq!(matches("\\bb|a\\B", "ab b ba"), ["a", "b", "b"]);
        assert_eq!(matches("\\p{L}+|.", "a\u{12000}b!"), ["a\u{12000}b", "!"]);
        assert_eq!(matches("a(?=bc)|b(?!cd)", "abcd ab abc"), ["a", "b", "a", "b"]);
        assert_eq!(matches("x*", "axxb"), ["", "xx", ""]);
    }

    /// Oracle: as above.
    #[test]
    fn named_classes_line_breaks_and_flags_are_those_of_oniguruma() {
        let cases: [(&str, &str, &[&str]); 15] = [
            ("[[:alpha:]]+", "ab1é\u{301} ξ_Ⅷ", &["ab", "é", "ξ", "Ⅷ"]),
            ("[[:^alnum:]x]+", "ab1x é!?٣", &["x ", "!?"]),
            ("[[:punct:]]+", "a$+!¿€_-·b", &["$+!¿€_-·"]),
            (
                "\\p{Graph}+",
                "a\u{a0}b\u{200d}c\u{85}d\u{e000} \u{378}e",
                &["a", "b\u{200d}c", "d\u{e000}", "e"],
            ),
            ("[^\\p{Print}]+", "a\u{2028}b\u{7}\n c", &["\u{2028}", "\u{7}\n"]),
            ("\\P{Alnum}+|\\p{^XDigit}", "a9 F-g", &[" ", "-", "g"]),
            ("[[:blank:]a-c]+", "a\t\u{3000}b\nc", &["a\t\u{3000}b", "c"]),
            ("\\R", "a\r\nb\n\r\u{2028}\u{85}c\u{b}", &["\r\n", "\n", "\r", "\u{2028}", "\u{85}", "\u{b}"]),
            ("(?x) a b # c )\n | [ c]", "ab c a b", &["ab", " ", "c", " ", " "]),
            ("(?m:a.b)|a.c", "a\nba\nca cb", &["a\nb", "a c"]),
            ("(?mi)A.b|c(?-m:.)d", "a\nBc\ndc d", &["a\nB", "c d"]),
            ("\\O+?b", "a\nb\nbb", &["a\nb", "\nb"]),
            ("[[:word:]]+", "a_é1-\u{200d}\u{301}Ⅷ", &["a_é1", "\u{301}Ⅷ"]),
            ("(?x)a b|(?-x: )", "ab a", &["ab", " "]),
            ("[[:lower:][:digit:]]+", "aB1ª٣Ⅷⅷ", &["a", "1ª٣", "ⅷ"]),
        ];
        for (pattern, text, want) in cases {
            assert_eq!(matches(pattern, text), want, "{pattern}");
        }
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        for (pattern, name) in [
            ("(a)\\1", "\\1"),
            ("(?<n>a)\\k<n>", "\\k"),
            ("(?~a)", "(?~"),
            ("(?W) a", "(?W"),
            ("(?x)a +", "nothing to repeat"),
            ("(a*)*", "repeats what can be empty"),
            ("(?<=a+)b", "look-behind"),
            ("[[:letter:]]", "[:letter:]"),
            ("[[:Alnum:]]", "[:Alnum:]"),
            ("[a--b]", "--"),
            ("[\\X]", "\\X"),
            ("a{1000}{1000}{1000}", "too large"),
            ("(?i:fi)", "(?i"),
            ("(a", "not closed"),
            ("a)", "not opened"),
            ("[a", "not closed"),
            ("*a", "nothing to repeat"),
            ("\\p{Nothing}", "\\p{Nothing}"),
        ] {
            let refused = Regex::new(pattern).unwrap_err();
            assert!(refused.contains(name), "{pattern}: {refused}");
        }
        assert!(Regex::new(&"(".repeat(100_000)).unwrap_err().contains("deep"));
    }

    /// Backtracking takes exponential time with the first three and quadratic time with the others: these 200,000 letters would take
    /// minutes.
    #[test]
    fn time_grows_with_the_text_however_a_pattern_backtracks() {
        let text = "a".repeat(200_000);
        let mut nested = "(?:a|a)*b".to_owned();
        for _ in 0..6 {
            nested = format!("(?:a(?={nested}|))*b");
        }
        let atomic = "(?:a(?>(?:a(?>(?:a(?=(?:a|a)*|))*|))*|)|a)*b";
        for none in [
            "(a|a)*b",
            &nested,
            atomic,
            "(?:a|a)+b|(?:a?a)+c",
            "a+b",
            "a++b",
            "a*a*a*b",
            "(?>(?:a|c)*)b",
            "a*?b",
            "a(?=a*b)",
            "a(?=(?:a(?=a*b))*b)",
            "(?:a(?=(?:c|a)*b))+",
            "\\ba+\\z(?!$)",
        ] {
            assert!(matches(none, &text).is_empty(), "{none}");
        }
        let text = format!("{text}b");
        for each in ["a(?=a*b)", "a(?=.*b)", "a(?=(?:a|c)*b)", "a(?=(?>(?:a|c)*)b)", "a(?!a*c)"] {
            assert_eq!(matches(each, &text).len(), 200_000, "{each}");
        }
        assert_eq!(matches("a*(?=b)", &text), [&text[..200_000]]);
    }

    /// Oracle: as above.
    #[test]
    fn clusters_are_those_of_oniguruma() {
        for (text, want) in [
            ("e\u{301}a\r\nb\u{200d}", &["e\u{301}", "a", "\r\n", "b\u{200d}"][..]),
            ("👨\u{200d}👩\u{200d}👧🇩🇪🇫🇷x🇦🇧🇨", &["👨\u{200d}👩\u{200d}👧", "🇩🇪", "🇫🇷", "x", "🇦🇧", "🇨"]),
            ("\u{1100}\u{1161}\u{11a8}각한\u{11a8}", &["\u{1100}\u{1161}\u{11a8}", "각", "한\u{11a8}"]),
            ("각\u{1161}가\u{1161}", &["각", "\u{1161}", "가\u{1161}"]),
            ("\u{600}a\u{301}\u{600}\n\u{301}", &["\u{600}a\u{301}", "\u{600}", "\n", "\u{301}"]),
            ("न\u{93f}क्ष", &["न\u{93f}", "क्", "ष"]),
            ("\u{e33}\u{e01}\u{e33}👍🏽\u{fe0f}", &["\u{e33}", "\u{e01}\u{e33}", "👍🏽\u{fe0f}"]),
            ("\u{200b}\u{301}©\u{200d}©a\u{200d}©", &["\u{200b}", "\u{301}", "©\u{200d}©", "a\u{200d}", "©"]),
        ] {
            assert_eq!(matches("\\X", text), want, "{text:?}");
        }
        assert_eq!(matches("\\X?b", "e\u{301}b"), ["e\u{301}b"]);
    }

    proptest! {
        /// Oracle: the definition, a set of all ends reached in order of preference, for patterns over a and b.
        #[test]
        fn the_first_match_in_order_of_preference_is_found(picks in prop::collection::vec(0..14_usize, 1..9), text in "[abc]{0,12}") {
            let pieces = ["a", "b", "[ab]", "a*", "(?:a|ab)", "(?:ab|a)", "b+?", "a??", "[ab]{1,2}", "(?!c)", "(?:b|c)*", "(?=(?:a|b)*c)", "(?>(?:a|ab)*)", "(?<=a|b)"];
            let pattern: String = picks.iter().map(|pick| pieces[*pick]).collect();
            let found = matches(&pattern, &text);
            let want = (0..=text.len()).find_map(|from| Some(from..ends(&picks, &text, from)?));
            let place = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
            let first = found.first().map(|word| place(word)..place(word) + word.len());
            prop_assert_eq!(first, want, "{}", pattern);
        }
    }

    /// Returns the preferred end of the pieces from `at` on.
    fn ends(picks: &[usize], text: &str, at: usize) -> Option<usize> {
        let Some((pick, others)) = picks.split_first() else { return Some(at) };
        let rest = &text[at..];
        let run = |set: &str| rest.chars().take_while(|c| set.contains(*c)).count();
        let lengths: Vec<usize> = match pick {
            0 => (1..=run("a").min(1)).collect(),
            1 => (1..=run("b").min(1)).collect(),
            2 => (1..=run("ab").min(1)).collect(),
            3 => (0..=run("a")).rev().collect(),
            4 => [1, 2].into_iter().filter(|n| rest.starts_with(&"ab"[..*n])).collect(),
            5 => [2, 1].into_iter().filter(|n| rest.starts_with(&"ab"[..*n])).collect(),
            6 => (1..=run("b")).collect(),
            7 => (0..=run("a").min(1)).collect(),
            8 => (1..=run("ab").min(2)).rev().collect(),
            9 => {
                if rest.starts_with('c') {
                    vec![]
                } else {
                    vec![0]
                }
            }
            10 => (0..=run("bc")).rev().collect(),
            11 => Vec::from_iter(rest[run("ab")..].starts_with('c').then_some(0)),
            // `a` is preferred to `ab`, so the group takes the letters a alone.
            12 => vec![run("a")],
            _ => Vec::from_iter(text[..at].ends_with(['a', 'b']).then_some(0)),
        };
        lengths.into_iter().find_map(|length| ends(others, text, at + length))
    }
}
