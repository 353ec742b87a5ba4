//! Whether two tokenizers give the same ids and texts, by a sample.

use super::Tokenizer;
use crate::decode::{Cleanup, Decoder};
use crate::encode::Model;
use crate::format::sentencepiece::PieceKind;

/// Texts in which the stages of tokenizers differ: blanks, case, accents, scripts, digits, punctuation.
const TEXTS: [&str; 34] = [
    "The quick brown fox jumps over the lazy dog.",
    "  two spaces  before, within and after  ",
    " one before",
    "one after ",
    "   ",
    "tab\tnewline\nreturn\r\nboth\n\n\nthree",
    "a\u{a0}no-break\u{3000}wide\u{2009}thin\u{200b}zero",
    "I'll won't can't they're we've I'd IT'S DON'T",
    "1234567890 3.14159 1,000,000 12/31/1999 ½ ² ٣ Ⅷ",
    "(brackets) [square] {curly} <angle> \"quotes\" 'single' ``tick``",
    "!!! ... --- ??? #hashtag @user $5 50% a&b a_b a-b a/b a\\b",
    "UPPER lower Mixed camelCase snake_case",
    "café naïve Ångström œuvre straße İstanbul ŒUVRE",
    "cafe\u{301} nai\u{308}ve A\u{30a}ngstro\u{308}m",
    "ﬁne ﬂow ＡＢＣ１２３ ｱｲｳ ㎏ ™ ①",
    "Привет, мир! Как дела? Ёлка",
    "你好，世界。我是一个学生。",
    "吾輩は猫である。名前はまだ無い。カタカナ、ひらがな",
    "안녕하세요 세계",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "שלום עולם",
    "Γειά σου Κόσμε Σίσυφος",
    "Ngày mai trời lại sáng",
    "😀 👩‍👩‍👧 🇫🇷 👍🏽 ❤️",
    "\u{2581}mark\u{2581}\u{2581}marks \u{2581} end\u{2581}",
    "control \u{1}\u{7f}\u{ad}\u{feff} characters \u{fffd}",
    "https://example.org/a?b=c&d=%20e#f name@example.org",
    "def f(x):\n    return x + 1  # comment\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "x",
    "-",
    "",
];

/// Tokens of the vocabulary that are tried as text, at most, and how many make a text.
const TOKENS: usize = 8192;
const TOKENS_A_TEXT: usize = 8;

impl Tokenizer {
    /// Where this tokenizer and another one differ first, on a sample of texts and of the vocabulary's own tokens. Special tokens
    /// are left out: only a `tokenizer.json` finds them in a text.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.vocab_size() != other.vocab_size() {
            return Some(format!("{} tokens become {}", self.vocab_size(), other.vocab_size()));
        }
        // Rules may be of characters that no sample holds.
        if self.denormalizer.is_some() != other.denormalizer.is_some() {
            return Some("a .model's rules for decoded text have no counterpart".to_owned());
        }
        let cleans_text = [self, other]
            .iter()
            .any(|tokenizer| matches!(tokenizer.decoder, Decoder::WordPiece { cleanup: Cleanup::Text, .. }));
        let (mut ours, mut theirs) = (self.encoder(), other.encoder());
        let mut texts: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
        texts.extend(self.texts_of_tokens());
        texts.iter().find_map(|text| {
            let (a, b) = (ours.encode(text), theirs.encode(text));
            if a != b {
                return Some(format!("{:?} becomes {}, there {}", start(text), listed(&a), listed(&b)));
            }
            // What is shown for unknown text, and around punctuation by BERT's own tools, is a matter of each format.
            let is_known = !a.iter().any(|id| Some(*id) == self.unk_id()) && !cleans_text;
            let (a, b) = (self.decode(&a), other.decode(&a));
            (is_known && a != b)
                .then(|| format!("{:?} is decoded to {:?}, there to {:?}", start(text), start(&a), start(&b)))
        })
    }

    fn texts_of_tokens(&self) -> Vec<String> {
        let step = self.vocab_size().div_ceil(TOKENS).max(1);
        let ids: Vec<u32> =
            (0..self.vocab_size() as u32).step_by(step).filter(|id| self.is_of_text(*id)).collect();
        let decoded = |ids: &[u32]| ids.iter().map(|id| self.decode(&[*id])).collect::<Vec<_>>();
        ids.chunks(TOKENS_A_TEXT)
            .enumerate()
            .map(|(n, ids)| decoded(ids).join(if n % 2 == 0 { " " } else { "" }))
            .collect()
    }

    /// Whether the token is learnt from text.
    fn is_of_text(&self, id: u32) -> bool {
        let is_piece = match &self.model {
            Model::SentencePiece(model) => {
                let kind = model.model().pieces.get(id as usize).map(|piece| piece.kind);
                matches!(kind, Some(PieceKind::Normal | PieceKind::UserDefined))
            }
            _ => self.special.name(id).is_none(),
        };
        is_piece && Some(id) != self.unk_id()
    }
}

fn start(text: &str) -> String {
    text.chars().take(40).collect()
}

fn listed(ids: &[u32]) -> String {
    let more = if ids.len() > 12 { " …" } else { "" };
    ids.iter().take(12).map(u32::to_string).collect::<Vec<_>>().join(" ") + more
}
