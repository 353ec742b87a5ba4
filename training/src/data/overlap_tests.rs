//! The comparison on several ranks: the verdict and the message are those of one process.

use std::fs;

use dp_tokenizer::corpus::Source;
use dp_tokenizer::tokens::encode_corpus;
use dp_tokenizer::train::{CharacterConfig, characters};
use dp_tokenizer::unit::PrivacyUnit;
use plan::{Plan, PlanFile};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokenizer::Tokenizer;

use super::*;
use crate::data::overlap::EVALUATION;
use crate::data::{Compared, read_evaluation, read_units};
use crate::ranks::threads::on_ranks;

/// Records of the private text: more than one rank's block of them.
const RECORDS: usize = 700;

fn note(n: usize) -> String {
    format!(
        "Visit {n}: seen on ward {n} with a cough, étage {n}, for {n} days, then sent home with {n} tablets and advice {n}."
    )
}

/// A private and a public text in a folder, in one of the forms that training reads.
struct Texts {
    folder: TempDir,
    plan: Plan,
}

impl Texts {
    fn new(form: &str, private: &[String], public: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut plan: Value =
            serde_json::from_str(include_str!("../../../plan/tests/fixtures/tiny.json")).unwrap();
        let (extension, is_pairs) = match form {
            "csv" | "pairs" => ("csv", form == "pairs"),
            "jsonl" => ("jsonl", false),
            _ => ("txt", false),
        };
        for (name, records) in [("private", private), ("public", public)] {
            let path = folder.path().join(format!("{name}.{extension}"));
            fs::write(path, file(extension, is_pairs, records)).unwrap();
        }
        plan["data"] =
            json!({ "source": { "path": format!("private.{extension}") }, "units": private.len() });
        plan["evaluation"] = json!({ "source": { "path": format!("public.{extension}") }, "every": 6 });
        match form {
            "pairs" => {
                plan["data"]["second_text_field"] = json!("more");
                plan["training"]["objective"] = json!("sequence_classification");
                plan["training"]["labels"] = json!(["a", "b"]);
                plan["model"]["family"] = json!("bert");
            }
            "words" => plan["privacy"]["unit"] = json!({ "words": 4 }),
            "tokens" => {
                plan["data"]["source"] = json!({ "path": "private.tokens" });
                plan["tokenizer"] =
                    json!({ "public": { "path": "tokenizer.json", "made_from": "public_text" } });
                let tokenizer = Tokenizer::bytes(&["</s>".to_owned()]).unwrap();
                write_tokens(&folder, PrivacyUnit::Record, &tokenizer);
            }
            _ => {}
        }
        let plan = PlanFile::parse(&plan.to_string()).unwrap().try_into().unwrap();
        Self { folder, plan }
    }

    /// Returns the messages of this many ranks, of which only the first has one.
    fn compared(&self, ranks: usize, in_files: bool) -> Vec<Result<(), String>> {
        let (base, plan) = (self.folder.path(), &self.plan);
        on_ranks(ranks, |ranks| {
            let units = read_units(plan, base, in_files, ranks).unwrap();
            let public = read_evaluation(plan, base, &units, ranks).unwrap().unwrap();
            check_records(plan, base, &units, &public, Compared::evaluation(plan), ranks)
                .map_err(|error| error.to_string())
        })
    }
}

fn file(extension: &str, is_pairs: bool, records: &[String]) -> String {
    let line = |record: &String| match extension {
        "jsonl" => json!({ "text": record }).to_string(),
        "csv" if is_pairs => {
            let (text, more) = record.split_once(',').unwrap();
            format!("\"{text}\",\"{more}\",a")
        }
        "csv" => format!("\"{record}\""),
        _ => record.clone(),
    };
    let header = match (extension, is_pairs) {
        ("csv", true) => "text,more,label\n",
        ("csv", false) => "text\n",
        _ => "",
    };
    // A blank line is no record.
    header.to_owned() + &records.iter().map(line).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Replaces the token file of the private text.
fn write_tokens(folder: &TempDir, unit: PrivacyUnit, tokenizer: &Tokenizer) {
    fs::remove_file(folder.path().join("private.tokens")).ok();
    let json = tokenizer.to_json();
    fs::write(folder.path().join("tokenizer.json"), &json).unwrap();
    let source = Source::files([folder.path().join("private.txt")]);
    let digest = Sha256::digest(json.as_bytes()).into();
    let out = folder.path().join("private.tokens");
    encode_corpus(&source, unit, tokenizer, digest, &out, 1).unwrap();
}

#[test]
fn one_to_four_ranks_reach_the_same_verdict_in_the_same_words() {
    let private: Vec<String> = (0..RECORDS).map(note).collect();
    let other: Vec<String> = (5_000..5_300).map(note).collect();
    // Half of a record of the last block, as one record and as lines within others.
    let long = note(RECORDS - 3);
    let half = [other.clone(), vec![long[..long.len() / 2 + 12].to_owned()]].concat();
    let words: Vec<&str> = long.split(' ').collect();
    let lines = [other.clone(), words.chunks(4).map(|part| part.join(" ")).collect()].concat();
    // The records are in another order, so that they share no runs.
    let short = |from: usize, step: usize| -> Vec<String> {
        (0..RECORDS).map(|n| format!("no, {}", from + n * step % RECORDS)).collect()
    };
    type Lines<'a> = &'a [String];
    let cases: [(&str, Lines<'_>, Lines<'_>, Option<&str>); 6] = [
        ("other text", &private, &other, None),
        ("half of a record", &private, &half, Some("the first of them record 301")),
        ("lines of a record", &private, &lines, Some("the first of them record 301")),
        ("all", &private, &private, Some("the first of them record 1")),
        ("short records", &short(0, 1), &short(100, 37), Some("more than half of the records")),
        ("few short records", &short(0, 1), &short(500, 37), None),
    ];
    for form in ["txt", "words", "jsonl", "csv", "pairs", "tokens"] {
        for (case, private, public, want) in cases {
            // A pair is one record in whichever order its texts come, and has no lines.
            if form == "pairs" && case.contains("of a record") {
                continue;
            }
            let texts = Texts::new(form, private, public);
            let one = texts.compared(1, false);
            let found = one[0].as_ref().err();
            assert_eq!(found.is_some(), want.is_some(), "{form}, {case}: {found:?}");
            assert!(
                want.is_none_or(|want| one[0].as_ref().unwrap_err().contains(want)),
                "{form}, {case}: {found:?}"
            );
            for ranks in 1..=4 {
                let all = texts.compared(ranks, true);
                assert_eq!(all[0], one[0], "{form}, {case}, {ranks} ranks");
                assert!(all.iter().all(|own| own.is_err() == want.is_some()), "{form}, {case}: {all:?}");
            }
        }
    }
}

/// If one rank fails, no other rank waits for it.
#[test]
fn a_file_that_can_no_longer_be_read_on_one_rank_is_refused_on_all() {
    let private: Vec<String> = (0..RECORDS).map(note).collect();
    let other: Vec<String> = (5_000..5_050).map(note).collect();
    let texts = Texts::new("jsonl", &private, &other);
    let (base, plan) = (texts.folder.path(), &texts.plan);
    let others = tempfile::tempdir().unwrap();
    for name in ["private.jsonl", "public.jsonl"] {
        fs::copy(base.join(name), others.path().join(name)).unwrap();
    }
    let found = on_ranks(3, |ranks| {
        let base = if ranks.rank() == 1 { others.path() } else { base };
        let units = read_units(plan, base, true, ranks).unwrap();
        let public = read_evaluation(plan, base, &units, ranks).unwrap().unwrap();
        if ranks.rank() == 1 {
            fs::remove_file(base.join("private.jsonl")).unwrap();
        }
        check_records(plan, base, &units, &public, Compared::evaluation(plan), ranks).unwrap_err()
    });
    let shown = found[0].to_string();
    assert!(shown.contains("rank 1 of 3") && shown.contains("private.jsonl"), "{shown}");
    assert!(found[1..].iter().all(|error| matches!(error, RunError::Elsewhere { code: 2 })));
}

/// Each rank has text only at its own places, so it fails if it reads another rank's text.
#[test]
fn each_rank_reads_its_share_of_the_paths_and_a_text_named_twice_is_refused_on_all() {
    let bases: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let text = |place: usize| (0..100).map(|n| note(1_000 * place + n) + "\n").collect::<String>();
    for place in 0..4 {
        let name = format!("{place}.txt");
        fs::write(bases[place % 2].path().join(&name), text(place)).unwrap();
        fs::write(bases[(place + 1) % 2].path().join(&name), b"\xFF\n").unwrap();
    }
    let source = |base: &TempDir| {
        let paths = (0..4).map(|place| base.path().join(format!("{place}.txt")));
        let files = corpus::Files { bad_utf8: corpus::BadUtf8::Refuse, ..corpus::Files::of(paths) };
        Source::Files(files)
    };
    let check = |base: &TempDir, ranks: &Ranks| {
        check_distinct(&source(base), "data.source", ranks).map_err(|error| error.to_string())
    };
    let found = on_ranks(2, |ranks| check(&bases[ranks.rank()], ranks));
    assert!(found.iter().all(Result::is_ok), "{found:?}");
    fs::write(bases[1].path().join("3.txt"), text(2).to_lowercase()).unwrap();
    let found = on_ranks(2, |ranks| check(&bases[ranks.rank()], ranks));
    assert!(found.iter().all(Result::is_err), "{found:?}");
    // The message is that of one process that has all of the text.
    (0..4).step_by(2).for_each(|place| {
        let name = format!("{place}.txt");
        fs::write(bases[1].path().join(name), text(place)).unwrap();
    });
    fs::write(bases[1].path().join("1.txt"), text(1)).unwrap();
    let one = check(&bases[1], &Ranks::alone());
    assert!(one.as_ref().is_err_and(|error| error.contains("2.txt") && error.contains("3.txt")), "{one:?}");
    let found = on_ranks(2, |ranks| check(&bases[1], ranks));
    assert_eq!(found[0], one);
    assert!(found[1].is_err());
}

#[test]
fn the_ranks_sketch_a_text_together_and_have_the_sketch_of_one_process() {
    let private: Vec<String> = (0..RECORDS).map(note).collect();
    for form in ["txt", "jsonl", "tokens"] {
        let texts = Texts::new(form, &private, &private[..1]);
        let (base, plan) = (texts.folder.path(), &texts.plan);
        let of = |count| {
            on_ranks(count, |ranks| {
                let units = read_units(plan, base, true, ranks).unwrap();
                sketch(plan, base, &units, ranks).unwrap()
            })
        };
        let one = of(1);
        for count in [2, 3] {
            assert!(of(count).iter().all(|own| *own == one[0]), "{form}, {count} ranks");
        }
        let earlier = [("first", &one[0])];
        let refused = on_ranks(3, |ranks| {
            let units = read_units(plan, base, true, ranks).unwrap();
            check_earlier(plan, base, &units, &earlier, ranks).unwrap_err().to_string()
        });
        assert!(refused[0].contains("text of first, which was declared public"), "{}", refused[0]);
    }
}

/// The texts have too few records in common for the comparison of records, but one file in common.
#[test]
fn a_training_file_among_public_ones_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [private, public] = ["private", "public"].map(|name| folder.path().join(name));
    for (path, from) in [(&private, 0), (&public, 100)] {
        fs::create_dir(path).unwrap();
        (from..from + 20).for_each(|n| fs::write(path.join(format!("{n}.txt")), format!("no {n}")).unwrap());
    }
    let check = || {
        let (training, public) = (Source::files([private.clone()]), Source::files([public.clone()]));
        check_files(Some(&training), &public, EVALUATION, &Ranks::alone()).map_err(|error| error.to_string())
    };
    assert_eq!(check(), Ok(()));
    fs::hard_link(private.join("7.txt"), public.join("7.txt")).unwrap();
    let refused = check().unwrap_err();
    assert!(
        refused.contains("public/7.txt is the training text") && refused.contains("private/7.txt"),
        "{refused}"
    );
}

/// The tokens of the private text have no "e". Public text is compared as it would be encoded.
#[test]
fn public_text_is_compared_with_what_a_tokenizer_kept_of_the_private_text() {
    let private: Vec<String> = (0..RECORDS).map(note).collect();
    let texts = Texts::new("tokens", &private, &private[..3]);
    let words = private.iter().flat_map(|text| text.split(' ')).map(|word| (word.replace('e', ""), 1.0));
    let settings = CharacterConfig { byte_fallback: false, ..CharacterConfig::default() };
    let lossy = characters(&words.collect::<Vec<_>>(), &settings).unwrap().tokenizer;
    assert!(!lossy.decode(&lossy.encode("seen")).contains('e'));
    write_tokens(&texts.folder, PrivacyUnit::Record, &lossy);
    let refused = texts.compared(1, false).remove(0).unwrap_err();
    assert!(refused.contains("shares text"), "{refused}");
}

/// The pieces of a record are too short to tell anything by themselves.
#[test]
fn a_record_of_a_token_file_is_compared_as_a_whole() {
    let record = |n: usize| format!("a{n} b{n} c{n} d{n} e{n} f{n} g{n} h{n} i{n}");
    let private: Vec<String> = (0..RECORDS).map(record).collect();
    let mut public: Vec<String> = (5_000..5_300).map(record).collect();
    (0..3).for_each(|n| public.insert(n * 100, record(n * 7)));
    let mut texts = Texts::new("tokens", &private, &public);
    let tokenizer = Tokenizer::bytes(&["</s>".to_owned()]).unwrap();
    write_tokens(&texts.folder, PrivacyUnit::Words(4), &tokenizer);
    let mut plan = serde_json::from_str::<Value>(&texts.plan.file().text()).unwrap();
    plan["privacy"]["unit"] = json!({ "words": 4 });
    texts.plan = PlanFile::parse(&plan.to_string()).unwrap().try_into().unwrap();
    let refused = texts.compared(1, false).remove(0).unwrap_err();
    assert!(refused.contains("shares text"), "{refused}");
}

/// Each of several earlier stages is compared, not only the first.
#[test]
fn text_of_any_earlier_stage_is_refused() {
    let private: Vec<String> = (0..RECORDS).map(note).collect();
    let texts = Texts::new("txt", &private, &private[..1]);
    let other = Texts::new("txt", &(5_000..5_700).map(note).collect::<Vec<_>>(), &private[..1]);
    let alone = Ranks::alone();
    let read = |texts: &Texts| read_units(&texts.plan, texts.folder.path(), false, &alone).unwrap();
    let [own, others] =
        [&texts, &other].map(|texts| sketch(&texts.plan, texts.folder.path(), &read(texts), &alone).unwrap());
    let (units, base) = (read(&texts), texts.folder.path());
    let check = |earlier: &[(&str, &Sketch)]| check_earlier(&texts.plan, base, &units, earlier, &alone);
    assert!(check(&[("first", &others)]).is_ok());
    let refused = check(&[("first", &others), ("second", &own)]).unwrap_err().to_string();
    assert!(refused.contains("text of second, which was declared public"), "{refused}");
}
