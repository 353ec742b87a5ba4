//! Files of tokens, whose tables say where each part lies.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use dp_tokenizer::tokens::TokenDataset;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fuzz-{}.tokens", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    // Without a valid digest no table would be read.
    let end = bytes.len().saturating_sub(32).max(88).min(bytes.len());
    let header = &bytes[..end.min(88)];
    let contents = Sha256::digest(&bytes[header.len()..end]);
    let digest = Sha256::new().chain_update(header).chain_update(contents).finalize();
    std::fs::write(&*FILE, [&bytes[..end], &digest[..]].concat()).expect("a temporary file");
    let Ok(data) = TokenDataset::open(&FILE) else { return };
    let (mut out, mut listed) = (Vec::new(), 0);
    for unit in 0..data.units() {
        for number in data.parts_of(unit).expect("each unit has a list") {
            let part = data.part(number).expect("a listed part is there");
            assert_eq!(part.unit, unit);
            let _ = data.read(part.tokens, &mut out);
            listed += 1;
        }
    }
    assert_eq!(listed, data.parts());
    assert!(data.read(0..u64::MAX, &mut out).is_err());
});
