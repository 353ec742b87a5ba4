//! The vocabularies that are compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use dp_tokenizer::corpus::Source;
use dp_tokenizer::count::{CountOptions, Words};
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{
    BpeConfig, CharacterConfig, UnigramConfig, WordPieceTraining, bpe, characters, unigram, wordpiece,
};
use tokenizer::Tokenizer;
use tokenizer::format::{gpt2, vocab_txt};
use tokenizer::normalize::{BertNormalizer, Normalizer};
use tokenizer::sentencepiece::SentencePieceModel;

use super::corpora::Corpora;
use super::{Case, Outcome};

const MODELS: &str = include_str!("models.py");

/// The number of texts of a corpus for each of the many structures, evenly spaced.
const FOR_STRUCTURES: usize = 4000;

/// Makes all vocabularies. Their files are in `folder`.
pub(super) fn make(data: &Path, folder: &Path, python: &Path, corpora: &Corpora) -> Outcome<Vec<Case>> {
    let mut cases = Vec::new();
    public(data, folder, &corpora["novels"], &mut cases)?;
    structures(python, folder, corpora, &mut cases)?;
    Ok(cases)
}

/// Reads each `tokenizer.json` in a folder and below it. A vocabulary is named by the folder of its file.
pub(super) fn of_files(folder: &Path) -> Outcome<Vec<Case>> {
    let (mut cases, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name == "tokenizer.json") {
                let name = folder.display().to_string();
                let tokenizer = Tokenizer::from_json(&std::fs::read_to_string(&path)?);
                let tokenizer = tokenizer.map_err(|error| format!("{name}: {error}"))?;
                let most = usize::MAX >> 1;
                cases.push(Case { name, tokenizer, kind: "json", path, is_lossless: false, most });
            }
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    if cases.is_empty() {
        return Err(format!("{}: it has no tokenizer.json", folder.display()).into());
    }
    Ok(cases)
}

/// Adds public vocabularies, and those that are trained here on every eighth of the novels' paragraphs.
fn public(data: &Path, folder: &Path, novels: &[String], cases: &mut Vec<Case>) -> Outcome<()> {
    let file = |path: &str| data.join("tokenizers").join(path);
    let mut add = |name: &str, tokenizer, kind, path, is_lossless| {
        cases.push(Case { name: name.to_owned(), tokenizer, kind, path, is_lossless, most: usize::MAX >> 1 });
    };
    let path = file("torchtext/bert_base_uncased_vocab.txt");
    let bert = Tokenizer::bert(vocab_txt::read(&std::fs::read(&path)?)?, BertNormalizer::uncased())?;
    add("BERT vocab.txt", bert, "bert", path, false);
    for (name, path) in [
        ("GPT-2 tokenizer.json", "hf/gpt2/tokenizer.json"),
        ("T5 tokenizer.json", "hf/t5-small/tokenizer.json"),
    ] {
        let tokenizer = Tokenizer::from_json(&std::fs::read_to_string(file(path))?)?;
        add(name, tokenizer, "json", file(path), path.contains("gpt2"));
    }
    let merges = folder.join("merges.txt");
    std::fs::copy(file("torchtext/gpt2_bpe_vocab.bpe"), &merges)?;
    let path = folder.join("vocab.json");
    std::fs::copy(file("torchtext/gpt2_bpe_encoder.json"), &path)?;
    let merges = gpt2::read_merges(&std::fs::read(merges)?)?;
    let tokenizer = Tokenizer::gpt2(gpt2::read_vocab(&std::fs::read(&path)?)?, merges)?;
    add("GPT-2 vocab.json, merges.txt", tokenizer, "gpt2", path, true);
    for (name, path) in [
        ("T5 .model", "torchtext/t5_tokenizer_base.model"),
        ("SentencePiece's English .model", "sp/test_model.model"),
        ("SentencePiece's Japanese .model", "sp/test_ja_model.model"),
    ] {
        let model = SentencePieceModel::from_bytes(&std::fs::read(file(path))?)?;
        add(name, Tokenizer::from_sentencepiece(&model)?, "sentencepiece", file(path), false);
    }
    let part = folder.join("part.txt");
    let lines: Vec<String> = novels.iter().step_by(8).map(|line| line.replace('\n', " ")).collect();
    std::fs::write(&part, lines.join("\n"))?;
    let options = CountOptions { threads: 2, memory: usize::MAX, spill_folder: None };
    let [words, runs] = [Words::ByClass, Words::Runs]
        .map(|kind| public_corpus_counts(&Source::files([part.clone()]), kind, &options));
    trained(folder, &words?, &runs?, &mut add)
}

/// Adds small vocabularies of the structure of well-known models, made by Hugging Face's library.
fn structures(python: &Path, folder: &Path, corpora: &Corpora, cases: &mut Vec<Case>) -> Outcome<()> {
    let [models, script, part] = ["models", "models.py", "models.txt"].map(|name| folder.join(name));
    std::fs::write(&script, MODELS)?;
    let some = ["novels", "japanese", "irc", "german"].map(|name| corpora[name].iter().take(1500));
    let lines: Vec<String> = some.into_iter().flatten().map(|line| line.replace('\n', " ")).collect();
    std::fs::write(&part, lines.join("\n"))?;
    if !Command::new(python).arg(&script).arg(&models).arg(&part).status()?.success() {
        return Err("models.py failed; its message stands above".into());
    }
    for entry in std::fs::read_dir(&models)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let tokenizer = Tokenizer::from_json(&std::fs::read_to_string(&path)?);
        let tokenizer = tokenizer.map_err(|error| format!("{name}: {error}"))?;
        cases.push(Case { name, tokenizer, kind: "json", path, is_lossless: false, most: FOR_STRUCTURES });
    }
    Ok(())
}

fn trained(
    folder: &Path,
    words: &[(String, f64)],
    runs: &[(String, f64)],
    add: &mut impl FnMut(&str, Tokenizer, &'static str, PathBuf, bool),
) -> Outcome<()> {
    let plain = || UnigramConfig::default();
    let nfkc = UnigramConfig { normalizer: Some(Normalizer::nfkc()), ..plain() };
    let symbols = vec!["<user>".to_owned(), "the".to_owned()];
    let shaped =
        UnigramConfig { byte_fallback: false, symbols, sentinels: 3, character_coverage: 0.999, ..plain() };
    let across = UnigramConfig { split_by_whitespace: false, ..plain() };
    let merged_across = BpeConfig { split_by_whitespace: false, ..BpeConfig::default() };
    let specials = BpeConfig::default().special_tokens;
    let made = [
        ("unigram", unigram(words, &plain())?.tokenizer, true),
        ("unigram, NFKC", unigram(words, &nfkc)?.tokenizer, false),
        ("unigram, symbols, no bytes", unigram(words, &shaped)?.tokenizer, false),
        ("BPE", bpe(words, &BpeConfig::default())?.tokenizer, true),
        ("WordPiece", wordpiece(words, &WordPieceTraining::default())?.tokenizer, false),
        ("characters", characters(words, &CharacterConfig::default())?.tokenizer, true),
        ("bytes", Tokenizer::bytes(&specials)?, true),
        ("unigram across blanks", unigram(runs, &across)?.tokenizer, true),
        ("BPE across blanks", bpe(runs, &merged_across)?.tokenizer, true),
    ];
    for (number, (name, tokenizer, is_lossless)) in made.into_iter().enumerate() {
        let own = folder.join(number.to_string());
        std::fs::create_dir(&own)?;
        let json = tokenizer.to_json();
        std::fs::write(own.join("tokenizer.json"), &json)?;
        std::fs::write(own.join("tokenizer_config.json"), tokenizer.to_config_json())?;
        let name_of = |form: &str| format!("{name} {form}");
        if let Ok(model) = tokenizer.to_sentencepiece() {
            let path = own.join("spm.model");
            std::fs::write(&path, model.to_bytes())?;
            add(
                &name_of(".model"),
                Tokenizer::from_sentencepiece(&model)?,
                "sentencepiece",
                path,
                is_lossless,
            );
        }
        add(
            &name_of("by transformers"),
            Tokenizer::from_json(&json)?,
            "transformers",
            own.clone(),
            is_lossless,
        );
        add(
            &name_of("tokenizer.json"),
            Tokenizer::from_json(&json)?,
            "json",
            own.join("tokenizer.json"),
            is_lossless,
        );
    }
    Ok(())
}
