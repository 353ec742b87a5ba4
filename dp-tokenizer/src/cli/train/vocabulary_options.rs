//! The options of `train` that shape a vocabulary.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tokenizer::normalize::{NormalizationRules, RuleName};
use tokenizer::{Role, RoleTokens};

/// The public parts of a vocabulary, beside learnt pieces.
#[derive(Args)]
#[command(next_help_heading = "Vocabulary")]
pub(super) struct VocabularyOptions {
    /// Special token, as ROLE=NAME: pad=[PAD], unk=<unk>, bos=<s>, eos=</s>, cls=[CLS], sep=[SEP] or mask=[MASK]. May be
    /// repeated. The first ids are those of these tokens in the order given; roles that every vocabulary has follow.
    #[arg(long = "special-token", value_name = "ROLE=NAME", value_parser = role_token)]
    pub(super) special_tokens: Vec<RoleToken>,
    /// Symbol that is always one token (unigram, bpe, byte). May be repeated.
    #[arg(long = "symbol", value_name = "TEXT")]
    pub(super) symbols: Vec<String>,
    /// Number of T5 sentinels <extra_id_…> at the end of the vocabulary (unigram).
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) sentinels: usize,
    /// Share of all characters that the alphabet covers [default: 1 for unigram, 0.9995 for char].
    #[arg(long, value_name = "SHARE")]
    pub(super) character_coverage: Option<f64>,
    /// Normalization of the text (unigram).
    #[arg(long, value_enum, default_value = "none")]
    pub(super) normalizer: NormalizerName,
    /// Normalize with the character map of this SentencePiece .model, such as T5's nmt_nfkc (unigram).
    #[arg(long, value_name = "PATH", conflicts_with = "normalizer")]
    pub(super) normalizer_of: Option<PathBuf>,
    /// Normalize by the rules of this file, one a line as in SentencePiece's nmt_nfkc.tsv: hexadecimal code points, a tab, and
    /// those that replace them (unigram).
    #[arg(long, value_name = "FILE.tsv", conflicts_with_all = ["normalizer", "normalizer_of"])]
    pub(super) normalization_rules: Option<PathBuf>,
    /// Normalize by the rules that SentencePiece has under this name, those of its version 0.2.3 and Unicode 17 (unigram).
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["normalizer", "normalizer_of", "normalization_rules"])]
    pub(super) normalization_rule_name: Option<NormalizationRuleName>,
    /// Whether pieces end at blanks, as in SentencePiece. `false` (unigram, bpe) is `--words runs`: runs of words are released beside
    /// words and share the unit's bounded contribution, so that fewer words are found.
    #[arg(long, action = clap::ArgAction::Set, value_name = "BOOL", default_value = "true")]
    pub(super) split_by_whitespace: bool,
    /// Keep case and accents, as BERT cased does (wordpiece, word).
    #[arg(long)]
    pub(super) cased: bool,
    /// Leave out words whose released noisy count is below this. For public text: whose count is.
    #[arg(long, value_name = "COUNT")]
    pub(super) min_frequency: Option<f64>,
    /// Public characters that are tokens whatever the text holds (unigram, wordpiece, char).
    #[arg(long, value_name = "TEXT")]
    pub(super) required_characters: Option<String>,
    /// Most characters of a learnt token; bytes for bpe [default: 16 for unigram].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) max_piece_length: Option<u8>,
}

/// Normalizers that need no file.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NormalizerName {
    /// No normalization, as SentencePiece's identity.
    #[value(alias = "identity")]
    None,
    /// Unicode NFC.
    Nfc,
    /// Unicode NFKC.
    Nfkc,
    /// NFKC, then lower case.
    NfkcLowercase,
}

/// The names of SentencePiece's `--normalization_rule_name`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum NormalizationRuleName {
    /// NFKC, with white space and control characters cleaned up: SentencePiece's default.
    NmtNfkc,
    /// NFKC.
    Nfkc,
    /// As nmt_nfkc, with case folded.
    NmtNfkcCf,
    /// NFKC with case folded.
    NfkcCf,
    /// No normalization.
    Identity,
}

impl NormalizationRuleName {
    /// Returns the rules of the name; `None` for the identity.
    pub(super) fn rules(self) -> Option<NormalizationRules> {
        let name = match self {
            Self::NmtNfkc => RuleName::NmtNfkc,
            Self::Nfkc => RuleName::Nfkc,
            Self::NmtNfkcCf => RuleName::NmtNfkcCf,
            Self::NfkcCf => RuleName::NfkcCf,
            Self::Identity => return None,
        };
        Some(NormalizationRules::named(name))
    }
}

/// A special token with its role.
#[derive(Clone)]
pub(super) struct RoleToken {
    role: Role,
    name: String,
}

fn role_token(text: &str) -> Result<RoleToken, String> {
    let names = || Role::ALL.map(Role::name).join(", ");
    let (role, name) =
        text.split_once('=').ok_or_else(|| format!("allowed: ROLE=NAME, with a role of {}", names()))?;
    let role = Role::ALL.into_iter().find(|known| known.name() == role);
    let role = role.ok_or_else(|| format!("allowed roles: {}", names()))?;
    Ok(RoleToken { role, name: name.to_owned() })
}

impl VocabularyOptions {
    /// Returns the special tokens of a model: those of the options, then the others that the model has.
    pub(super) fn roles(&self, model: ModelName) -> RoleTokens {
        let usual = match model {
            ModelName::Wordpiece | ModelName::Word => RoleTokens::of_bert(),
            _ => RoleTokens::of_t5(),
        };
        usual.after(self.special_tokens.iter().map(|token| (token.role, token.name.clone())).collect())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ModelName {
    /// Pieces with probabilities (Kudo 2018).
    Unigram,
    /// Byte-level merges, as in GPT-2.
    Bpe,
    /// Longest match in lower case, as in BERT.
    Wordpiece,
    /// Whole words in lower case; others are unknown.
    Word,
    /// Single characters.
    Char,
    /// Single bytes; nothing is learnt.
    Byte,
}
