//! The setting of Kerrigan, Slack & Tuyls 2020, <https://arxiv.org/abs/2009.05886>, from end to end: models of the public
//! Brown corpus, fine-tuned on 10,000 Reddit comments at ε ≤ 8 and measured on 5,000 others.
//!
//! ```sh
//! cargo run --release -p trainer-native --example kerrigan -- brown.tsv train.tsv test.tsv [FOLDER]
//! ```
//!
//! `brown.tsv`: a header, then file, category and sentence a line. The others: a comment, a tab and more a line, as
//! GoEmotions has them (Demszky et al. 2020). Also `.gz` and `.zst`. Finished runs are not run again, others go on where
//! they stopped.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../common/mod.rs"]
mod common;

use common::{NamedPlan, Outcome, arguments, brown, carry_out, comments, word_vocabulary, write};

/// Words of the fixed vocabulary, learnt on the public text alone; special tokens are among them.
const VOCABULARY: usize = 10_000;

/// Each public model, what is made of it, with privacy and without, and the same from random weights.
const PLANS: [[NamedPlan; 3]; 2] = [
    [named_plan!("ff-public"), named_plan!("ff-private"), named_plan!("ff-scratch")],
    [named_plan!("dec-public"), named_plan!("dec-private"), named_plan!("dec-scratch")],
];

fn main() -> Outcome {
    let usage = "give BROWN.tsv TRAIN.tsv TEST.tsv and optionally a folder";
    let (texts, folder) = arguments("runs/kerrigan", usage)?;
    prepare(&texts, &folder)?;
    for [public, private, scratch] in PLANS {
        carry_out(public, &folder, false)?;
        carry_out(private, &folder, false)?;
        carry_out(private, &folder, true)?;
        carry_out(scratch, &folder, false)?;
    }
    Ok(())
}

/// Writes the texts as a line a record, and the vocabulary.
fn prepare([brown_path, train, test]: &[PathBuf; 3], folder: &Path) -> Outcome {
    let sentences = brown(brown_path)?;
    fs::write(folder.join("words.json"), word_vocabulary(&sentences, VOCABULARY).to_string())?;
    write(&folder.join("brown.txt"), &sentences)?;
    write(&folder.join("reddit.txt"), &comments(train, 10_000)?)?;
    let test = comments(test, 5_000)?;
    write(&folder.join("reddit-test.txt"), &test)?;
    write(&folder.join("reddit-test-1000.txt"), &test[..test.len().min(1_000)])
}
