//! Shared by the examples: public corpora with one record per line, and a function that carries out a plan.

#![allow(dead_code, reason = "each example uses its part")]

use std::error::Error;
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{BadUtf8, Files, Format, Source, open};
use trainer_native::run::{Request, run};

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A plan with its name.
#[derive(Clone, Copy)]
pub struct NamedPlan {
    pub name: &'static str,
    pub text: &'static str,
}

/// The paths of the texts, and the folder of the runs, which may be left out.
pub fn arguments<const TEXTS: usize>(folder: &str, usage: &str) -> Outcome<([PathBuf; TEXTS], PathBuf)> {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let named = if paths.len() > TEXTS { paths.pop() } else { None };
    let folder = named.unwrap_or_else(|| PathBuf::from(folder));
    let texts = paths.try_into().map_err(|_| usage)?;
    fs::create_dir_all(&folder)?;
    Ok((texts, folder))
}

/// Runs or resumes a plan, and prints its evaluation.
pub fn carry_out(plan: NamedPlan, folder: &Path, non_private: bool) -> Outcome {
    let name = plan.name;
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, plan.text)?;
    let end = if non_private { "-without-privacy-run" } else { "-run" };
    let out = folder.join(format!("{name}{end}"));
    let resume = out.join("ledger.jsonl").exists();
    let request = Request { resume, out: Some(out), non_private, ..Request::new(path) };
    writeln!(stdout(), "{}\n", run(&request)?)?;
    Ok(())
}

/// Brown's sentences, whose signs stand between blanks there.
pub fn brown(path: &Path) -> Outcome<Vec<String>> {
    let signs = [
        ("`` ", "\""),
        (" ''", "\""),
        ("``", "\""),
        ("''", "\""),
        (" n't", "n't"),
        (" .", "."),
        (" ,", ","),
        (" ;", ";"),
        (" :", ":"),
        (" !", "!"),
        (" ?", "?"),
        (" )", ")"),
        ("( ", "("),
    ];
    Ok(column(path, 2, &signs)?.into_iter().skip(1).collect())
}

/// The texts in a column of a table, without blanks at their ends and none that is empty.
pub fn column(path: &Path, column: usize, signs: &[(&str, &str)]) -> Outcome<Vec<String>> {
    let text = |line: String| {
        let text = line.split('\t').nth(column).unwrap_or_default();
        signs.iter().fold(text.to_owned(), |text, (sign, plain)| text.replace(sign, plain)).trim().to_owned()
    };
    let texts = records(path, Format::Text)?.into_iter().map(text);
    Ok(texts.filter(|text| !text.is_empty()).collect())
}

/// The texts of a file's records: of its lines, or of the field `text` of JSON lines.
pub fn records(path: &Path, format: Format) -> Outcome<Vec<String>> {
    let files = Files { format, bad_utf8: BadUtf8::Refuse, ..Files::of([path.to_owned()]) };
    open(&Source::Files(files))?.map(|record| Ok(record?.text)).collect()
}

/// Writes texts, one a line.
pub fn write(path: &Path, texts: &[String]) -> Outcome {
    Ok(fs::write(path, texts.iter().map(|text| format!("{text}\n")).collect::<String>())?)
}
