//! Real runs on real text, the plans beside this file: what a user gets, with figures to compare with those in the README.
//!
//! ```sh
//! cargo run --release -p trainer-native --example real_runs -- kerrigan brown.tsv train.tsv test.tsv [FOLDER]
//! cargo run --release -p trainer-native --example real_runs -- novels brown.tsv novels.jsonl [FOLDER]
//! ```
//!
//! `brown.tsv`: a header, then file, category and sentence a line (the Brown corpus). `train.tsv`, `test.tsv`: a comment, a
//! tab and more a line (GoEmotions, Demszky et al. 2020). `novels.jsonl`: an object with a `text`, a paragraph, a line. Also
//! `.gz` and `.zst`. Finished runs are not run again, others go on where they stopped.

mod kerrigan;
mod novels;

use std::error::Error;
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{BadUtf8, Files, Format, Meter, Source, open};
use trainer_native::run::{Request, run};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A plan's name and text.
type NamedPlan = (&'static str, &'static str);

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, texts, folder) = match arguments.as_slice() {
        ["kerrigan", texts @ ..] if texts.len() == 3 => ("kerrigan", texts, "runs/kerrigan"),
        ["kerrigan", texts @ .., folder] if texts.len() == 3 => ("kerrigan", texts, *folder),
        ["novels", texts @ ..] if texts.len() == 2 => ("novels", texts, "runs/novels"),
        ["novels", texts @ .., folder] if texts.len() == 2 => ("novels", texts, *folder),
        _ => return Err("give `kerrigan BROWN TRAIN TEST [FOLDER]` or `novels BROWN NOVELS [FOLDER]`".into()),
    };
    let (texts, folder): (Vec<PathBuf>, _) = (texts.iter().map(PathBuf::from).collect(), Path::new(folder));
    fs::create_dir_all(folder)?;
    if name == "kerrigan" { kerrigan::all(&texts, folder) } else { novels::all(&texts, folder) }
}

/// Runs a plan, or goes on with it, and prints its held-out figures.
fn carry_out((name, plan): NamedPlan, folder: &Path, non_private: bool) -> Outcome {
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, plan)?;
    let end = if non_private { "-without-privacy-run" } else { "-run" };
    let request = Request {
        plan: path,
        out: Some(folder.join(format!("{name}{end}"))),
        resume: true,
        device: None,
        test_key: None,
        non_private,
        canaries: None,
    };
    writeln!(stdout(), "{}\n", run(&request)?)?;
    Ok(())
}

/// Brown's sentences, whose signs stand between blanks there.
fn brown(path: &Path) -> Outcome<Vec<String>> {
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
fn column(path: &Path, column: usize, signs: &[(&str, &str)]) -> Outcome<Vec<String>> {
    let text = |line: String| {
        let text = line.split('\t').nth(column).unwrap_or_default();
        signs.iter().fold(text.to_owned(), |text, (sign, plain)| text.replace(sign, plain)).trim().to_owned()
    };
    let texts = records(path, Format::Text)?.into_iter().map(text);
    Ok(texts.filter(|text| !text.is_empty()).collect())
}

fn records(path: &Path, format: Format) -> Outcome<Vec<String>> {
    let files = Files {
        paths: vec![path.to_owned()],
        format,
        text_field: "text".to_owned(),
        user_field: None,
        bad_utf8: BadUtf8::Refuse,
        meter: Meter::default(),
    };
    open(&Source::Files(files))?.map(|record| Ok(record?.text)).collect()
}

/// Writes texts, one a line.
fn write(path: &Path, texts: &[String]) -> Outcome {
    Ok(fs::write(path, texts.iter().map(|text| format!("{text}\n")).collect::<String>())?)
}
