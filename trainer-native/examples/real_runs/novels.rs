//! Novels, a paragraph a record, ε ≤ 8: T5 with a vocabulary released privately against one of public text, and BERT
//! with batches of one size against growing ones.

use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::Format;

use crate::{NamedPlan, Outcome, brown, carry_out, records, write};

/// Those of Brown make one step: what they are for is the vocabulary.
const PLANS: [NamedPlan; 9] = [
    ("brown-spans", include_str!("novels/brown-spans.json")),
    ("brown-prefix", include_str!("novels/brown-prefix.json")),
    ("brown-masked", include_str!("novels/brown-masked.json")),
    ("spans-private-vocabulary", include_str!("novels/spans-private-vocabulary.json")),
    ("spans-public-vocabulary", include_str!("novels/spans-public-vocabulary.json")),
    ("prefix-private-vocabulary", include_str!("novels/prefix-private-vocabulary.json")),
    ("prefix-public-vocabulary", include_str!("novels/prefix-public-vocabulary.json")),
    ("masked-fixed", include_str!("novels/masked-fixed.json")),
    ("masked-growing", include_str!("novels/masked-growing.json")),
];

pub fn all(texts: &[PathBuf], folder: &Path) -> Outcome {
    write(&folder.join("brown.txt"), &brown(&texts[0])?)?;
    let paragraphs: Vec<String> = records(&texts[1], Format::Auto)?
        .iter()
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|text| !text.is_empty())
        .collect();
    // Every eighth, so that all the books are there; none of those held out is among them.
    let some = |from: usize, step: usize, most: usize| -> Vec<String> {
        paragraphs.iter().skip(from).step_by(step).take(most).cloned().collect()
    };
    write(&folder.join("novels.txt"), &some(0, 8, 20_000))?;
    write(&folder.join("novels-held-out.txt"), &some(4, 320, 300))?;
    PLANS.into_iter().try_for_each(|plan| carry_out(plan, folder, false))
}
