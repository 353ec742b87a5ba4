//! Parquet files that state what they do not hold, or hold more than anybody wants to read, byte by byte
//! (<https://github.com/apache/parquet-format>).

#![allow(dead_code, reason = "each test uses a part")]

use std::io::Write;

/// A structure in Thrift's compact protocol: fields by number, in ascending order.
#[derive(Default)]
struct Structure {
    bytes: Vec<u8>,
    last: u8,
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

impl Structure {
    fn field(mut self, number: u8, kind: u8, content: &[u8]) -> Self {
        self.bytes.push((number - self.last) << 4 | kind);
        self.bytes.extend(content);
        self.last = number;
        self
    }

    fn i32(self, number: u8, value: i64) -> Self {
        self.field(number, 5, &varint((value << 1 ^ value >> 63) as u64))
    }

    fn i64(self, number: u8, value: i64) -> Self {
        self.field(number, 6, &varint((value << 1 ^ value >> 63) as u64))
    }

    fn text(self, number: u8, text: &str) -> Self {
        self.field(number, 8, &[&varint(text.len() as u64), text.as_bytes()].concat())
    }

    fn structure(self, number: u8, inner: Self) -> Self {
        self.field(number, 12, &inner.end())
    }

    /// Adds a list of structures that states `count` of them.
    fn list(self, number: u8, count: u64, items: Vec<Self>) -> Self {
        self.list_of(number, count, &items.into_iter().flat_map(Self::end).collect::<Vec<u8>>())
    }

    fn list_of(self, number: u8, count: u64, items: &[u8]) -> Self {
        self.field(number, 9, &[&[0xFC], varint(count).as_slice(), items].concat())
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn group(name: &str, children: i64) -> Structure {
    Structure::default().i32(3, 0).text(4, name).i32(5, children)
}

fn text_column() -> Structure {
    Structure::default().i32(1, 6).i32(3, 0).text(4, "text").i32(6, 0)
}

/// Returns a file with this metadata behind these pages.
fn file(pages: &[u8], metadata: Structure) -> Vec<u8> {
    let metadata = metadata.end();
    [b"PAR1", pages, &metadata, &(metadata.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

/// Returns a file of one column of texts in these pages, which states this many rows.
fn texts(pages: &[u8], codec: i64, rows: i64) -> Vec<u8> {
    groups_of_texts(pages, codec, rows, 1)
}

/// Does what [`texts`] does, with `groups` groups of rows, all of which have the same pages.
fn groups_of_texts(pages: &[u8], codec: i64, rows: i64, groups: u64) -> Vec<u8> {
    let length = pages.len() as i64;
    let path = [&[0x18][..], &varint(4), b"text"].concat();
    let group_of_rows = |_| {
        let column = Structure::default().i32(1, 6).field(2, 9, &[0x15, 0]).field(3, 9, &path);
        let column = column.i32(4, codec).i64(5, rows).i64(6, length).i64(7, length).i64(9, 4);
        let chunk = Structure::default().i64(2, 4).structure(3, column);
        Structure::default().list(1, 1, vec![chunk]).i64(2, length).i64(3, rows)
    };
    let schema = vec![group("notes", 1), text_column()];
    let metadata = Structure::default().i32(1, 1).list(2, 2, schema).i64(3, rows * groups as i64);
    file(pages, metadata.list(4, groups, (0..groups).map(group_of_rows).collect()))
}

/// Returns a page of `values` plain values.
fn page(content: &[u8], uncompressed: i64, values: i64) -> Vec<u8> {
    let values = Structure::default().i32(1, values).i32(2, 0).i32(3, 3).i32(4, 3);
    let head = Structure::default().i32(1, 0).i32(2, uncompressed).i32(3, content.len() as i64);
    [head.structure(5, values).end(), content.to_vec()].concat()
}

fn dictionary(content: &[u8], values: i64) -> Vec<u8> {
    let inner = Structure::default().i32(1, values).i32(2, 0);
    let head = Structure::default().i32(1, 2).i32(2, content.len() as i64).i32(3, content.len() as i64);
    [head.structure(7, inner).end(), content.to_vec()].concat()
}

/// Returns a page with `values` times the first value of the dictionary.
fn repeated(values: u32) -> Vec<u8> {
    let run = [&[1_u8][..], &varint(u64::from(values) << 1), &[0]].concat();
    let inner = Structure::default().i32(1, i64::from(values)).i32(2, 8).i32(3, 3).i32(4, 3);
    let head = Structure::default().i32(1, 0).i32(2, run.len() as i64).i32(3, run.len() as i64);
    [head.structure(5, inner).end(), run].concat()
}

/// Returns this text with `bytes` zeros behind it, compressed.
fn gzip(text: &[u8], bytes: u64) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    let zeros = vec![b'0'; 1 << 20];
    (0..bytes >> 20).for_each(|_| encoder.write_all(&zeros).unwrap());
    encoder.finish().unwrap()
}

fn value(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text].concat()
}

/// Returns a sound file of one text, which is read.
pub fn sound() -> Vec<u8> {
    let content = value(b"a text");
    texts(&page(&content, content.len() as i64, 1), 0, 1)
}

/// Returns hostile files, each with its description and the message about it.
pub fn hostile() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let row = value(b"a text");
    let rows_of =
        |groups: i64| Structure::default().i32(1, 1).list(2, 1, vec![group("notes", groups)]).i64(3, 1);
    let nested = 100_000;
    let groups = (0..nested).map(|_| group("g", 1)).chain([text_column()]).collect();
    let deep = Structure::default().i32(1, 1).list(2, nested + 1, groups).i64(3, 1).list(4, 0, vec![]);
    let schema = vec![group("notes", 1), text_column()];
    let many_groups = Structure::default().i32(1, 1).list(2, 2, schema).i64(3, 1);
    vec![
        (
            "a page that states 2 GB",
            "a page of 2147483647 bytes",
            texts(&page(&row, i64::from(i32::MAX), 1), 1, 1),
        ),
        (
            "a page of 300 MB in 2 MB",
            "a page of 268435457 bytes",
            texts(&page(&gzip(b"", 300 << 20), 100, 1), 2, 1),
        ),
        ("a page whose size is below 0", "damaged", texts(&page(&row, -1, 1), 1, 1)),
        (
            "a dictionary that states 2^31 - 1 values",
            "",
            texts(&[dictionary(&row, i64::from(i32::MAX)), repeated(1)].concat(), 0, 1),
        ),
        (
            "a text of 64 KB a million times",
            "bytes of text in each of its bytes",
            texts(&[dictionary(&value(&vec![b'a'; 1 << 16]), 1), repeated(1_000_000)].concat(), 0, 1_000_000),
        ),
        (
            "a page of 200 MB in 20,000 groups of rows",
            "columns that lie on one another",
            groups_of_texts(&page(&gzip(&row, 200 << 20), 200 << 20, 1), 2, 1, 20_000),
        ),
        ("2^62 rows", "rows in", texts(&page(&row, row.len() as i64, 1), 0, 1 << 62)),
        (
            "a group of 2^31 - 1 columns",
            "damaged",
            file(&[], rows_of(i64::from(i32::MAX)).list(4, 0, vec![])),
        ),
        ("a group of -1 columns", "damaged", file(&[], rows_of(-1).list(4, 0, vec![]))),
        ("100,000 groups within one another", "damaged", file(&[], deep)),
        (
            "metadata of 30 MB of groups of nothing",
            "metadata of",
            file(&[], many_groups.list_of(4, 30_000_000, &vec![0; 30_000_000])),
        ),
        (
            "metadata that states 2^60 columns",
            "damaged",
            file(&[], Structure::default().i32(1, 1).list(2, 1 << 60, vec![])),
        ),
    ]
}
