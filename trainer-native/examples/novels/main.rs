//! T5 and BERT trained privately on English novels: spans and prefixes with a vocabulary released from the novels beside
//! one of public text (the comparison of Ponomareva, Bastings & Vassilvitskii 2022, <https://arxiv.org/abs/2204.09150>), and
//! masked tokens in equal and in growing batches at equal ε (that of Anil et al. 2021, <https://arxiv.org/abs/2108.01624>).
//!
//! ```sh
//! cargo run --release -p trainer-native --example novels -- novels.jsonl brown.tsv [FOLDER]
//! ```
//!
//! `novels.jsonl`: a paragraph a line in the field `text`; each is a unit. `brown.tsv`, the public text: a header, then
//! file, category and sentence a line. Also `.gz` and `.zst`. Finished runs are not run again, others go on where they stopped.

#[path = "../common/mod.rs"]
mod common;

use dp_tokenizer::corpus::Format;

use common::{NamedPlan, Outcome, arguments, brown, carry_out, records, write};

/// Of so many paragraphs one is not trained on; of these, one in [`MEASURED`] is what models are measured on.
const HELD_OUT: usize = 8;
const MEASURED: usize = 64;

/// Public models first: the others take their vocabularies or start from them.
const PLANS: [NamedPlan; 9] = [
    named_plan!("spans-public"),
    named_plan!("spans-public-vocabulary"),
    named_plan!("spans-private-vocabulary"),
    named_plan!("prefix-public"),
    named_plan!("prefix-public-vocabulary"),
    named_plan!("prefix-private-vocabulary"),
    named_plan!("masked-public"),
    named_plan!("masked-equal-batches"),
    named_plan!("masked-growing-batches"),
];

fn main() -> Outcome {
    let ([novels, public], folder) =
        arguments("runs/novels", "give NOVELS.jsonl BROWN.tsv and optionally a folder")?;
    write(&folder.join("brown.txt"), &brown(&public)?)?;
    let paragraphs = records(&novels, Format::Auto)?
        .into_iter()
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let (held_out, private): (Vec<_>, Vec<_>) =
        paragraphs.enumerate().partition(|(index, _)| index % HELD_OUT == HELD_OUT / 2);
    let texts = |numbered: Vec<(usize, String)>| numbered.into_iter().map(|(_, text)| text);
    write(&folder.join("novels.txt"), &texts(private).collect::<Vec<_>>())?;
    write(&folder.join("held-out.txt"), &texts(held_out).step_by(MEASURED).collect::<Vec<_>>())?;
    PLANS.into_iter().try_for_each(|plan| carry_out(plan, &folder, false))
}
