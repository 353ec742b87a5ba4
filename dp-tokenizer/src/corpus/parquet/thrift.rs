//! Reads the figures of a parquet file for which the parquet crate takes memory or stack before it reads what they
//! count. The format's structures are in Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>).

/// The deepest nesting of structures.
const MOST_DEPTH: u32 = 64;

/// Types of fields in the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Whether the schema in the metadata of a file has no deeper groups and no more columns than it states. [`None`] if it ends too
/// soon.
pub(super) fn has_sound_schema(metadata: &[u8]) -> Option<bool> {
    let mut reader = Compact { bytes: metadata, at: 0 };
    if !reader.find(2, LIST)? {
        return Some(false);
    }
    let (kind, count) = reader.list()?;
    // The number of missing children of each group that has begun.
    let mut open: Vec<u64> = Vec::new();
    for place in 0..count {
        if kind != STRUCT || open.len() > MOST_DEPTH as usize || (open.is_empty() && place > 0) {
            return Some(false);
        }
        let children = reader.children()?;
        if children > count {
            return Some(false);
        }
        if let Some(missing) = open.last_mut() {
            *missing -= 1;
        }
        open.push(children);
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    Some(open.is_empty())
}

/// Returns the size that a page's header states for the page without compression. [`None`] if the header ends too soon,
/// or begins otherwise than those of all writers.
pub(super) fn uncompressed_size(header: &[u8]) -> Option<u64> {
    let mut reader = Compact { bytes: header, at: 0 };
    if !reader.find(2, I32)? {
        return None;
    }
    u64::try_from(reader.signed()?).ok()
}

/// Returns the type of an item of a list or a map. A truth value, which is the type of its field in a structure, is a
/// byte there.
fn of_item(kind: u8) -> u8 {
    if matches!(kind, TRUE | FALSE) { BYTE } else { kind }
}

struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        variable(self.bytes, &mut self.at)
    }

    /// Reads a signed number, whose sign is its last bit.
    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Moves to the content of the field `wanted`. Returns whether the structure has it with this type.
    fn find(&mut self, wanted: i64, kind: u8) -> Option<bool> {
        let mut before = 0;
        while let Some((number, found)) = self.field(&mut before)? {
            if number == wanted {
                return Some(found == kind);
            }
            self.skip(found, MOST_DEPTH)?;
        }
        Some(false)
    }

    /// Returns number and type of the next field of a structure; `Some(None)` at its end.
    fn field(&mut self, before: &mut i64) -> Option<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *before = match head >> 4 {
            0 => self.signed()?,
            step => before.checked_add(i64::from(step))?,
        };
        Some(Some((*before, head & 15)))
    }

    /// Returns type and number of the items of a list.
    fn list(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.unsigned()?,
            count => u64::from(count),
        };
        Some((head & 15, count))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.byte().map(|_| ()),
            I16 | I32 | I64 => self.unsigned().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.unsigned()?;
                self.pass(length)
            }
            LIST | SET => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip(of_item(kind), depth))
            }
            MAP => self.skip_map(depth),
            STRUCT => {
                let mut before = 0;
                while let Some((_, kind)) = self.field(&mut before)? {
                    self.skip(kind, depth)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn skip_map(&mut self, depth: u32) -> Option<()> {
        let count = self.unsigned()?;
        if count == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        (0..count).try_for_each(|_| {
            self.skip(of_item(kinds >> 4), depth)?;
            self.skip(of_item(kinds & 15), depth)
        })
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.at = usize::try_from(bytes).ok().and_then(|bytes| self.at.checked_add(bytes))?;
        (self.at <= self.bytes.len()).then_some(())
    }

    /// Returns the number of children of an element of a schema; a column has none.
    fn children(&mut self) -> Option<u64> {
        let (mut before, mut children) = (0, 0);
        while let Some((number, kind)) = self.field(&mut before)? {
            if (number, kind) == (5, I32) {
                // A number below 0 is refused as too large.
                children = u64::try_from(self.signed()?).unwrap_or(u64::MAX);
            } else {
                self.skip(kind, MOST_DEPTH)?;
            }
        }
        Some(children)
    }
}

/// Reads a number in LEB128 at `at`, which moves behind it: seven bits per byte, low bits first.
pub(super) fn variable(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
