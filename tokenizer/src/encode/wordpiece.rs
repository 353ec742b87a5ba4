//! WordPiece: the longest match first, from left to right, in time linear in the word.

use super::{Encode, Token};
use crate::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;

/// Settings of a WordPiece model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordPieceConfig {
    /// The token of a word that cannot be cut into tokens.
    pub(crate) unk_token: String,
    /// The prefix of the tokens inside a word.
    pub(crate) continuing_prefix: String,
    /// The most characters of a word. A longer word becomes the unknown token.
    pub(crate) max_word_chars: usize,
}

impl Default for WordPieceConfig {
    /// Returns the settings of BERT: `[UNK]`, `##` and 100 characters.
    fn default() -> Self {
        Self { unk_token: "[UNK]".to_owned(), continuing_prefix: "##".to_owned(), max_word_chars: 100 }
    }
}

/// Splits words into the longest tokens, from left to right.
///
/// A trie reads the word once. Where no transition matches, the state gives the tokens that certainly begin the part read so
/// far, and the state of its rest ("failure pops" and "failure link"). No byte is read twice, however long the tokens are.
///
/// # References
/// Song, Salcianu, Song, Dopson, Zhou 2021, "Fast WordPiece tokenization", <https://arxiv.org/abs/2012.15524>,
/// algorithms 1 and 2.
#[derive(Clone, Debug)]
pub(crate) struct WordPiece {
    vocabulary: Vocabulary,
    config: WordPieceConfig,
    unk_id: u32,
    edges: Edges,
    states: Vec<State>,
    pops: Vec<u32>,
}

/// The transitions, from a state and a byte to a state.
type Edges = FxHashMap<u64, u32>;

#[derive(Clone, Copy, Debug)]
struct State {
    /// The failure link: the state of the rest of the text read so far; `NOWHERE` if the word cannot be cut.
    fail: u32,
    /// The failure pops: the range in [`WordPiece::pops`] of the tokens to emit before the link is followed.
    pops: (u32, u32),
    /// The token that ends in this state.
    token: Option<u32>,
}

const NOWHERE: u32 = u32::MAX;
/// The state at the start of a word.
const START: u32 = 0;
/// The state after a token, inside a word.
const INSIDE: u32 = 1;

fn edge(state: u32, byte: u8) -> u64 {
    u64::from(state) << 8 | u64::from(byte)
}

impl WordPiece {
    /// Returns a model over `vocabulary`; `None` if it lacks the unknown token.
    pub(crate) fn new(vocabulary: Vocabulary, config: WordPieceConfig) -> Option<Self> {
        let unk_id = vocabulary.id(&config.unk_token)?;
        let none = State { fail: NOWHERE, pops: (0, 0), token: None };
        let (edges, states, pops) = (Edges::default(), vec![none; 2], Vec::new());
        let mut model = Self { vocabulary, config, unk_id, edges, states, pops };
        model.link();
        Some(model)
    }

    /// Adds a token's states and returns the last one. New states are listed in `born`, with depth, parent and byte.
    fn insert(&mut self, root: u32, token: &[u8], born: &mut Vec<(usize, u32, u32, u8)>) -> u32 {
        let mut state = root;
        for (depth, &byte) in token.iter().enumerate() {
            state = match self.edges.get(&edge(state, byte)) {
                Some(&next) => next,
                None => {
                    let next = self.states.len() as u32;
                    self.states.push(State { fail: NOWHERE, pops: (0, 0), token: None });
                    self.edges.insert(edge(state, byte), next);
                    born.push((depth, next, state, byte));
                    next
                }
            };
        }
        state
    }

    fn link(&mut self) {
        let mut born = Vec::new();
        let tokens = self.vocabulary.tokens().to_vec();
        for (id, token) in (0u32..).zip(&tokens) {
            // A token with the prefix can also open a word, where the word itself has it.
            let inner = token.strip_prefix(&self.config.continuing_prefix);
            for (root, text) in [(Some(START), token.as_str()), (inner.map(|_| INSIDE), inner.unwrap_or(""))]
            {
                if let Some(root) = root.filter(|_| !text.is_empty()) {
                    let last = self.insert(root, text.as_bytes(), &mut born);
                    self.states[last as usize].token = Some(id);
                }
            }
        }
        // A failure link leads to a shallower state, so states are linked in order of depth.
        born.sort_unstable_by_key(|(depth, ..)| *depth);
        for (_, state, parent, byte) in born {
            let from = self.pops.len() as u32;
            self.states[state as usize].fail = self.failure(state, parent, byte);
            if self.states[state as usize].fail == NOWHERE {
                self.pops.truncate(from as usize);
            }
            self.states[state as usize].pops = (from, self.pops.len() as u32);
        }
    }

    /// Returns the failure link of a state, and appends its pops to `self.pops`.
    fn failure(&mut self, state: u32, parent: u32, byte: u8) -> u32 {
        if let Some(token) = self.states[state as usize].token {
            self.pops.push(token);
            return INSIDE;
        }
        let mut at = parent;
        loop {
            let State { fail, pops: (from, to), .. } = self.states[at as usize];
            if fail == NOWHERE {
                return NOWHERE;
            }
            self.pops.extend_from_within(from as usize..to as usize);
            if let Some(&next) = self.edges.get(&edge(fail, byte)) {
                return next;
            }
            at = fail;
        }
    }

    /// Appends the tokens of the word. Returns whether all of it could be cut.
    fn match_all(&self, word: &[u8], out: &mut Vec<u32>) -> bool {
        let mut state = START;
        for &byte in word {
            loop {
                if let Some(&next) = self.edges.get(&edge(state, byte)) {
                    state = next;
                    break;
                }
                if !self.give_way(&mut state, out) {
                    return false;
                }
            }
        }
        while state != INSIDE && !word.is_empty() {
            if !self.give_way(&mut state, out) {
                return false;
            }
        }
        true
    }

    fn give_way(&self, state: &mut u32, out: &mut Vec<u32>) -> bool {
        let State { fail, pops: (from, to), .. } = self.states[*state as usize];
        out.extend_from_slice(&self.pops[from as usize..to as usize]);
        *state = fail;
        fail != NOWHERE
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub(crate) fn config(&self) -> &WordPieceConfig {
        &self.config
    }
}

impl Encode for WordPiece {
    fn kind(&self) -> &'static str {
        "WordPiece"
    }

    /// Appends the tokens of the word, or the unknown token alone.
    fn encode(&self, word: &str, out: &mut Vec<u32>) {
        let start = out.len();
        let too_long =
            word.len() > self.config.max_word_chars && word.chars().count() > self.config.max_word_chars;
        if too_long || !self.match_all(word.as_bytes(), out) {
            out.truncate(start);
            out.push(self.unk_id);
        }
    }

    fn tokens(&self, word: &str, out: &mut Vec<Token>) {
        let mut ids = Vec::new();
        self.encode(word, &mut ids);
        if ids == [self.unk_id] {
            return out.push(Token { id: self.unk_id, start: 0, end: word.len() });
        }
        let mut start = 0;
        for id in ids {
            let token = self.vocabulary.token(id).unwrap_or_default();
            // At the start of a word, the prefix is part of the text.
            let inner = token.strip_prefix(&self.config.continuing_prefix).filter(|_| start > 0);
            let end = start + inner.unwrap_or(token).len();
            out.push(Token { id, start, end });
            start = end;
        }
    }

    fn listed(&self) -> Option<&Vocabulary> {
        Some(&self.vocabulary)
    }

    fn unk_id(&self) -> Option<u32> {
        Some(self.unk_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_tokens_are_found_from_left_to_right() {
        let tokens = ["[UNK]", "un", "##aff", "##able"].map(str::to_owned);
        let vocabulary = Vocabulary::new(tokens.to_vec()).unwrap();
        let model = WordPiece::new(vocabulary, WordPieceConfig::default()).unwrap();
        let mut ids = Vec::new();
        model.encode("unaffable", &mut ids);
        assert_eq!(ids, [1, 2, 3]);
    }

    /// The definition: at each place the longest token, or the unknown token for the whole word.
    fn by_definition(vocabulary: &Vocabulary, word: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut rest = word;
        while !rest.is_empty() {
            let prefix = if rest.len() == word.len() { "" } else { "##" };
            let ends = (1..=rest.len()).rev().filter(|end| rest.is_char_boundary(*end));
            let longest = ends
                .into_iter()
                .find_map(|end| Some((vocabulary.id(&format!("{prefix}{}", &rest[..end]))?, end)));
            let Some((id, end)) = longest else { return vec![0] };
            ids.push(id);
            rest = &rest[end..];
        }
        ids
    }

    proptest! {
        #[test]
        fn linear_matching_equals_the_definition(
            tokens in prop::collection::btree_set("(##)?[abé#]{1,5}", 0..25),
            words in prop::collection::vec("[abé#]{1,14}", 1..20),
        ) {
            let tokens = std::iter::once("[UNK]".to_owned()).chain(tokens).collect();
            let vocabulary = Vocabulary::new(tokens).unwrap();
            let model = WordPiece::new(vocabulary.clone(), WordPieceConfig::default()).unwrap();
            for word in words {
                let mut ids = Vec::new();
                model.encode(&word, &mut ids);
                prop_assert_eq!(ids, by_definition(&vocabulary, &word), "{}", word);
            }
        }
    }

    #[test]
    fn words_longer_than_allowed_are_unknown() {
        let vocabulary = Vocabulary::new(["[UNK]", "é", "##é"].map(str::to_owned).to_vec()).unwrap();
        let model =
            WordPiece::new(vocabulary, WordPieceConfig { max_word_chars: 3, ..Default::default() }).unwrap();
        let mut ids = Vec::new();
        model.encode("ééé", &mut ids);
        model.encode("éééé", &mut ids);
        assert_eq!(ids, [1, 2, 2, 0]);
    }

    #[test]
    fn a_vocabulary_without_the_unknown_token_is_refused() {
        let vocabulary = Vocabulary::new(vec!["a".to_owned()]).unwrap();
        assert!(WordPiece::new(vocabulary, WordPieceConfig::default()).is_none());
    }
}
