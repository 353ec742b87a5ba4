//! Classes of characters.

use regex_syntax::hir::{Class, ClassUnicode, HirKind};

/// A set of characters with a lookup in constant time.
#[derive(Clone, Debug)]
pub(super) struct Set {
    /// Whether the set has each ASCII character.
    pub(super) ascii: [bool; 128],
    /// For each 256 code points, the place of their bits.
    pages: Vec<u16>,
    bits: Vec<[u64; 4]>,
}

impl Set {
    /// The number of pages of 256 code points.
    pub(super) const PAGES: u32 = 0x11_0000 >> 8;

    pub(super) fn new(class: &ClassUnicode) -> Self {
        let mut set =
            Self { ascii: [false; 128], pages: Vec::with_capacity(Self::PAGES as usize), bits: Vec::new() };
        let mut ranges =
            class.ranges().iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).peekable();
        for page in 0..Self::PAGES {
            let (first, last) = (page << 8, page << 8 | 0xFF);
            let mut bits = [0_u64; 4];
            while let Some(&(from, to)) = ranges.peek().filter(|range| range.0 <= last) {
                fill(&mut bits, from.max(first) & 0xFF, to.min(last) & 0xFF);
                if to > last {
                    break;
                }
                ranges.next();
            }
            // Most pages are like the one before.
            let place = match set.pages.last() {
                Some(&last) if set.bits[usize::from(last)] == bits => usize::from(last),
                _ => set.bits.iter().position(|known| *known == bits).unwrap_or_else(|| {
                    set.bits.push(bits);
                    set.bits.len() - 1
                }),
            };
            set.pages.push(place as u16);
        }
        for (code, has) in (0..).zip(&mut set.ascii) {
            *has = set.bits[usize::from(set.pages[0])][code >> 6] >> (code & 63) & 1 == 1;
        }
        set
    }

    /// Whether `c` belongs to the set.
    #[inline]
    pub(super) fn has(&self, c: u32) -> bool {
        let Some(bits) = self.pages.get(c as usize >> 8).and_then(|page| self.bits.get(usize::from(*page)))
        else {
            return false;
        };
        bits[c as usize >> 6 & 3] >> (c & 63) & 1 == 1
    }

    /// Returns a number that identifies the bits of a page. Pages with equal bits have the same one.
    pub(super) fn page(&self, page: u32) -> u16 {
        self.pages[page as usize]
    }

    /// Whether any character outside ASCII belongs to the set.
    pub(super) fn is_beyond_ascii(&self) -> bool {
        let beyond = |page: &u16| self.bits.get(usize::from(*page)).is_some_and(|bits| *bits != [0; 4]);
        let first = self.pages.first().and_then(|page| self.bits.get(usize::from(*page)));
        self.pages[1..].iter().any(beyond) || first.is_some_and(|bits| bits[2] != 0 || bits[3] != 0)
    }
}

/// Sets the bits `from` to `to`.
fn fill(bits: &mut [u64; 4], from: u32, to: u32) {
    for (word, first) in bits.iter_mut().zip((0..).step_by(64)) {
        let (low, high) = (from.max(first), to.min(first + 63));
        if low <= high {
            *word |= (u64::MAX >> (63 - (high - low))) << (low & 63);
        }
    }
}

/// Returns the character outside ASCII at `at`, whose first byte is `first`, and its length.
#[inline]
pub(super) fn decode(bytes: &[u8], at: usize, first: u8) -> (u32, usize) {
    let tail = |number: usize| u32::from(bytes.get(at + number).map_or(0, |byte| byte & 0x3F));
    let first = u32::from(first);
    match first {
        0..=0xDF => ((first & 0x1F) << 6 | tail(1), 2),
        0xE0..=0xEF => ((first & 0xF) << 12 | tail(1) << 6 | tail(2), 3),
        _ => ((first & 7) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
    }
}

/// Returns the class of a single character.
pub(super) fn one(c: char) -> ClassUnicode {
    ClassUnicode::new([regex_syntax::hir::ClassUnicodeRange::new(c, c)])
}

/// Returns the class that `.` matches.
pub(super) fn any() -> ClassUnicode {
    let mut class = one('\n');
    class.negate();
    class
}

/// Oniguruma's `\w`, without the two joiners.
pub(super) const WORD: &str = "[\\w--[\\u200C\\u200D]]";
pub(super) const NO_WORD: &str = "[\\W\\u200C\\u200D]";

/// Returns the contents of a class that `[:name:]` stands for in Oniguruma's Unicode mode.
pub(super) fn posix(name: &str) -> Option<&'static str> {
    Some(match name {
        "alpha" => "\\p{Alphabetic}",
        "cntrl" => "\\p{Cc}",
        "digit" => "\\p{Nd}",
        "lower" => "\\p{Lowercase}",
        "punct" => "\\p{P}\\p{S}",
        "space" => "\\s",
        "upper" => "\\p{Uppercase}",
        "word" => WORD,
        other => return property(other).filter(|_| !other.contains(char::is_uppercase)),
    })
}

/// Returns the contents of a class that `\p{name}` stands for in Oniguruma, where that is no property of Unicode.
pub(super) fn property(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "alnum" => "\\p{Alphabetic}\\p{Nd}",
        "ascii" => "\\x00-\\x7F",
        "blank" => "\\p{Zs}\\t",
        "graph" => "[^\\s\\p{Cc}\\p{Cn}]",
        "print" => "[^\\p{Cc}\\p{Cn}\\p{Zl}\\p{Zp}]",
        "xdigit" => "0-9A-Fa-f",
        _ => return None,
    })
}

/// Reads the class that `source` writes: `[…]`, `\p{…}`, or an escape such as `\s`.
pub(crate) fn read(source: &str) -> Result<ClassUnicode, String> {
    let refused = || format!("{source} is no class of characters");
    let put = match source {
        "\\w" => WORD,
        "\\W" => NO_WORD,
        "\\h" => "[0-9A-Fa-f]",
        "\\H" => "[^0-9A-Fa-f]",
        other => other,
    };
    let hir = regex_syntax::parse(put).map_err(|_| refused())?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class),
        HirKind::Class(Class::Bytes(bytes)) => bytes.to_unicode_class().ok_or_else(refused),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).map_err(|_| refused())?;
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(one(c)),
                _ => Err(refused()),
            }
        }
        _ => Err(refused()),
    }
}
