//! Bad texts, for the trainer and the tokenizer.

use super::SECRET;

/// Name, bytes and a word of the refusal of a text that no program reads.
pub type BadText = (&'static str, Vec<u8>, &'static str);

fn utf16(text: &str, mark: bool) -> Vec<u8> {
    let units = mark.then_some(0xFEFF).into_iter().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// The texts.
pub fn table() -> Vec<BadText> {
    let good = format!("{{\"text\": \"a {SECRET}\"}}\n");
    let lines = |bad: &str| format!("{}{bad}\n", good.repeat(3)).into_bytes();
    let plain = format!("a {SECRET}\n").repeat(20);
    vec![
        ("empty.txt", Vec::new(), "no record"),
        ("blank.txt", b"\n \t\r\n\n".to_vec(), "no record"),
        (
            "latin1.txt",
            format!("{plain}caf").into_bytes().into_iter().chain(*b"\xe9\n").collect(),
            "line 21: not valid UTF-8",
        ),
        ("utf16.txt", utf16(&plain, true), "UTF-16"),
        ("utf16-bare.txt", utf16(&plain, false), "UTF-16"),
        ("gzip.txt", b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec(), "gzip"),
        ("zstd.txt", b"\x28\xb5\x2f\xfd\x04\x58\x79".to_vec(), "zstd"),
        ("archive.txt", b"PK\x03\x04rest".to_vec(), "zip"),
        ("paper.txt", b"%PDF-1.7\n".to_vec(), "PDF"),
        ("rows.txt", b"PAR1rest".to_vec(), "Parquet"),
        ("not.txt.gz", plain.clone().into_bytes(), "not.txt.gz"),
        ("not.txt.zst", plain.clone().into_bytes(), "no zstd data"),
        ("cut.txt.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b".to_vec(), "cut off or damaged"),
        ("object.json", format!("{{\"records\": [{}]}}", good.trim()).into_bytes(), "jq -c"),
        ("lines.json", lines("{}"), "declare jsonl"),
        ("list.json", format!("[{},\n{{\"body\": \"{SECRET}\"}}]", good.trim()).into_bytes(), "element 2"),
        ("cut.json", format!("[{},\n{{\"text\": \"{SECRET}", good.trim()).into_bytes(), "cut off"),
        ("notes", plain.clone().into_bytes(), "does not tell the format"),
        ("notes.log.gz", plain.clone().into_bytes(), "does not tell the format"),
        ("zero.txt", format!("{plain}\0").into_bytes(), "binary data"),
        ("table.csv", plain.clone().into_bytes(), "no column \"text\""),
        ("table.tsv", plain.clone().into_bytes(), "no column \"text\""),
        ("model.safetensors", plain.clone().into_bytes(), ".safetensors files are not read"),
        ("rows.arrow", plain.clone().into_bytes(), ".arrow files are not read"),
        ("letter.docx", plain.clone().into_bytes(), ".docx files are not read"),
        ("data.sqlite", plain.clone().into_bytes(), ".sqlite files are not read"),
        ("all.zip", plain.clone().into_bytes(), ".zip files are not read"),
        ("cut.jsonl", lines("{\"text\": \"a"), "line 4"),
        ("array.jsonl", lines("[1, 2]"), "line 4"),
        ("word.jsonl", lines(SECRET), "line 4"),
        ("number.jsonl", lines("{\"text\": 99887766}"), "line 4"),
        ("null.jsonl", lines("{\"text\": null}"), "the text is null"),
        ("true.jsonl", lines("{\"text\": true}"), "line 4"),
        ("nested.jsonl", lines("{\"text\": {\"a\": 1}}"), "line 4"),
        ("body.jsonl", lines("{\"body\": \"a\"}"), "text_field"),
        ("two.jsonl", lines("{\"text\": \"a\"} {\"text\": \"b\"}"), "line 4"),
        ("comma.jsonl", lines("{\"text\": \"a\"},"), "line 4"),
        ("single.jsonl", lines("{'text': 'a'}"), "line 4"),
        ("deep.jsonl", lines(&"[".repeat(100_000)), "line 4"),
    ]
}
