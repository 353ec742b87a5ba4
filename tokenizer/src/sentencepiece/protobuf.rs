//! The part of Protocol Buffers' wire format that SentencePiece models use.
//!
//! # References
//! <https://protobuf.dev/programming-guides/encoding/>

use crate::FormatError;

/// The value of a field in wire format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl Value<'_> {
    pub(super) fn as_bool(self) -> Option<bool> {
        self.as_int().map(|x| x != 0)
    }

    /// Returns an `int32` or enum: sign-extended to 64 bits on the wire, cut to 32 by every reader.
    pub(super) fn as_int(self) -> Option<i32> {
        if let Value::Varint(x) = self { Some(x as i32) } else { None }
    }

    pub(super) fn as_float(self) -> Option<f32> {
        if let Value::Fixed32(x) = self { Some(f32::from_bits(x)) } else { None }
    }
}

/// The fields of a message in order, each with its raw bytes.
pub(super) struct Fields<'a> {
    format: &'static str,
    all: &'a [u8],
    at: usize,
}

/// A field: number, value, and its bytes with the tag.
pub(super) type Field<'a> = (u64, Value<'a>, &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(format: &'static str, message: &'a [u8]) -> Self {
        Self { format, all: message, at: 0 }
    }

    fn refuse<T>(&self, reason: &'static str) -> Result<T, FormatError> {
        Err(FormatError::malformed(self.format, self.at as u64, reason))
    }

    fn varint(&mut self) -> Result<u64, FormatError> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.all.get(self.at) else { return self.refuse("it ends within a number") };
            self.at += 1;
            value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.refuse("a number is longer than ten bytes")
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], FormatError> {
        let tail = &self.all[self.at..];
        match usize::try_from(length).ok().and_then(|n| tail.get(..n)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => self.refuse("a field is longer than what is left"),
        }
    }

    fn field(&mut self) -> Result<Field<'a>, FormatError> {
        let start = self.at;
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.take(8)?.try_into().map_or(0, u64::from_le_bytes)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(self.take(4)?.try_into().map_or(0, u32::from_le_bytes)),
            _ => return self.refuse("a field has an unknown wire type"),
        };
        Ok((tag >> 3, value, &self.all[start..self.at]))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.all.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.all.len();
        }
        Some(field)
    }
}

/// A message being written.
#[derive(Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(super) fn int(&mut self, number: u64, value: i32) {
        self.varint(number << 3);
        self.varint(i64::from(value) as u64);
    }

    pub(super) fn float(&mut self, number: u64, value: f32) {
        self.varint(number << 3 | 5);
        self.0.extend(value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_s_examples_are_read_and_written() {
        // Oracle: the encoding guide's own examples, 150 and "testing".
        let mut message = Message::default();
        message.int(1, 150);
        message.bytes(2, b"testing");
        assert_eq!(message.0, [&[0x08, 0x96, 0x01, 0x12, 0x07][..], b"testing"].concat());
        let values: Vec<_> = Fields::new("test", &message.0).map(|f| f.unwrap().1).collect();
        assert_eq!(values, [Value::Varint(150), Value::Bytes(b"testing")]);
    }

    #[test]
    fn negative_numbers_take_ten_bytes_and_come_back() {
        let mut message = Message::default();
        message.int(1, -1);
        assert_eq!(message.0.len(), 11);
        let (_, value, raw) = Fields::new("test", &message.0).next().unwrap().unwrap();
        assert_eq!(value.as_int(), Some(-1));
        assert_eq!(raw, message.0);
    }

    #[test]
    fn what_ends_too_early_is_refused_once() {
        for bad in [
            &[0x08][..],
            &[0x12, 5, 1],
            &[0x0D, 1],
            &[0x0B],
            &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
        ] {
            let fields: Vec<_> = Fields::new("test", bad).collect();
            assert!(fields.len() == 1 && fields[0].is_err(), "{bad:?}");
        }
    }
}
