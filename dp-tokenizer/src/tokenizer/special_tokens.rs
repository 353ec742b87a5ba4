//! Tokens that stand for themselves wherever they occur in a text.

use crate::encode::DoubleArray;

/// Tokens that are never cut and never made from ordinary text pieces.
pub(crate) struct SpecialTokens {
    pub(crate) tokens: Vec<(u32, String)>,
    trie: DoubleArray,
    /// First bytes of the tokens. Most of a text is skipped by these alone.
    opens: Vec<u8>,
}

impl SpecialTokens {
    pub(crate) fn new(tokens: Vec<(u32, String)>) -> Self {
        let names: Vec<&str> = tokens.iter().map(|t| t.1.as_str()).collect();
        let mut opens: Vec<u8> = names.iter().filter_map(|name| name.bytes().next()).collect();
        opens.sort_unstable();
        opens.dedup();
        Self { trie: DoubleArray::new(&names), tokens, opens }
    }

    /// The first special token in `text`: where it starts, where it ends, its id.
    pub(crate) fn find(&self, text: &str) -> Option<(usize, usize, u32)> {
        let bytes = text.as_bytes();
        let mut from = 0;
        loop {
            let rest = &bytes[from..];
            let next = match *self.opens.as_slice() {
                [] => None,
                [a] => memchr::memchr(a, rest),
                [a, b] => memchr::memchr2(a, b, rest),
                [a, b, c] => memchr::memchr3(a, b, c, rest),
                _ => rest.iter().position(|byte| self.opens.contains(byte)),
            };
            let at = from + next?;
            let mut longest = None;
            self.trie.prefixes(&bytes[at..], |length, index| longest = Some((length, index)));
            if let Some((length, index)) = longest {
                return Some((at, at + length, self.tokens[index as usize].0));
            }
            from = at + 1;
        }
    }

    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.tokens.iter().find(|t| t.0 == id).map(|t| t.1.as_str())
    }

    pub(crate) fn id(&self, name: &str) -> Option<u32> {
        self.tokens.iter().find(|t| t.1 == name).map(|t| t.0)
    }
}
