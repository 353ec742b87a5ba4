//! Finds the items of a text, 64 bytes at a time and without copying them.

use std::ops::Range;
use std::sync::OnceLock;

use mechanisms::Words;

use super::{BOUNDARY, Class, MAX_ITEM_CHARS, MAX_RUN_CHARS, OF_LABEL, classify};
use tokenizer::BLANK;

const EACH: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * EACH;

/// Calls `found` for each item with bytes that contain it, and its range there. Each blank in an item is one space
/// there.
#[inline]
pub(crate) fn scan(text: &str, words: Words, found: impl FnMut(&[u8], Range<usize>)) {
    match words {
        Words::Runs => scan_runs(text, found),
        Words::Pairs => scan_pairs(text, found),
        Words::PairsByLabel => scan_pairs_by_label(text, found),
        _ => scan_words(text, words, found),
    }
}

/// Finds words as written, each followed by the runs that end with it.
fn scan_runs(text: &str, mut found: impl FnMut(&[u8], Range<usize>)) {
    // The beginnings of the runs of two and three words that the next word ends. An item that is too long to be counted
    // leaves no run around it that is short enough.
    let mut begins = [None; 2];
    scan_words(text, Words::AsWritten, |bytes, item| {
        found(bytes, item.clone());
        // A literal mark is read as a blank from a copy, and ends a run.
        let is_word = std::ptr::eq(bytes, text.as_bytes()) && !text[item.clone()].trim().is_empty();
        if !(is_word && bytes[item.start] == b' ') {
            begins = [None; 2];
        }
        for from in begins.into_iter().flatten() {
            if text[from..item.end].chars().count() <= MAX_RUN_CHARS {
                found(bytes, from..item.end);
            }
        }
        begins = [is_word.then_some(item.start), begins[0]];
    });
}

/// Finds words by class, each followed by the pair that ends with it. The first word has a pair with the beginning of
/// the text, and the last one with its end.
fn scan_pairs(text: &str, mut found: impl FnMut(&[u8], Range<usize>)) {
    let fits =
        |item: &Range<usize>, others: usize| text[item.clone()].chars().count() + others <= MAX_ITEM_CHARS;
    let boundary = BOUNDARY.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
    // The range of the word before. No pair has a word that is too long to be counted.
    let mut before: Option<Range<usize>> = None;
    scan_words(text, Words::ByClass, |bytes, item| {
        found(bytes, item.clone());
        // A literal mark is read as a blank from a copy, and is in no pair.
        let is_of_text = std::ptr::eq(bytes, text.as_bytes());
        if is_of_text && item.start == 0 && fits(&item, 1) {
            let pair = [&boundary, &bytes[item.clone()]].concat();
            found(&pair, 0..pair.len());
        }
        if let Some(first) = before.take().filter(|first| is_of_text && first.end == item.start)
            && fits(&(first.start..item.end), 0)
        {
            found(bytes, first.start..item.end);
        }
        before = is_of_text.then_some(item);
    });
    if let Some(last) = before.filter(|last| last.end == text.len() && fits(last, 1)) {
        let pair = [&text.as_bytes()[last], &boundary].concat();
        found(&pair, 0..pair.len());
    }
}

/// Finds the words and pairs of the text after the first line, which is the label. Each of these words is also an item
/// together with the label, and so is a boundary if there is any word.
fn scan_pairs_by_label(text: &str, mut found: impl FnMut(&[u8], Range<usize>)) {
    let Some((label, text)) = text.split_once('\n') else { return scan_pairs(text, found) };
    scan_pairs(text, &mut found);
    let mut item = [label.as_bytes(), OF_LABEL.encode_utf8(&mut [0; 4]).as_bytes()].concat();
    let (begin, room) = (item.len(), MAX_ITEM_CHARS.saturating_sub(label.chars().count() + 1));
    let mut with_label = |word: &[u8]| {
        // Every byte of UTF-8 that does not continue a character begins one.
        if word.iter().filter(|byte| (**byte as i8) >= -0x40).count() <= room {
            item.truncate(begin);
            item.extend_from_slice(word);
            found(&item, 0..item.len());
        }
    };
    let mut has_words = false;
    scan_words(text, Words::ByClass, |bytes, word| {
        has_words = true;
        with_label(&bytes[word]);
    });
    if has_words {
        with_label(BOUNDARY.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

#[inline]
fn scan_words(text: &str, words: Words, mut found: impl FnMut(&[u8], Range<usize>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let mut begins = items_begin(bytes, at, words);
        if begins == 0 {
            at = scan_item(text, at, words, &mut found);
            continue;
        }
        let block = at;
        while begins != 0 {
            let end = block + begins.trailing_zeros() as usize;
            found(bytes, at..end);
            at = end;
            begins &= begins - 1;
        }
    }
}

/// Finds the item at `from`, of whatever characters. Returns where it ends.
fn scan_item(text: &str, from: usize, words: Words, found: &mut impl FnMut(&[u8], Range<usize>)) -> usize {
    let bytes = text.as_bytes();
    let (body, is_mark) = match bytes[from] {
        b' ' => (from + 1, false),
        0xE2 if text[from..].starts_with(BLANK) => (from + BLANK.len_utf8(), true),
        _ => (from, false),
    };
    let end = run_end(text, body, words);
    if end - from > MAX_ITEM_CHARS && text[from..end].chars().count() > MAX_ITEM_CHARS {
        return end;
    }
    if is_mark {
        let marked = [b" ", &bytes[body..end]].concat();
        found(&marked, 0..marked.len());
    } else {
        found(bytes, from..end);
    }
    end
}

/// Returns, as bits, which of the next 63 bytes begin an item, if one begins at `at`. The bits end at the first byte
/// outside ASCII, whose character may belong to the item before it. The text's end counts as a beginning. There are no
/// branches, so that each byte has a lane.
#[inline]
fn items_begin(bytes: &[u8], at: usize, words: Words) -> u64 {
    const SPACE_BAR: u8 = 8;
    // As written, letters and digits belong to the class of the other characters.
    let told_apart = if words == Words::ByClass { u8::MAX } else { 0 };
    let rest = &bytes[at..];
    let mut padded = [0; 64];
    let block: &[u8; 64] = match rest.first_chunk() {
        Some(block) => block,
        None => {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        }
    };
    // For a word of another script, this way gains nothing.
    if (block[0] | block[1]) >= 0x80 {
        return 0;
    }
    // The byte before the first is taken as blank: no item begins at the first.
    let mut classes = [SPACE_BAR; 65];
    for (class, &byte) in classes[1..].iter_mut().zip(block) {
        let letter = u8::from((byte | 0x20).wrapping_sub(b'a') < 26);
        let digit = u8::from(byte.wrapping_sub(b'0') < 10) << 1;
        let space = u8::from(byte.wrapping_sub(b'\t') < 5) << 2;
        *class = (letter | digit) & told_apart | space | u8::from(byte == b' ') << 3;
    }
    let mut begins = [0; 64];
    for (begin, pair) in begins.iter_mut().zip(classes.windows(2)) {
        *begin =
            u8::from(pair[1] == SPACE_BAR) | (u8::from(pair[1] != pair[0]) & u8::from(pair[0] != SPACE_BAR));
    }
    let known = match bits(&block.map(|byte| byte >> 7)).trailing_zeros() {
        outside if (outside as usize) < rest.len() => outside as usize,
        _ if rest.len() < 64 => return bits(&begins) & ((1 << rest.len()) - 2) | 1 << rest.len(),
        _ => 64,
    };
    bits(&begins) & (u64::MAX >> (64 - known)) & !1
}

/// Returns the lowest bit of each byte.
#[inline]
fn bits(bytes: &[u8; 64]) -> u64 {
    bytes.as_chunks::<8>().0.iter().rev().fold(0, |bits, &eight| {
        bits << 8 | u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

/// Returns where the run of one class ends that starts at `at`; `at` itself, if a blank or nothing follows.
#[inline]
fn run_end(text: &str, mut at: usize, words: Words) -> usize {
    let bytes = text.as_bytes();
    let Some((class, width)) = class_at(text, at, words) else { return at };
    at += width;
    loop {
        if class == Class::Letter {
            at += letters_at(bytes, at);
        }
        match class_at(text, at, words) {
            Some((same, width)) if same == class => at += width,
            _ => return at,
        }
    }
}

/// Returns class and width of the character at `at`; `None` for a blank and at the end.
#[inline]
fn class_at(text: &str, at: usize, words: Words) -> Option<(Class, usize)> {
    let byte = *text.as_bytes().get(at)?;
    if byte < 0x80 {
        return (byte != b' ').then(|| (ASCII[usize::from(byte)].bounding(words), 1));
    }
    let c = text[at..].chars().next().filter(|&c| c != BLANK)?;
    Some((class_of(c).bounding(words), c.len_utf8()))
}

static ASCII: [Class; 128] = {
    let mut classes = [Class::Other; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Number,
            b'\t'..=b'\r' => Class::Space,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

/// Returns the class of a character outside ASCII. A table serves the plane in daily use, since the search by category
/// is slow.
fn class_of(c: char) -> Class {
    static PLANE: OnceLock<Vec<Class>> = OnceLock::new();
    let of = |code: u32| char::from_u32(code).map_or(Class::Other, classify);
    match u16::try_from(u32::from(c)) {
        Ok(code) => PLANE.get_or_init(|| (0..=0xFFFF).map(of).collect())[usize::from(code)],
        Err(_) => classify(c),
    }
}

/// Returns the number of ASCII letters in a row at `at`.
#[inline]
fn letters_at(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(eight) = bytes.get(end..end + 8) {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        let word = u64::from_le_bytes(word);
        // Letters are lower-cased without the high bits. These are tested apart so that no addition carries over.
        let low = (word | (0x20 * EACH)) & !HIGH;
        let from_a = low + (0x80 - u64::from(b'a')) * EACH;
        let beyond_z = low + (0x7F - u64::from(b'z')) * EACH;
        let others = !(from_a & !beyond_z & !word) & HIGH;
        if others != 0 {
            return end + (others.trailing_zeros() / 8) as usize - at;
        }
        end += 8;
    }
    end += bytes[end.min(bytes.len())..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
    end - at
}

/// Returns the end of the piece that holds the first `n` words of a text and the white space before them; the text's
/// end if it has no more words.
pub(crate) fn words_end(text: &str, n: usize) -> usize {
    let mut at = 0;
    for _ in 0..n {
        at = skip_space(text, at);
        if at == text.len() {
            break;
        }
        at = skip_word(text, at);
    }
    if skip_space(text, at) == text.len() { text.len() } else { at }
}

fn skip_space(text: &str, mut at: usize) -> usize {
    while let Some(width) = space_at(text, at) {
        at += width;
    }
    at
}

fn skip_word(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        // Eight bytes are tested at a time, up to the first that may belong to white space.
        while let Some(eight) = bytes.get(at..at + 8) {
            let mut word = [0; 8];
            word.copy_from_slice(eight);
            let word = u64::from_le_bytes(word);
            let doubtful = ((word.wrapping_sub(0x21 * EACH) & !word) | word) & HIGH;
            if doubtful != 0 {
                at += (doubtful.trailing_zeros() / 8) as usize;
                break;
            }
            at += 8;
        }
        match bytes.get(at) {
            None => return at,
            Some(_) if space_at(text, at).is_some() => return at,
            Some(0..0x80) => at += 1,
            Some(_) => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
}

/// Returns the width of the white space at `at`, if there is any.
fn space_at(text: &str, at: usize) -> Option<usize> {
    match *text.as_bytes().get(at)? {
        b' ' | b'\t'..=b'\r' => Some(1),
        0..0x80 => None,
        _ => text[at..].chars().next().filter(|c| c.is_whitespace()).map(char::len_utf8),
    }
}
