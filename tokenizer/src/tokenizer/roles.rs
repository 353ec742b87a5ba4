//! Special tokens and their roles.

use super::{BLANK, EOS, PAD, Tokenizer, UNK};
use crate::encode::Model;
use crate::sentencepiece::{PieceKind, SentencePieceModel};
use crate::vocabulary::byte_token;

/// Usual names of the token that fills up short sequences.
pub(super) const PAD_NAMES: &[&str] = &[PAD, "[PAD]"];
/// Usual names of the token that ends a text.
pub(super) const EOS_NAMES: &[&str] = &[EOS, "[SEP]", "<|endoftext|>"];

/// The purpose of a special token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Fills up short sequences.
    Pad,
    /// Stands for text that is not in the vocabulary.
    Unk,
    /// Begins a text.
    Bos,
    /// Ends a text.
    Eos,
    /// Begins a text whose class is sought, as in BERT.
    Cls,
    /// Ends a part of a text, as in BERT.
    Sep,
    /// Hides a token.
    Mask,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 7] = [Self::Pad, Self::Unk, Self::Bos, Self::Eos, Self::Cls, Self::Sep, Self::Mask];

    /// Returns the name of the role, as in `pad_token` of a `tokenizer_config.json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pad => "pad",
            Self::Unk => "unk",
            Self::Bos => "bos",
            Self::Eos => "eos",
            Self::Cls => "cls",
            Self::Sep => "sep",
            Self::Mask => "mask",
        }
    }
}

/// The special tokens of a vocabulary that have a role, in the order of their ids, which are the first ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleTokens(Vec<(Role, String)>);

impl RoleTokens {
    /// Returns `<pad>`, `</s>` and `<unk>`, as in T5.
    #[must_use]
    pub fn of_t5() -> Self {
        let tokens = [(Role::Pad, PAD), (Role::Eos, EOS), (Role::Unk, UNK)];
        Self(tokens.map(|token| (token.0, token.1.to_owned())).to_vec())
    }

    /// Returns `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]`, as in BERT.
    #[must_use]
    pub fn of_bert() -> Self {
        let roles = [Role::Pad, Role::Unk, Role::Cls, Role::Sep, Role::Mask];
        Self(roles.iter().map(|role| (*role, format!("[{}]", role.name().to_ascii_uppercase()))).collect())
    }

    /// Returns these tokens after the `first` ones. Those whose role is among the `first` are left out.
    ///
    /// ```
    /// use tokenizer::{Role, RoleTokens};
    /// let tokens = RoleTokens::of_t5().after(vec![(Role::Unk, "<UNK>".to_owned()), (Role::Bos, "<s>".to_owned())]);
    /// assert_eq!(tokens.names().collect::<Vec<_>>(), ["<UNK>", "<s>", "<pad>", "</s>"]);
    /// ```
    #[must_use]
    pub fn after(self, mut first: Vec<(Role, String)>) -> Self {
        let taken = |role: Role| first.iter().any(|token| token.0 == role);
        let others: Vec<_> = self.0.into_iter().filter(|token| !taken(token.0)).collect();
        first.extend(others);
        Self(first)
    }

    /// Returns the names, in the order of their ids.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|token| token.1.as_str())
    }

    /// Returns the roles with their names.
    pub fn iter(&self) -> impl Iterator<Item = (Role, &str)> {
        self.0.iter().map(|(role, name)| (*role, name.as_str()))
    }

    /// Returns the id and the name of the token with this role.
    #[must_use]
    pub fn find(&self, role: Role) -> Option<(u32, &str)> {
        (0..).zip(self.iter()).find(|(_, token)| token.0 == role).map(|(id, token)| (id, token.1))
    }

    /// Returns the id of the token with this role.
    pub(crate) fn id(&self, role: Role) -> Option<u32> {
        self.find(role).map(|token| token.0)
    }

    /// Returns the first name that is not allowed: one that some piece of a vocabulary could have, the name of a byte,
    /// or one whose name or role is there already.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        let is_piece = |name: &str| {
            name.chars().count() < 2
                || name.starts_with("##")
                || name.contains(|c: char| c.is_whitespace() || c == BLANK)
        };
        let is_byte = |name: &str| (0..=255).any(|byte| byte_token(byte) == name);
        let is_again = |at: usize| self.0[..at].iter().any(|t| t.0 == self.0[at].0 || t.1 == self.0[at].1);
        let mut names = self.names().enumerate();
        names.find(|(at, name)| is_piece(name) || is_byte(name) || is_again(*at)).map(|(_, name)| name)
    }
}

/// The ids of the tokens of stated roles, in the order of [`Role::ALL`]; `None` for the other roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoleIds([Option<u32>; 7]);

impl RoleIds {
    pub(crate) fn of(self, role: Role) -> Option<u32> {
        Role::ALL.iter().zip(self.0).find(|(known, _)| **known == role).and_then(|(_, id)| id)
    }

    pub(super) fn from_names<'a>(tokenizer: &Tokenizer, name: impl Fn(Role) -> Option<&'a str>) -> Self {
        Self(Role::ALL.map(|role| name(role).and_then(|name| tokenizer.id(name))))
    }

    /// Returns the ids of padding and end, which the file states where its control symbols have unusual names.
    pub(crate) fn of_sentencepiece(file: &SentencePieceModel) -> Self {
        let stated = |id: i32| {
            let id = u32::try_from(id).ok()?;
            file.pieces.get(id as usize).filter(|piece| piece.kind == PieceKind::Control).map(|_| id)
        };
        Self(Role::ALL.map(|role| match role {
            Role::Pad => stated(file.special_ids.pad),
            Role::Eos => stated(file.special_ids.eos),
            _ => None,
        }))
    }
}

impl Tokenizer {
    /// Returns this tokenizer with tokens of these names in these roles. A name that is no token has no effect.
    #[must_use]
    pub fn with_roles(mut self, tokens: &RoleTokens) -> Self {
        self.roles = RoleIds::from_names(&self, |role| tokens.find(role).map(|token| token.1));
        self
    }

    /// Whether a `tokenizer_config.json` states that padding goes before a text.
    #[must_use]
    pub fn pads_left(&self) -> bool {
        self.pads_left
    }

    /// Returns the tokens that the file puts before a text that is encoded for a model, as `transformers` does.
    #[must_use]
    pub fn first_ids(&self) -> Vec<u32> {
        self.post_processor.first_ids()
    }

    /// Returns the id of the token with this role, if a `tokenizer_config.json` states it.
    #[must_use]
    pub fn stated_id(&self, role: Role) -> Option<u32> {
        self.roles.of(role)
    }

    /// Returns the id of the token that fills up short sequences: `<pad>`, or `[PAD]` in BERT, unless another is
    /// stated.
    #[must_use]
    pub fn pad_id(&self) -> Option<u32> {
        self.roles.of(Role::Pad).or_else(|| self.first_of(PAD_NAMES))
    }

    /// Returns the id of the token that ends a text: `</s>`, `[SEP]` in BERT, `<|endoftext|>` in GPT-2, unless another
    /// is stated.
    #[must_use]
    pub fn eos_id(&self) -> Option<u32> {
        let stated = self.roles.of(Role::Eos).or_else(|| self.roles.of(Role::Sep));
        stated.or_else(|| self.first_of(EOS_NAMES))
    }

    /// Returns the id of the token that starts a text: `[CLS]` in BERT, else that of [`Self::eos_id`], unless another
    /// is stated.
    #[must_use]
    pub fn bos_id(&self) -> Option<u32> {
        let stated = self.roles.of(Role::Bos).or_else(|| self.roles.of(Role::Cls));
        stated.or_else(|| self.first_of(&["[CLS]"])).or_else(|| self.eos_id())
    }

    pub(super) fn first_of(&self, names: &[&str]) -> Option<u32> {
        names.iter().find_map(|name| match &self.model {
            // A `.model` never finds its control symbols in text, so they are not among the special tokens.
            Model::SentencePiece(_) => self.model.id(name),
            _ => self.special.id(name),
        })
    }
}
