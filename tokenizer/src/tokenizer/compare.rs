//! Compares the ids and texts of two tokenizers on a sample.

use super::Tokenizer;
use crate::decode::Decoder;
use crate::encode::Model;
use crate::sentencepiece::{ModelType, PieceKind};

/// Texts in which the stages of tokenizers differ: blanks, case, accents, scripts, digits, punctuation.
const TEXTS: [&str; 34] = [
    "The quick brown fox jumps over the lazy dog.",
    "  two spaces  before, within and after  ",
    " one before",
    "one after ",
    "   ",
    "tab\tnewline\nreturn\rboth\n\n\nthree",
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

/// The most tokens of the vocabulary that are tried as text, and the number of them in a text.
const TOKENS: usize = 8192;
const TOKENS_A_TEXT: usize = 8;

impl Tokenizer {
    /// Returns the first difference between this tokenizer and another one, on a sample of texts and of the
    /// vocabulary's own tokens. Differences in few texts, which [`Self::rare_differences`] lists, are left out.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.vocab_size() != other.vocab_size() {
            return Some(format!("{} tokens become {}", self.vocab_size(), other.vocab_size()));
        }
        // The rules may concern characters that no text of the sample has.
        if self.denormalizer.is_identity() != other.denormalizer.is_identity() {
            return Some("a .model's rules for decoded text have no counterpart".to_owned());
        }
        let cleans_text = self.cleans_text() || other.cleans_text();
        let (mut ours, mut theirs) = (self.encoder(), other.encoder());
        let mut texts: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
        texts.extend(self.texts_of_tokens());
        texts.iter().find_map(|text| {
            let (a, b) = (ours.encode(text), theirs.encode(text));
            // With the same tokens in another order, the sums are equal but for roundings.
            let is_tie = self.is_summed_whole() != other.is_summed_whole() && sorted(&a) == sorted(&b);
            if a != b && !is_tie {
                let (a, b) = different(&a, &b);
                return Some(format!("{:?} becomes {a}, there {b}", start(text)));
            }
            // Formats differ in what they show for unknown text, and BERT's own tools change spaces around punctuation.
            let is_known = !a.iter().any(|id| Some(*id) == self.unk_id()) && !cleans_text;
            let (a, b) = (self.decode(&a), other.decode(&a));
            (is_known && a != b)
                .then(|| format!("{:?} is decoded to {:?}, there to {:?}", start(text), start(&a), start(&b)))
        })
    }

    /// Describes the differences in few texts that the formats of two tokenizers have by themselves. Apart from these
    /// and from [`Self::difference`], no text is known to be read otherwise.
    #[must_use]
    pub fn rare_differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let (mut ours, mut theirs) = (self.encoder(), other.encoder());
        let names = self.names_of_special_tokens().chain(other.names_of_special_tokens());
        let spelt = names.flat_map(|name| [format!("a {name} b"), format!("a{name}b"), name.to_owned()]);
        found.extend(spelt.into_iter().find_map(|text| {
            let (a, b) = (ours.encode(&text), theirs.encode(&text));
            (a != b).then(|| {
                let (a, b) = different(&a, &b);
                format!("a text that spells a special token: {:?} becomes {a}, there {b}", start(&text))
            })
        }));
        let blanks = ('\0'..='\u{3000}').filter(|c| c.is_whitespace()).map(String::from);
        // Some tokenizers read the line end of Windows as one blank.
        found.extend(blanks.chain(["\r\n".to_owned()]).find_map(|blank| {
            let (a, b) = (ours.encode(&format!("a{blank}b")), theirs.encode(&format!("a{blank}b")));
            let codes =
                blank.chars().map(|c| format!("U+{:04X}", u32::from(c))).collect::<Vec<_>>().join(" ");
            let (shown_a, shown_b) = different(&a, &b);
            (a != b).then(|| format!("blanks such as {codes}: {shown_a} becomes {shown_b}"))
        }));
        if self.is_summed_whole() != other.is_summed_whole() {
            found.push(
                "of segmentations with almost equal scores, another one may be chosen: a .model adds scores in single precision over \
                 the whole text, a tokenizer.json in double precision within a word"
                    .to_owned(),
            );
        }
        let unknown = |tokenizer: &Self| tokenizer.unk_id().map(|id| tokenizer.decode(&[id]));
        if !self.model.falls_back_to_bytes() && unknown(self) != unknown(other) {
            let [a, b] = [self, other].map(|tokenizer| unknown(tokenizer).unwrap_or_default());
            found.push(format!("unknown text is decoded to {a:?}, there to {b:?}"));
        }
        if self.cleans_text() != other.cleans_text() {
            found.push(
                "decoded text: a vocab.txt removes spaces before punctuation from the whole text, a tokenizer.json from each token"
                    .to_owned(),
            );
        }
        found
    }

    /// Whether scores are added over a whole text, not within a word; `None` if the model adds no scores.
    fn is_summed_whole(&self) -> Option<bool> {
        match &self.model {
            Model::Unigram(_) => Some(false),
            Model::SentencePiece(model) if model.model().model_type == ModelType::Unigram => Some(true),
            _ => None,
        }
    }

    fn cleans_text(&self) -> bool {
        matches!(self.decoder, Decoder::Bert { .. })
    }

    /// Returns the names of tokens that are for the model or stand for bytes, and of those that only some formats find
    /// in a text.
    pub fn names_of_special_tokens(&self) -> impl Iterator<Item = &str> {
        let pieces = match &self.model {
            Model::SentencePiece(model) => model.model().pieces.as_slice(),
            _ => &[],
        };
        let pieces = pieces.iter().filter(|piece| piece.kind != PieceKind::Normal);
        let pieces = pieces.map(|piece| piece.text.as_str());
        let bytes = self.model.falls_back_to_bytes().then_some(["<0x41>", "<0xE2>"]);
        self.special
            .tokens
            .iter()
            .map(|token| token.1.as_str())
            .chain(pieces)
            .chain(bytes.into_iter().flatten())
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

    /// Whether the token was learnt from text.
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

fn sorted(ids: &[u32]) -> Vec<u32> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

/// Returns the ids from a little before the first difference on.
fn different(a: &[u32], b: &[u32]) -> (String, String) {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count().saturating_sub(2);
    let listed = |ids: &[u32]| {
        let shown = ids.iter().skip(same).take(12).map(u32::to_string).collect::<Vec<_>>().join(" ");
        let (before, after) =
            (if same > 0 { "… " } else { "" }, if ids.len() > same + 12 { " …" } else { "" });
        format!("{before}{shown}{after}")
    };
    (listed(a), listed(b))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sentencepiece::SentencePieceModel;

    fn tokenizer(vocabulary: &[&str], pre_tokenizer: Value, decoder: Value) -> Tokenizer {
        let vocab: Value =
            (0..).zip(vocabulary).map(|(id, token)| ((*token).to_owned(), json!(id))).collect();
        let model = json!({"type": "WordLevel", "vocab": vocab, "unk_token": vocabulary[0]});
        let file = json!({"pre_tokenizer": pre_tokenizer, "decoder": decoder, "model": model});
        Tokenizer::from_json(&file.to_string()).unwrap()
    }

    fn words(vocabulary: &[&str]) -> Tokenizer {
        tokenizer(vocabulary, json!({"type": "WhitespaceSplit"}), Value::Null)
    }

    #[test]
    fn a_difference_in_one_stage_is_found() {
        let ours = words(&["<unk>", "qqq"]);
        assert_eq!(ours.difference(&ours), None);
        let found = |other: &Tokenizer| ours.difference(other).unwrap_or_default();
        assert_eq!(found(&words(&["<unk>", "qqq", "zzz"])), "2 tokens become 3");
        // No text of the sample has the word, only the vocabulary does.
        assert_eq!(found(&words(&["<unk>", "zzz"])), "\"qqq\" becomes 1, there 0");
        let replace = json!({"type": "Replace", "pattern": {"String": "q"}, "content": "x"});
        let other = tokenizer(&["<unk>", "qqq"], json!({"type": "WhitespaceSplit"}), replace);
        assert_eq!(found(&other), "\"qqq\" is decoded to \"qqq\", there to \"xxx\"");
        let file = include_bytes!("../../tests/fixtures/denormalized.model");
        let mut model = SentencePieceModel::from_bytes(file).unwrap();
        let with_rules = Tokenizer::from_sentencepiece(&model).unwrap();
        model.denormalizer = None;
        let without = Tokenizer::from_sentencepiece(&model).unwrap();
        assert!(with_rules.difference(&without).unwrap().contains("rules for decoded text"));
    }

    #[test]
    fn differences_of_few_texts_are_named() {
        let ours = words(&["<unk>", "a", "b"]);
        assert!(ours.rare_differences(&ours).is_empty());
        let at_spaces = json!({"type": "CharDelimiterSplit", "delimiter": " "});
        let other = tokenizer(&["<unk>", "a", "b"], at_spaces, Value::Null);
        assert!(ours.rare_differences(&other).iter().any(|found| found.starts_with("blanks such as U+0009")));
        let found = ours.rare_differences(&words(&["[UNK]", "a", "b"]));
        assert!(found.iter().any(|found| found.starts_with("unknown text is decoded")), "{found:?}");
    }
}
