//! The texts of `../shared/data`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use dp_tokenizer::corpus::{BadUtf8, Files, Format, Source, open};

use super::Outcome;

/// The corpus of all code points, one a text.
pub(super) const SWEEP: &str = "sweep";

/// Texts by the name of their corpus.
pub(super) type Corpora = BTreeMap<&'static str, Vec<String>>;

/// Returns the lines of a file, compressed or not, whatever its name says. Blank ones are left out.
fn lines_of(path: &Path) -> Outcome<Vec<String>> {
    let files = Files { format: Format::Text, bad_utf8: BadUtf8::Replace, ..Files::of([path.to_owned()]) };
    open(&Source::Files(files))?.map(|record| Ok(record?.text)).collect()
}

/// Returns the sentences of a file that has a word and its tag on each line.
fn sentences_of_words(path: &Path) -> Outcome<Vec<String>> {
    let files = Files { format: Format::Iob, ..Files::of([path.to_owned()]) };
    open(&Source::Files(files))?.map(|record| Ok(record?.text)).collect()
}

/// Reads every text: a line of a file, or a record.
pub(super) fn read(data: &Path, python: &Path, script: &Path) -> Outcome<Corpora> {
    let texts = |path: &str| -> Outcome<Vec<String>> {
        let path = data.join(path);
        if !path.is_file() {
            return Err(format!("{} is not here; it is needed", path.display()).into());
        }
        open(&Source::files([path]))?.map(|record| Ok(record?.text)).collect()
    };
    let naughty: Vec<String> = serde_json::from_slice(&std::fs::read(data.join("unicode/blns/blns.json"))?)?;
    let questions: serde_json::Value =
        serde_json::from_slice(&std::fs::read(data.join("tokenizers/expected/question_tokens.json"))?)?;
    let questions = questions.as_array().into_iter().flatten();
    let brown = lines_of(&data.join("brown/brown_plain.tsv.zst"))?;
    let zip = data.join("unicode/udhr2.zip");
    let udhr = Command::new(python).arg(script).arg("udhr").arg(zip).stderr(Stdio::inherit()).output()?;
    let udhr = udhr.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    // Each character stands within a word, between words, and repeated.
    let sweep = (0..=0x10FFFF).filter_map(char::from_u32).map(|c| format!("a{c}b {c} {c}{c}"));
    let tables = |paths: &[&str], column: usize| -> Outcome<Vec<String>> {
        let rows = paths.iter().map(|path| lines_of(&data.join(path))).collect::<Outcome<Vec<_>>>()?;
        let cells =
            rows.into_iter().flatten().map(|row| row.split('\t').nth(column).unwrap_or("").to_owned());
        Ok(cells.filter(|cell| !cell.is_empty()).collect())
    };
    let sentences = |path: &str| -> Outcome<Vec<String>> {
        let rows = lines_of(&data.join(path))?;
        Ok(rows.iter().filter_map(|row| Some(row.split_once(' ')?.1.to_owned())).collect())
    };
    Ok(BTreeMap::from([
        (
            "goemotions",
            tables(&["goemotions/train.tsv.zst", "goemotions/dev.tsv", "goemotions/test.tsv"], 0)?,
        ),
        ("wikitext", lines_of(&data.join("wikitext2/raw/valid.txt.zst"))?),
        ("wikitext-tokens", lines_of(&data.join("wikitext2/tok/test.txt.zst"))?),
        ("shakespeare", lines_of(&data.join("tinyshakespeare/input.txt.zst"))?),
        ("sst", sentences("sentcls/stsa.fine.train")?),
        ("subjectivity", sentences("sentcls/subj.all.zst")?),
        ("medical", sentences_of_words(&data.join("ner/BC5CDR-IOB/train.tsv.zst"))?),
        ("english", lines_of(&data.join("multi30k/train.en.gz"))?),
        ("sp-english", lines_of(&data.join("tokenizers/sp/botchan.txt"))?),
        ("normalization", lines_of(&data.join("unicode/NormalizationTest-8.0.0.txt.zst"))?),
        ("novels", texts("novels/novels.jsonl.zst")?),
        ("brown", brown.iter().filter_map(|row| Some(row.rsplit_once('\t')?.1.to_owned())).collect()),
        ("udhr", udhr.map(serde_json::from_slice).collect::<Result<_, _>>()?),
        ("naughty", naughty),
        ("squad", questions.filter_map(|q| Some(q["original"].as_str()?.to_owned())).collect()),
        ("japanese", texts("tokenizers/sp/wagahaiwa_nekodearu.txt")?),
        ("irc", texts("irc/irc_train.jsonl.zst")?.into_iter().step_by(20).collect()),
        ("german", lines_of(&data.join("multi30k/train.de.gz"))?),
        (SWEEP, sweep.collect()),
    ]))
}
