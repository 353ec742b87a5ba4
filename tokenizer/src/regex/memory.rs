//! The memory of a search: what became of each way from an operation at a place.

use rustc_hash::FxHashMap;

/// What a run of the matcher is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Match,
    /// The body of a look-around, of which only the existence of a match counts.
    Look,
    /// The body of an atomic group.
    Atomic,
}

/// A way that is being tried.
pub(super) struct Open {
    pub(super) op: u32,
    pub(super) at: usize,
    /// The height of the stack where it started.
    pub(super) height: usize,
}

/// The places of a page.
const PAGE: usize = 1 << 12;
/// The most pages, which take 1 GiB. Beyond them, outcomes are forgotten and found again.
const MAX_PAGES: usize = 1 << 20;
/// Of the ways that lead to the end of an atomic group, one in so many is remembered.
const SAMPLED: usize = 32;

/// A bit for each place of a page.
#[derive(Clone, Copy)]
struct Bits([u64; PAGE / 64]);

impl Bits {
    fn has(&self, at: usize) -> bool {
        self.0[at % PAGE / 64] >> (at % 64) & 1 == 1
    }

    fn set(&mut self, at: usize) {
        self.0[at % PAGE / 64] |= 1 << (at % 64);
    }
}

/// The outcomes of one operation at the places of a page.
struct Page {
    failed: Bits,
    /// Where the body of a look-around matches.
    matched: Bits,
}

/// The longest run of the characters of a set that was last seen by an operation.
#[derive(Clone, Copy)]
pub(super) struct KnownRun {
    from: usize,
    pub(super) end: usize,
    /// Beyond this place, no end of the run leads to a match.
    pub(super) untried: usize,
}

/// Outcomes of operations at places.
#[derive(Default)]
pub(super) struct Memory {
    pages: FxHashMap<u64, Box<Page>>,
    /// Ends of atomic groups.
    ends: FxHashMap<u64, usize>,
    runs: FxHashMap<u32, KnownRun>,
    pub(super) open: Vec<Open>,
}

fn key(op: u32, at: usize) -> u64 {
    u64::from(op) << 40 | at as u64
}

impl Memory {
    /// Returns what the way from `op` at `at` led to, if that is known: an end, or `None`.
    #[expect(clippy::option_option, reason = "an unknown outcome is not a failure")]
    pub(super) fn outcome(&self, op: u32, at: usize) -> Option<Option<usize>> {
        if let Some(page) = self.pages.get(&key(op, at / PAGE)) {
            if page.failed.has(at) {
                return Some(None);
            }
            if page.matched.has(at) {
                return Some(Some(at));
            }
        }
        self.ends.get(&key(op, at)).map(|end| Some(*end))
    }

    pub(super) fn note(&mut self, op: u32, at: usize, end: Option<usize>, purpose: Purpose) {
        match (end, purpose) {
            (None, _) => self.page(op, at).failed.set(at),
            (Some(_), Purpose::Match) => {}
            (Some(_), Purpose::Look) => self.page(op, at).matched.set(at),
            (Some(end), Purpose::Atomic) => {
                self.ends.insert(key(op, at), end);
            }
        }
    }

    fn page(&mut self, op: u32, at: usize) -> &mut Page {
        if self.pages.len() + self.ends.len() / 32 >= MAX_PAGES {
            self.pages = FxHashMap::default();
            self.ends = FxHashMap::default();
            self.runs.clear();
        }
        let empty = Bits([0; PAGE / 64]);
        self.pages
            .entry(key(op, at / PAGE))
            .or_insert_with(|| Box::new(Page { failed: empty, matched: empty }))
    }

    /// Notes the ways that have failed now that the stack is `height` high: those that started above.
    pub(super) fn fail_above(&mut self, height: usize) {
        while let Some(open) = self.open.pop_if(|open| open.height > height) {
            self.note(open.op, open.at, None, Purpose::Match);
        }
    }

    /// Ends a run of the matcher. The ways in `open` from `base` on led to its end.
    pub(super) fn close(&mut self, base: usize, end: Option<usize>, purpose: Purpose) {
        while self.open.len() > base {
            let Some(open) = self.open.pop() else { return };
            let is_noted = match purpose {
                Purpose::Atomic => end.is_none() || (self.open.len() - base).is_multiple_of(SAMPLED),
                Purpose::Match | Purpose::Look => true,
            };
            if is_noted {
                self.note(open.op, open.at, end, purpose);
            }
        }
    }

    /// Returns the longest run from `at` by the operation `op`; `length` is that of a character at a place, if it belongs to the set.
    pub(super) fn run(&mut self, op: u32, at: usize, length: impl Fn(usize) -> Option<usize>) -> KnownRun {
        let known = self.runs.get(&op).copied();
        if let Some(known) = known.filter(|known| (known.from..=known.end).contains(&at)) {
            return known;
        }
        let mut end = at;
        while let Some(length) = length(end) {
            end += length;
            if let Some(known) = known.filter(|known| known.from == end) {
                let longer = KnownRun { from: at, ..known };
                self.runs.insert(op, longer);
                return longer;
            }
        }
        let run = KnownRun { from: at, end, untried: end };
        self.runs.insert(op, run);
        run
    }

    /// Notes that no end beyond `at` of the run by `op` leads to a match.
    pub(super) fn tried_above(&mut self, op: u32, at: usize) {
        if let Some(run) = self.runs.get_mut(&op).filter(|run| (run.from..=run.end).contains(&at)) {
            run.untried = run.untried.min(at);
        }
    }
}
