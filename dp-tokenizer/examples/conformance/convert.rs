//! Each vocabulary in each format: equal to the original on all texts, or refused.

use dp_tokenizer::Tokenizer;
use dp_tokenizer::format::{gpt2, vocab_txt};
use dp_tokenizer::normalize::BertNormalizer;

use super::corpora::Corpora;
use super::{Case, Outcome};

const FORMATS: [&str; 4] = ["tokenizer.json", ".model", "vocab.txt", "vocab.json"];

/// What a file of this format gives when it is read; none if the format has no such tokenizer. A vocab.txt does not state its
/// case, so either is tried.
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

/// Prints a line for each vocabulary and format: whether `convert` writes it, and how many texts differ if it does.
pub(super) fn compare(cases: &[Case], corpora: &Corpora) -> Outcome<()> {
    println!("vocabulary | format | texts | differ in ids | in decoded text");
    let mut wrong = 0;
    for case in cases.iter().filter(|case| case.kind != "transformers") {
        for format in FORMATS {
            let Some(other) = converted(&case.tokenizer, format) else {
                println!("{} | {format} | refused: no such format of this model", case.name);
                continue;
            };
            if let Some(difference) = case.tokenizer.difference(&other) {
                println!("{} | {format} | refused: {difference}", case.name);
                continue;
            }
            let (mut ours, mut theirs) = (case.tokenizer.encoder(), other.encoder());
            let (mut texts, mut in_ids, mut in_text) = (0, 0, 0);
            let mut first = None;
            for line in corpora.values().flat_map(|lines| case.texts(lines)) {
                let (a, b) = (ours.encode(line), theirs.encode(line));
                texts += 1;
                if a != b && first.is_none() {
                    first = Some(line.chars().take(60).collect::<String>());
                }
                in_ids += usize::from(a != b);
                in_text += usize::from(a == b && case.tokenizer.decode(&a) != other.decode(&b));
            }
            println!("{} | {format} | {texts} | {in_ids} | {in_text}", case.name);
            first.into_iter().for_each(|line| println!("    {line:?}"));
            wrong += usize::from(in_ids > 0);
        }
    }
    println!("{wrong} conversions are written and differ in some text");
    Ok(())
}
