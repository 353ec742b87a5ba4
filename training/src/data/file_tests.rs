//! Tests of text that stays in its files.

use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{self, Files, LineFiles, Source};
use dp_tokenizer::unit::PrivacyUnit;
use mechanisms::TestRng;

use super::divided::Divided;
use super::tests::{causal, choices, tokenizer};
use super::text_index::read_text;
use super::*;
use crate::RunError;
use crate::disclosure::Private;
use crate::ranks::threads::on_ranks;
use crate::ranks::{Ranks, Share};
use network::Example;

/// Writes texts of users whose records lie apart, in lines, in a table and in a folder. Returns their source and the file of lines.
pub(super) fn text_of_users(folder: &Path) -> (Source, PathBuf) {
    let [lines, table] = ["a.jsonl", "b.csv"].map(|name| folder.join(name));
    let text = |n: usize| format!("alpha {}gamma {n}", "é ".repeat(n % 7));
    let line = |n: usize| format!("{{\"who\":\"u{}\",\"text\":\"{}\"}}\n\n", n % 40, text(n));
    let row = |n: usize| format!("u{},\"{}\nof two lines\"\n", n % 40, text(n));
    std::fs::write(&lines, (0..300).map(line).collect::<String>()).unwrap();
    std::fs::write(&table, format!("who,text\n{}", (300..400).map(row).collect::<String>())).unwrap();
    let files = Files { user_field: Some("who".to_owned()), ..Files::of([lines.clone(), table]) };
    (Source::Files(files), lines)
}

pub(super) fn in_files(source: &Source, unit: PrivacyUnit, ranks: &Ranks) -> Units {
    let text = read_text(LineFiles::of(source).unwrap(), unit, ranks).unwrap();
    Units { texts: Texts::InFiles(Box::new(Private::new(text))), tokens: None, labelled: None }
}

/// Oracle: the same text in memory. Each rank reads its own share alone.
#[test]
fn text_in_its_files_has_the_windows_of_text_in_memory_on_any_number_of_ranks() {
    let (tokenizer, eos) = tokenizer();
    let folder = tempfile::tempdir().unwrap();
    let (source, lines) = text_of_users(folder.path());
    let whole = std::fs::read_to_string(&lines).unwrap();
    for unit in [PrivacyUnit::Record, PrivacyUnit::User, PrivacyUnit::Words(2)] {
        let marks_pieces = matches!(unit, PrivacyUnit::Words(_));
        let spec = WindowSpec { bos: eos, eos, length: 5, overlaps: true, marks_pieces };
        let kept = texts_of(&source, unit);
        let in_memory = Dataset::encode(&kept, &tokenizer, spec);
        let texts = Texts::Kept(Private::new(kept));
        let digest = Units { texts, tokens: None, labelled: None }.keyed_digest(b"key");
        let drawn = |unit: u64| {
            let places = (0..in_memory.windows_of(unit as usize)).rev().collect();
            DrawnUnit { unit, index: unit, places }
        };
        let lot = Private::new((0..in_memory.units() as u64).rev().map(drawn).collect::<Vec<_>>());
        for count in [1, 2, 3, 4, 9] {
            let found = on_ranks(count, |ranks| {
                let units = in_files(&source, unit, ranks);
                let digest = units.keyed_digest(b"key");
                let mut dataset = Dataset::new(units, &tokenizer, spec).unwrap();
                dataset.measure(&(0..dataset.units() as u64).collect::<Vec<_>>()).unwrap();
                let lot = Private::new(lot.for_mechanism().clone());
                let sampled = dataset.read_lot(lot, ranks.share(3)).unwrap().into_mechanism();
                (dataset.units(), digest, sampled)
            });
            for (rank, (units, digest_in_files, sampled)) in found.into_iter().enumerate() {
                assert_eq!(
                    (units, &digest_in_files),
                    (in_memory.units(), &digest),
                    "{unit:?}, {count} ranks"
                );
                let share = Share { rank, count, physical_batch: 3 };
                let want = in_memory.read(&own(Private::new(lot.for_mechanism().clone()), share)).unwrap();
                assert!(sampled == *want.for_mechanism(), "{unit:?}, {count} ranks");
            }
        }
        std::fs::write(&lines, whole.replacen("alpha", "omega", 1)).unwrap();
        let changed = on_ranks(2, |ranks| in_files(&source, unit, ranks).keyed_digest(b"key"));
        std::fs::write(&lines, &whole).unwrap();
        assert!(changed.iter().all(|changed| *changed != digest), "{unit:?}");
    }
    let changed = on_ranks(1, |ranks| {
        let units = in_files(&source, PrivacyUnit::Record, ranks);
        let mut dataset = Dataset::new(units, &tokenizer, causal(eos, 100)).unwrap();
        std::fs::write(&lines, whole.replacen("alpha", "omega", 1)).unwrap();
        (dataset.measure(&[1]).is_ok(), dataset.measure(&[0]).unwrap_err().to_string())
    });
    assert!(changed[0].0 && changed[0].1.contains("was changed while the run read it"), "{changed:?}");
}

/// No rank reads the text of another, whatever their number.
#[test]
fn ranks_together_read_a_text_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let line = |n: usize| format!("{{\"text\":\"{n} {}\"}}\n", "word ".repeat(n % 100));
    std::fs::write(&path, (0..20_000).map(line).collect::<String>()).unwrap();
    let size = path.metadata().unwrap().len();
    for count in [1, 2, 3, 4] {
        let read = on_ranks(count, |ranks| {
            let files = Files::of([path.clone()]);
            let progress = files.progress.clone();
            in_files(&Source::Files(files), PrivacyUnit::Record, ranks);
            progress.bytes()
        });
        let total: u64 = read.iter().sum();
        assert!(total as f64 <= 1.1 * size as f64, "{count} ranks read {read:?} of {size} bytes");
        let most = read.iter().max().copied().unwrap_or(0);
        assert!(most as f64 <= 1.1 * size as f64 / count as f64 + 65_536.0, "{count} ranks: {read:?}");
    }
}

/// A refused record has its number in the whole text, and all ranks end.
#[test]
fn a_refused_record_is_named_by_its_number_in_the_whole_text_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    std::fs::write(&path, (1..=200).map(|n| format!("text {n}\n\n")).collect::<String>()).unwrap();
    for count in [1, 3, 50] {
        let found = on_ranks(count, |ranks| {
            let files = LineFiles::of(&Source::files([path.clone()])).unwrap();
            let read = Divided::read(files, PrivacyUnit::Record, ranks, |number, record| {
                if record.text == "text 170" {
                    return Err(RunError::Refused(format!("record {number} is refused")));
                }
                Ok(Vec::new())
            });
            read.map(drop).unwrap_err()
        });
        assert!(found[0].to_string().contains("record 170 is refused"), "{count} ranks: {}", found[0]);
        assert!(found.iter().all(|error| error.exit_code() == 2));
    }
}

/// Ranks with copies of a text that differ would train on a mixture of them.
#[test]
fn ranks_with_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = |rank: usize, changed: usize| {
        let path = folder.path().join(format!("{rank}.txt"));
        let line = |n: usize| format!("line {n} {}\n", if rank == 1 && n == changed { "x" } else { "y" });
        std::fs::write(&path, (0..1000).map(line).collect::<String>()).unwrap();
        Source::files([path])
    };
    for (changed, is_refused) in [(1000, false), (500, true)] {
        let sources = [0, 1].map(|rank| text(rank, changed));
        let found = on_ranks(2, |ranks| {
            let files = LineFiles::of(&sources[ranks.rank()]).unwrap();
            read_text(files, PrivacyUnit::Record, ranks).map(drop).map_err(|error| error.to_string())
        });
        let said = found[0].clone().err().is_some_and(|error| error.contains("differ from those of rank 0"));
        assert_eq!(said, is_refused, "{found:?}");
    }
}

pub(super) fn texts_of(source: &Source, unit: PrivacyUnit) -> Vec<UnitText> {
    let mut texts = Vec::new();
    let mut take = |text| {
        texts.push(text);
        Ok(())
    };
    super::unit_text::each_text(corpus::open(source).unwrap(), unit, "", &mut take).unwrap();
    texts
}

/// Writes records of users with a label each, in lines and in a table. Returns their fields, their source and the file of lines.
fn labelled_text(folder: &Path) -> (LabelledFields, Source, PathBuf) {
    let (lines, table) = (folder.join("a.jsonl"), folder.join("b.csv"));
    let line =
        |n: usize| format!("{{\"who\":\"u{}\",\"label\":\"l{}\",\"text\":\"t {n}\"}}\n\n", n % 7, n % 3);
    let row = |n: usize| format!("l{},\"t\n{n}\",u{}\n", n % 3, n % 7);
    std::fs::write(&lines, (0..30).map(line).collect::<String>()).unwrap();
    std::fs::write(&table, format!("label,text,who\n{}", (30..60).map(row).collect::<String>())).unwrap();
    let user_field = Some("who".to_owned());
    let source = Source::Files(Files { user_field, ..Files::of([lines.clone(), table]) });
    let plan = plan::PlanFile::parse(include_str!("../../../plan/tests/fixtures/tiny.json")).unwrap();
    let labels = ["l0", "l1", "l2"].map(str::to_owned).into_iter().zip(0..).collect();
    let objective = plan::Objective::SequenceClassification;
    let fields = LabelledFields {
        objective,
        data: plan.data,
        labels,
        labels_field: "training.labels",
        written: None,
        answers: true,
        public: false,
    };
    (fields, source, lines)
}

/// Returns one record of each unit. Some of a user's records are in the shares of other ranks.
fn one_of_each(records: &LabelledRecords, ranks: &Ranks) -> Vec<String> {
    let mut own = Vec::new();
    let choose = |unit, records| (unit * 5 + 3) % records;
    let take = |record: &LabelledRecord| own.push(format!("{:?} {:?}", record.text, record.answer));
    records.for_one_of_each_unit(ranks, choose, take).unwrap();
    let of_ranks = ranks.exchange(&serde_json::to_vec(&own).unwrap());
    let of_rank = |own: &Vec<u8>| serde_json::from_slice::<Vec<String>>(own).unwrap();
    let mut all: Vec<String> = of_ranks.iter().flat_map(of_rank).collect();
    all.sort_unstable();
    all
}

/// Oracle: the same records in memory. A user's records lie apart.
#[test]
fn labelled_records_in_their_files_are_the_examples_of_those_in_memory_and_a_changed_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (fields, source, lines) = labelled_text(folder.path());
    let check = |_: u64, _: &LabelledRecord| Ok(());
    let example = |record: &LabelledRecord| Example {
        input: record.text.bytes().map(u32::from).collect(),
        ..Example::default()
    };
    let in_files = |unit, ranks: &Ranks| {
        LabelledRecords::in_files(fields.clone(), source.clone(), unit, &check, ranks).unwrap().unwrap()
    };
    for unit in [PrivacyUnit::Record, PrivacyUnit::User] {
        let (records, units) = LabelledRecords::open(&fields, source.clone(), unit, &check).unwrap();
        let (chosen, digest) = (one_of_each(&records, &Ranks::alone()), records.digest());
        assert_eq!(chosen.len() as u64, units);
        let every: Vec<u64> = (0..units).rev().collect();
        for count in [1, 2, 3] {
            on_ranks(count, |ranks| {
                let share = ranks.share(3);
                let (records, _) = LabelledRecords::open(&fields, source.clone(), unit, &check).unwrap();
                let kept = LabelledSet::new(records, example);
                let (records, of_files) = in_files(unit, ranks);
                assert_eq!((of_files, records.digest()), (units, digest));
                assert_eq!(one_of_each(&records, ranks), chosen, "{unit:?}, {count} ranks");
                let mut set = LabelledSet::new(records, example);
                assert_eq!(set.units(), kept.units());
                set.measure(&(0..units).collect::<Vec<_>>()).unwrap();
                for step in 0..5 {
                    let [a, b] = [&kept, &set].map(|set| {
                        let lot = Private::new(every.clone());
                        let drawn =
                            choose(&lot, |unit| set.examples_of(unit as usize), 2, &mut choices(step));
                        set.read_lot(drawn, share, step, &TestRng::from_seed(3)).unwrap().into_mechanism()
                    });
                    assert!(a == b && (count > 1 || a.len() == kept.units()), "{unit:?}, {count} ranks");
                }
            });
        }
    }
    let (records, _) = in_files(PrivacyUnit::Record, &Ranks::alone());
    let mut set = LabelledSet::new(records, example);
    let text = std::fs::read_to_string(&lines).unwrap().replacen("\"l1\"", "\"l2\"", 1);
    std::fs::write(&lines, text).unwrap();
    let mut sampled = |unit| {
        set.measure(&[unit]).unwrap();
        let drawn = choose(&Private::new(vec![unit]), |_| 1, 1, &mut choices(0));
        let sampled = set.read_lot(drawn, Share::WHOLE, 0, &TestRng::from_seed(3));
        sampled.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(sampled(0), Ok(()));
    assert!(sampled(1).is_err_and(|error| error.contains("was changed while the run read it")));
}
