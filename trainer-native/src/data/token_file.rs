//! Tokens on disk, as if the units' text had been encoded in memory.

use std::ops::Range;

use dp_tokenizer::tokens::TokenDataset;

use super::{TextIndex, WindowSpec};
use crate::RunError;

/// The units of a token file, or of text in its files, one after the other, each as [`super::Dataset`] describes it. Tokens stay on
/// disk.
pub(super) struct TokenFile {
    source: Source,
    eos: u32,
    stretches: Vec<Stretch>,
    length: usize,
}

enum Source {
    Tokens(TokenDataset),
    /// Text, which is encoded where it is read.
    Text(Box<TextIndex>),
}

/// A part of the units' tokens.
struct Stretch {
    /// Place of its first token.
    begin: usize,
    /// Where its tokens begin in the token file, or the number of its text; times 4, plus 2 if an end-of-text token precedes its
    /// tokens, plus 1 if one follows them.
    marked: u64,
}

impl Stretch {
    fn starts_with_eos(&self) -> bool {
        self.marked & 2 != 0
    }

    fn ends_with_eos(&self) -> bool {
        self.marked & 1 != 0
    }
}

/// The parts of all units as they are laid out.
struct Layout {
    spec: WindowSpec,
    stretches: Vec<Stretch>,
    /// Where each unit begins.
    starts: Vec<usize>,
    length: usize,
}

impl Layout {
    fn new(spec: WindowSpec) -> Self {
        Self { spec, stretches: Vec::new(), starts: Vec::new(), length: 0 }
    }

    fn begin_unit(&mut self) {
        self.starts.push(self.length);
    }

    fn add(&mut self, source: u64, tokens: u64, begins_record: bool, ends_record: bool) {
        let begins_unit = self.starts.last() == Some(&self.length);
        let marks =
            [self.spec.starts_with_eos(begins_record, begins_unit), self.spec.ends_with_eos(ends_record)];
        let [first, last] = marks.map(u64::from);
        self.stretches.push(Stretch { begin: self.length, marked: source << 2 | first << 1 | last });
        self.length += (first + tokens + last) as usize;
    }

    fn of(self, source: Source) -> (TokenFile, Vec<usize>) {
        let Self { spec, stretches, starts, length } = self;
        (TokenFile { source, eos: spec.eos, stretches, length }, starts)
    }
}

impl TokenFile {
    /// Lays out all units, and says where each begins.
    pub(super) fn new(data: TokenDataset, spec: WindowSpec) -> (Self, Vec<usize>) {
        let mut layout = Layout::new(spec);
        for unit in 0..data.units() {
            layout.begin_unit();
            let numbers = data.parts_of(unit).unwrap_or_default();
            for part in numbers.iter().filter_map(|&number| data.part(number)) {
                let tokens = part.tokens.end - part.tokens.start;
                layout.add(part.tokens.start, tokens, part.begins_record, part.ends_record);
            }
        }
        layout.of(Source::Tokens(data))
    }

    /// As above, of text in its files.
    pub(super) fn of_text(mut index: TextIndex, spec: WindowSpec) -> (Self, Vec<usize>) {
        let mut layout = Layout::new(spec);
        let mut unit = None;
        for (number, part) in (0..).zip(index.take_lengths()) {
            // A unit has text: it is numbered when a record of it is read.
            if unit.replace(part.unit) != Some(part.unit) {
                layout.begin_unit();
            }
            layout.add(number, part.tokens.into(), part.begins_record, part.ends_record);
        }
        layout.of(Source::Text(Box::new(index)))
    }

    /// Tokens of all units.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The tokens at these places.
    pub(super) fn read(&self, places: Range<usize>) -> Result<Vec<u32>, RunError> {
        let (mut window, mut some) = (Vec::with_capacity(places.len()), Vec::new());
        let mut at = places.start;
        let first = self.stretches.partition_point(|stretch| stretch.begin <= at).saturating_sub(1);
        for (number, stretch) in self.stretches.iter().enumerate().skip(first) {
            let end = self.stretches.get(number + 1).map_or(self.length, |next| next.begin);
            if at >= places.end {
                break;
            }
            // Places count from the end-of-text token before the tokens, if there is one.
            let own = stretch.begin + usize::from(stretch.starts_with_eos());
            if at < own && at < end {
                window.push(self.eos);
                at += 1;
            }
            let to = places.end.min(end - usize::from(stretch.ends_with_eos()));
            if at < to {
                self.tokens(stretch, at - own..to - own, &mut some)?;
                window.extend_from_slice(&some);
                at = to;
            }
            if at < end.min(places.end) {
                window.push(self.eos);
                at += 1;
            }
        }
        Ok(window)
    }

    /// Replaces `out` by some tokens of a stretch.
    fn tokens(&self, stretch: &Stretch, range: Range<usize>, out: &mut Vec<u32>) -> Result<(), RunError> {
        let source = stretch.marked >> 2;
        match &self.source {
            Source::Tokens(data) => data
                .read(source + range.start as u64..source + range.end as u64, out)
                .map_err(|error| RunError::Failed(format!("data.source: {error}"))),
            Source::Text(index) => {
                let tokens = index.tokens(source as usize)?;
                let own = tokens.get(range).ok_or_else(|| {
                    RunError::Failed(
                        "data.source: a record has another number of tokens than before".to_owned(),
                    )
                })?;
                out.clear();
                out.extend_from_slice(own);
                Ok(())
            }
        }
    }
}
