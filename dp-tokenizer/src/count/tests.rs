//! Counts one corpus in many ways, all of which must agree.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use mechanisms::{PrivacyRng, Purpose, ReleaseMethod, TestRng, Words};
use sha2::{Digest, Sha256};

use super::shard::{DIGEST_BYTES, MAGIC};
use super::{CountOptions, CountedShare, GatheredShares, Shard, ShardOptions, UnitItems, count_shard, items};
use crate::corpus::{Files, LineFiles, Source, open};
use crate::release::{ReleaseConfig, release, release_items};
use crate::unit::{PrivacyUnit, pieces};

/// Writes a corpus with common and rare, short and long words of several scripts, with heavy and light users, in two
/// files of several blocks.
fn corpus(folder: &Path) -> Source {
    let mut s = TestRng::from_seed(5).stream(Purpose::Data, 0, 0);
    let paths = ["a.jsonl", "b.jsonl"].map(|name| folder.join(name));
    for path in &paths {
        let mut lines = String::new();
        for _ in 0..1500 {
            let most = 1 + s.below(200);
            let user = s.below(most);
            let text: String = (0..1 + s.below(80))
                .map(|_| match s.below(12) {
                    0 => format!(" {}", s.below(5000)),
                    1 => format!(" überlang{}überlang", "é".repeat(s.below(12) as usize)),
                    2 => format!(" слово{}", (b'a' + s.below(26) as u8) as char),
                    3 => "\\n▁mark, ".to_owned(),
                    _ => format!(
                        " w{}",
                        ["fever", "cough", "the", "aaaaaaaaaaaaaaaaaaaa"][s.below(4) as usize]
                    ),
                })
                .collect();
            lines.push_str(&format!("{{\"who\":\"user {user}\",\"text\":\"{text}\"}}\n"));
        }
        std::fs::write(path, lines).unwrap();
    }
    Source::Files(Files { user_field: Some("who".to_owned()), ..Files::of(paths.to_vec()) })
}

/// Everything that can be learnt from counted items: names by number, and the units' items in the order of the units.
type Everything = (Vec<String>, Vec<(u64, Vec<(u64, u32)>)>);

fn everything(items: &UnitItems) -> Everything {
    let (mut names, mut units) = (Vec::new(), Vec::new());
    items
        .each_name(|number, name| {
            assert_eq!(number as usize, names.len());
            names.push(name.to_owned());
        })
        .unwrap();
    items.each_unit(|unit, held| units.push((unit, held.to_vec()))).unwrap();
    assert!(units.windows(2).all(|two| two[0].0 < two[1].0), "a unit comes twice, or too late");
    (names, units)
}

fn ways() -> impl Iterator<Item = CountOptions> {
    let memory = [0, 3 << 20, usize::MAX];
    let all = [1, 2, 3].into_iter().flat_map(move |threads| memory.map(|memory| (threads, memory)));
    all.map(|(threads, memory)| CountOptions { threads, memory, spill_folder: None })
}

const UNITS: [PrivacyUnit; 3] = [PrivacyUnit::Record, PrivacyUnit::User, PrivacyUnit::Words(7)];
const WORDS: [Words; 2] = [Words::ByClass, Words::AsWritten];

#[test]
fn threads_and_memory_change_nothing_of_what_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let source = corpus(folder.path());
    for (unit, words) in UNITS.into_iter().flat_map(|unit| WORDS.map(|words| (unit, words))) {
        let mut first: Option<Everything> = None;
        for options in ways() {
            let read = UnitItems::read(&source, unit, words, &options).unwrap();
            assert!(options.memory != 0 || read.is_spilled(), "{options:?}");
            assert!(options.memory != usize::MAX || !read.is_spilled(), "{options:?}");
            let got = everything(&read);
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "{unit:?} {words:?} {options:?}");
        }
    }
}

#[test]
fn what_is_counted_is_what_the_definition_says() {
    let folder = tempfile::tempdir().unwrap();
    let source = corpus(folder.path());
    for (unit, words) in UNITS.into_iter().flat_map(|unit| WORDS.map(|words| (unit, words))) {
        let mut want: BTreeMap<u64, BTreeMap<String, u32>> = BTreeMap::new();
        for piece in pieces(open(&source).unwrap(), unit).unwrap() {
            let piece = piece.unwrap();
            let held = want.entry(piece.unit).or_default();
            items(&piece.text, words, |item| *held.entry(item.to_owned()).or_default() += 1);
        }
        let tight = CountOptions { threads: 2, memory: 0, spill_folder: Some(folder.path().to_owned()) };
        let (names, units) = everything(&UnitItems::read(&source, unit, words, &tight).unwrap());
        let named = units.into_iter().map(|(unit, held)| {
            (unit, held.iter().map(|h| (names[h.0 as usize].clone(), h.1)).collect::<BTreeMap<_, _>>())
        });
        if unit == PrivacyUnit::User {
            // Users are numbered by the hash of their names, not in order of appearance.
            let (mut got, mut all): (Vec<_>, Vec<_>) =
                (named.map(|u| u.1).collect(), want.into_values().collect());
            got.sort_unstable();
            all.sort_unstable();
            assert!(got == all);
        } else {
            assert!(named.collect::<BTreeMap<_, _>>() == want, "{unit:?} {words:?}");
        }
    }
}

#[test]
fn threads_and_memory_change_nothing_of_what_is_released() {
    let folder = tempfile::tempdir().unwrap();
    let source = corpus(folder.path());
    // Many units exceed this cap, so that their random choices are compared too.
    let config = ReleaseConfig::new(ReleaseMethod::Sips, 0.5, 1e-3).unwrap().max_items_per_unit(8);
    let rng = TestRng::from_seed(11);
    for unit in UNITS {
        let mut first = None;
        for options in ways() {
            let read = UnitItems::read(&source, unit, Words::ByClass, &options).unwrap();
            let released = release_items(&read, &config, &rng).unwrap();
            assert!(released.words.len() > 10);
            assert!(*first.get_or_insert_with(|| released.clone()) == released, "{unit:?} {options:?}");
        }
        if unit != PrivacyUnit::User {
            let piecewise = pieces(open(&source).unwrap(), unit).unwrap();
            let piecewise = release(piecewise, Words::ByClass, &config, &rng).unwrap();
            assert!(first.unwrap() == piecewise, "{unit:?}");
        }
    }
}

#[test]
fn removing_a_unit_removes_its_items_and_no_others_from_what_threads_count() {
    let folder = tempfile::tempdir().unwrap();
    let (full, less) = (folder.path().join("full.jsonl"), folder.path().join("less.jsonl"));
    let mut s = TestRng::from_seed(6).stream(Purpose::Data, 0, 0);
    for round in 0..20 {
        let line = |user: u64, s: &mut mechanisms::Stream| {
            let words: String = (0..1 + s.below(9)).map(|_| format!(" w{}", s.below(30))).collect();
            (user, format!("{{\"who\":{user},\"text\":\"{words}\"}}\n"))
        };
        let lines: Vec<(u64, String)> = (0..3000).map(|_| line(s.below(40), &mut s)).collect();
        let gone = lines[s.below(3000) as usize].0;
        std::fs::write(&full, lines.iter().map(|l| l.1.as_str()).collect::<String>()).unwrap();
        let rest = lines.iter().filter(|l| l.0 != gone).map(|l| l.1.as_str());
        std::fs::write(&less, rest.collect::<String>()).unwrap();
        let options = CountOptions { threads: 3, memory: [0, usize::MAX][round % 2], spill_folder: None };
        let counted = |path: &Path| {
            let mut files = Source::files([path.to_owned()]);
            if let Source::Files(files) = &mut files {
                files.user_field = Some("who".to_owned());
            }
            let (names, units) =
                everything(&UnitItems::read(&files, PrivacyUnit::User, Words::ByClass, &options).unwrap());
            let held = |held: Vec<(u64, u32)>| -> BTreeMap<String, u32> {
                held.iter().map(|h| (names[h.0 as usize].clone(), h.1)).collect()
            };
            units.into_iter().map(|(unit, items)| (unit, held(items))).collect::<BTreeMap<_, _>>()
        };
        let (with, without) = (counted(&full), counted(&less));
        assert_eq!(with.len(), without.len() + 1);
        assert!(without.iter().all(|(unit, held)| with.get(unit) == Some(held)));
    }
}

#[test]
fn the_first_error_of_the_corpus_is_the_one_reported_whatever_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let good = "{\"who\":1,\"text\":\"a b c\"}\n".repeat(30_000);
    let (bad, worse) = ("{\"text\":\"no user\"}\n", "no JSON\n");
    for (text, unit, want) in [
        (format!("{good}\n{good}{worse}{good}{bad}"), PrivacyUnit::Record, "line 60002: not JSON"),
        (format!("{good}{bad}{good}{worse}"), PrivacyUnit::Record, "line 30001: no field \"who\""),
    ] {
        std::fs::write(&path, text).unwrap();
        let mut source = Source::files([path.clone()]);
        if let Source::Files(files) = &mut source {
            files.user_field = Some("who".to_owned());
        }
        for threads in 1..=3 {
            let options = CountOptions { threads, ..CountOptions::default() };
            let Err(error) = UnitItems::read(&source, unit, Words::ByClass, &options) else {
                panic!("{want}")
            };
            assert!(error.to_string().contains(want), "{threads}: {error}");
        }
    }
    let path = folder.path().join("a.txt");
    std::fs::write(&path, "some text\n".repeat(40_000) + "\n").unwrap();
    let source = Source::files([path]);
    for threads in 1..=3 {
        let options = CountOptions { threads, ..CountOptions::default() };
        let Err(error) = UnitItems::read(&source, PrivacyUnit::User, Words::ByClass, &options) else {
            panic!("text has no user")
        };
        assert!(error.to_string().starts_with("record 1 has no user"), "{error}");
    }
}

#[test]
fn extreme_texts_are_counted_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let read = |bytes: &[u8]| {
        let path = folder.path().join("x.txt");
        std::fs::write(&path, bytes).unwrap();
        UnitItems::read(
            &Source::files([path]),
            PrivacyUnit::Record,
            Words::ByClass,
            &CountOptions { threads: 2, ..Default::default() },
        )
    };
    for nothing in [&b""[..], b"\n", b"\n\r\n\n \t\n"] {
        assert!(read(nothing).is_err_and(|e| e.to_string().contains("no record found")));
    }
    let newlines = vec![b'\n'; 3 << 20];
    assert!(read(&newlines).is_err());
    // These texts are one line of many blocks, one of a character too long to be an item, and one of many distinct
    // words.
    assert_eq!(read(&vec![b'x'; 3 << 20]).unwrap().distinct(), 0);
    let mut words = String::new();
    (0..200_000)
        .for_each(|n| words.push_str(&format!(" w{}x", char::from_u32(0x4E00 + n % 20_000).unwrap())));
    assert_eq!(read(words.as_bytes()).unwrap().distinct(), 20_000);
    // These are random bytes without zero, which are no text.
    let mut s = TestRng::from_seed(8).stream(Purpose::Data, 0, 0);
    let noise: Vec<u8> = (0..1_000_000).map(|_| 1 + s.below(255) as u8).collect();
    assert!(read(&noise).unwrap().distinct() > 1000);
}

/// The options that the parts of a test have in common.
fn common(unit: PrivacyUnit) -> ShardOptions {
    ShardOptions { unit, words: Words::ByClass, corpus: None }
}

fn users(path: &Path) -> Source {
    Source::Files(Files { user_field: Some("who".to_owned()), ..Files::of([path.to_owned()]) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn parts_that_are_counted_apart_are_the_corpus_however_it_is_divided(
        lines in prop::collection::vec((0_u8..7, "( (w[a-c]{1,3}|é{1,9}|überlangeswort[a-d]{3})){0,9}"), 1..50),
        parts in prop::collection::vec(0_usize..4, 50),
        threads in 1_usize..4,
        is_tight: bool,
        first in 0_usize..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let memory = if is_tight { 0 } else { usize::MAX };
        let options = CountOptions { threads, memory, spill_folder: Some(folder.path().to_owned()) };
        let json = |line: &(u8, String)| format!("{{\"who\":\"user {}\",\"text\":\"{}\"}}\n", line.0, line.1);
        for unit in UNITS {
            // A user's text may be anywhere; without users, parts are in the order of the text.
            let mut part_of = parts.clone();
            if unit != PrivacyUnit::User {
                part_of.sort_unstable();
            }
            let text_of = |wanted: &dyn Fn(usize) -> bool| -> String {
                let own = lines.iter().zip(&part_of).filter(|(_, part)| wanted(**part));
                own.map(|(line, _)| json(line)).collect()
            };
            let whole = folder.path().join("whole.jsonl");
            std::fs::write(&whole, text_of(&|_| true)).unwrap();
            let mut paths = Vec::new();
            for part in 0..4 {
                let text = folder.path().join(format!("{part}.jsonl"));
                std::fs::write(&text, text_of(&|own| own == part)).unwrap();
                let (shard, path): (Shard, _) = (format!("{}/4", part + 1).parse().unwrap(), text.with_extension("run"));
                count_shard(&users(&text), shard, &common(unit), &options, &path).unwrap();
                paths.push(path);
            }
            paths.rotate_left(first);
            let whole = UnitItems::read(&users(&whole), unit, Words::ByClass, &options);
            match UnitItems::from_shards(&paths, Some(unit), Words::ByClass, &options) {
                Ok(parts) => prop_assert!(everything(&parts) == everything(&whole.unwrap()), "{unit:?}"),
                // The parts are refused if by chance two hold the same records, or if there is no word.
                Err(error) => {
                    let is_blank = lines.iter().all(|(_, text)| text.is_empty());
                    let wanted = if is_blank { "no record found" } else { "the same text" };
                    prop_assert!(error.to_string().contains(wanted), "{error}");
                }
            }
        }
    }
}

/// Sends the counts of all shares in turn, piece by piece.
fn gathered(parts: &[CountedShare], options: &CountOptions) -> GatheredShares {
    let mut gathered = GatheredShares::new(parts.len(), options);
    let mut left: Vec<_> = parts.iter().map(|part| (part.length(), part.bytes())).collect();
    while left.iter().any(|(length, _)| *length > 0) {
        for (share, (length, fill)) in left.iter_mut().enumerate() {
            let mut piece = vec![0; (*length).min(997) as usize];
            fill(&mut piece).unwrap();
            *length -= piece.len() as u64;
            gathered.push(share, &piece).unwrap();
        }
    }
    gathered
}

/// Oracle: one process that reads all of the corpus. The second corpus has the same records in each share, the third has more shares than
/// records.
#[test]
fn shares_that_are_counted_apart_are_the_corpus_however_many_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let (same, few) = (folder.path().join("same.jsonl"), folder.path().join("few.jsonl"));
    std::fs::write(&same, "{\"who\":\"one\",\"text\":\"a fever and averylongwordindeed\"}\n".repeat(90))
        .unwrap();
    std::fs::write(&few, "{\"who\":\"one\",\"text\":\"a\"}\n\n{\"who\":\"two\",\"text\":\"b\"}\n").unwrap();
    for (source, unit) in [corpus(folder.path()), users(&same), users(&few)]
        .iter()
        .flat_map(|source| UNITS.map(|unit| (source, unit)))
    {
        let files = LineFiles::of(source).unwrap();
        let sizes = files.sizes().unwrap();
        let whole =
            everything(&UnitItems::read(source, unit, Words::ByClass, &CountOptions::default()).unwrap());
        for (shares, memory) in [1, 2, 5].into_iter().flat_map(|shares| [0, usize::MAX].map(|m| (shares, m)))
        {
            let options = CountOptions { threads: 2, memory, spill_folder: Some(folder.path().to_owned()) };
            let read = |number| {
                CountedShare::read(&files, &sizes, number, shares, unit, Words::ByClass, &options).unwrap()
            };
            let parts: Vec<CountedShare> = (0..shares).map(read).collect();
            let heads: Vec<Vec<u8>> = parts.iter().map(CountedShare::head).collect();
            let items = gathered(&parts, &options).into_items(&heads, unit).unwrap();
            assert!(everything(&items) == whole, "{unit:?}, {shares} shares, {memory}");
            // What does not fit is refused.
            let mut longer = gathered(&parts, &options);
            longer.push(0, &[0]).unwrap();
            for (data, heads) in [
                (longer, &heads[..]),
                (gathered(&parts, &options), &heads[1..]),
                (GatheredShares::new(heads.len(), &options), &heads),
            ] {
                assert!(data.into_items(heads, unit).is_err());
            }
        }
    }
}

#[test]
fn a_file_of_a_part_is_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (text, path) = (folder.path().join("a.jsonl"), folder.path().join("a.run"));
    std::fs::write(&text, "{\"who\":\"one\",\"text\":\"a fever and averylongwordindeed\"}\n").unwrap();
    let options = CountOptions { threads: 1, ..CountOptions::default() };
    let shard: Shard = "1/1".parse().unwrap();
    for unit in UNITS {
        count_shard(&users(&text), shard, &common(unit), &options, &path).unwrap();
        let read =
            || UnitItems::from_shards(std::slice::from_ref(&path), Some(unit), Words::ByClass, &options);
        assert_eq!(read().unwrap().distinct(), 4);
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1 << (at % 8);
            std::fs::write(&path, &other).unwrap();
            assert!(read().is_err_and(|error| error.to_string().contains("damaged")), "{unit:?}: byte {at}");
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert!(
                read().is_err_and(|error| error.to_string().contains("damaged")),
                "{unit:?}: cut at {at}"
            );
        }
    }
    // A part may be empty, a corpus may not.
    std::fs::write(&text, "").unwrap();
    count_shard(&users(&text), shard, &common(PrivacyUnit::User), &options, &path).unwrap();
    let empty = UnitItems::from_shards(&[path], None, Words::ByClass, &options);
    assert!(empty.is_err_and(|error| error.to_string().contains("no record found")));
}

/// Returns the file of a part with the digest that it should have.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - DIGEST_BYTES as usize;
    let contents = Sha256::digest(&bytes[MAGIC.len()..end]);
    let digest = Sha256::new().chain_update(MAGIC).chain_update(contents).finalize();
    bytes[end..].copy_from_slice(&digest);
    bytes
}

#[test]
fn a_file_that_was_altered_together_with_its_digest_is_refused_or_consistent() {
    let folder = tempfile::tempdir().unwrap();
    let (text, path) = (folder.path().join("a.jsonl"), folder.path().join("a.run"));
    let line =
        |user: u32| format!("{{\"who\":\"{user}\",\"text\":\"a b{user} averyveryverylongword{user}\"}}\n");
    std::fs::write(&text, (0..4).map(line).collect::<String>()).unwrap();
    let options = CountOptions { threads: 1, ..CountOptions::default() };
    for unit in UNITS {
        count_shard(&users(&text), "1/1".parse().unwrap(), &common(unit), &options, &path).unwrap();
        let read =
            || UnitItems::from_shards(std::slice::from_ref(&path), Some(unit), Words::ByClass, &options);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes == sealed(bytes.clone()));
        let at = bytes.windows(11).position(|part| part == b"\"version\":2").unwrap();
        let mut later = bytes.clone();
        later[at + 10] = b'3';
        std::fs::write(&path, sealed(later)).unwrap();
        let refused = read().err().unwrap().to_string();
        assert!(refused.contains("version 3 of this file is not read, only 2"), "{refused}");
        for at in 0..bytes.len() - DIGEST_BYTES as usize {
            let mut other = bytes.clone();
            other[at] ^= 1 << (at % 8);
            std::fs::write(&path, sealed(other)).unwrap();
            let Ok(items) = read() else { continue };
            let (mut names, mut last) = (Vec::new(), None);
            if items.each_name(|_, name| names.push(name.to_owned())).is_ok() {
                // Items of at most 15 bytes come first, with a blank for a mark.
                let order = |name: &String| (name.replace('▁', " ").len() > 15, name.replace('▁', " "));
                assert!(names.is_sorted_by(|a, b| order(a) < order(b)), "{unit:?}: byte {at}");
            }
            let _ = items.each_unit(|number, _| {
                assert!(last < Some(number), "{unit:?}: byte {at}: a unit comes twice, or too late");
                last = Some(number);
            });
        }
    }
}
