//! Mentions of entities in tags of words, as conlleval and seqeval count them.
//!
//! # References
//! `seqeval.metrics.sequence_labeling.get_entities` (version 1.2.2), which equals conlleval.pl on tags with a prefix.

/// A mention: its type, and the places of its first and last word.
pub(super) type Mention<'a> = (&'a str, usize, usize);

/// The mentions in the tags of one sentence: B, I, E and S before a type, and O. A change of type ends a mention, and an I
/// after an O begins one.
pub(super) fn mentions<'a>(tags: &[&'a str]) -> Vec<Mention<'a>> {
    let (mut found, mut begin) = (Vec::new(), 0);
    let mut last = Tag::parse("O");
    for (place, tag) in tags.iter().copied().chain(["O"]).map(Tag::parse).enumerate() {
        if last.ends_before(tag) {
            found.push((last.kind, begin, place - 1));
        }
        if tag.begins_after(last) {
            begin = place;
        }
        last = tag;
    }
    found
}

#[derive(Clone, Copy)]
struct Tag<'a> {
    /// B, I, E, S or O.
    prefix: char,
    kind: &'a str,
}

impl<'a> Tag<'a> {
    fn parse(tag: &'a str) -> Self {
        let prefix = tag.chars().next().unwrap_or('O');
        let rest = tag.get(prefix.len_utf8()..).unwrap_or_default();
        let kind = rest.split_once('-').map_or(rest, |(_, kind)| kind);
        Self { prefix, kind: if kind.is_empty() { "_" } else { kind } }
    }

    fn is_outside(self) -> bool {
        matches!(self.prefix, 'O' | '.')
    }

    fn ends_before(self, next: Self) -> bool {
        match (self.prefix, next.prefix) {
            ('E' | 'S', _) | ('B' | 'I', 'B' | 'S' | 'O') => true,
            _ => !self.is_outside() && self.kind != next.kind,
        }
    }

    fn begins_after(self, last: Self) -> bool {
        match (last.prefix, self.prefix) {
            (_, 'B' | 'S') | ('E' | 'S' | 'O', 'E' | 'I') => true,
            _ => !self.is_outside() && self.kind != last.kind,
        }
    }
}
