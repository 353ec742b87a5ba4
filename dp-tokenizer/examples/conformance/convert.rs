//! Compares each vocabulary in each format with the original: it is equal on all texts, or refused.

use tokenizer::Tokenizer;
use tokenizer::format::{gpt2, vocab_txt};
use tokenizer::normalize::BertNormalizer;

use super::corpora::Corpora;
use super::{Case, Outcome};

const FORMATS: [&str; 4] = ["tokenizer.json", ".model", "vocab.txt", "vocab.json"];

/// Returns the tokenizer that a file of this format gives when it is read; `None` if the format has no such tokenizer.
/// A vocab.txt does not state its case, so either is tried.
fn converted(tokenizer: &Tokenizer, format: &str) -> Option<Tokenizer> {
    match format {
        "tokenizer.json" => Tokenizer::from_json(&tokenizer.to_json()).ok(),
        ".model" => Tokenizer::from_sentencepiece(&tokenizer.to_sentencepiece().ok()?).ok(),
        "vocab.txt" => {
            let text = tokenizer.to_vocab_txt().ok()?;
            let read = |case| Tokenizer::bert(vocab_txt::read(text.as_bytes()).ok()?, case).ok();
            let uncased = read(BertNormalizer::uncased())?;
            match tokenizer.difference(&uncased) {
                None => Some(uncased),
                Some(_) => read(BertNormalizer::cased()),
            }
        }
        _ => {
            let (vocab, merges) = tokenizer.to_gpt2().ok()?;
            let merges = gpt2::read_merges(merges.as_bytes()).ok()?;
            Tokenizer::gpt2(gpt2::read_vocab(vocab.as_bytes()).ok()?, merges).ok()
        }
    }
}

/// The number of texts of all corpora that differ in ids, and of those with equal ids that differ in decoded text.
#[derive(Default)]
struct Differing {
    texts: usize,
    ids: usize,
    decoded: usize,
    first: Option<String>,
}

fn count(case: &Case, other: &Tokenizer, corpora: &Corpora, is_compared: impl Fn(&str) -> bool) -> Differing {
    let (mut ours, mut theirs) = (case.tokenizer.encoder(), other.encoder());
    let mut found = Differing::default();
    for line in corpora.values().flat_map(|lines| case.texts(lines)).filter(|line| is_compared(line)) {
        let (a, b) = (ours.encode(line), theirs.encode(line));
        let is_decoded_otherwise = a == b && case.tokenizer.decode(&a) != other.decode(&b);
        found.texts += 1;
        found.ids += usize::from(a != b);
        found.decoded += usize::from(is_decoded_otherwise);
        if (a != b || is_decoded_otherwise) && found.first.is_none() {
            found.first = Some(line.chars().take(60).collect::<String>());
        }
    }
    found
}

/// Prints a line for each vocabulary and format: why `convert` refuses it, or how many texts differ. Where it writes the file on
/// request alone, texts that spell a special token are left out.
pub(super) fn compare(cases: &[Case], corpora: &Corpora) -> Outcome<()> {
    println!("vocabulary | format | written | texts | differ in ids | in decoded text");
    let (mut wrong, mut equal, mut refused, mut on_request) = (0, 0, 0, 0);
    for case in cases.iter().filter(|case| case.kind != "transformers") {
        for format in FORMATS {
            let other = converted(&case.tokenizer, format);
            let difference = match &other {
                None => Some("no such format of this model".to_owned()),
                Some(other) => case.tokenizer.difference(other),
            };
            let (Some(other), None) = (&other, &difference) else {
                println!("{} | {format} | refused: {}", case.name, difference.unwrap_or_default());
                refused += 1;
                continue;
            };
            let is_rare = !case.tokenizer.rare_differences(other).is_empty();
            let names: Vec<&str> =
                case.tokenizer.names_of_special_tokens().chain(other.names_of_special_tokens()).collect();
            let is_plain = |line: &str| !is_rare || !names.iter().any(|name| line.contains(name));
            let Differing { texts, ids, decoded, first } = count(case, other, corpora, is_plain);
            let written = if is_rare { "on request" } else { "yes" };
            println!("{} | {format} | {written} | {texts} | {ids} | {decoded}", case.name);
            first.into_iter().for_each(|line| println!("    {line:?}"));
            on_request += usize::from(is_rare);
            equal += usize::from(!is_rare);
            wrong += usize::from(!is_rare && ids + decoded > 0);
        }
    }
    println!("{refused} refused, {on_request} written on request, {equal} written");
    match wrong {
        0 => Ok(()),
        wrong => Err(format!("{wrong} conversions are written and differ in some text").into()),
    }
}
