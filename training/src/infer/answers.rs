//! Scores the texts that a model writes for public records against their targets.

use tokenizer::Tokenizer;

use super::InferenceModel;
use super::generate::{GenerationOptions, Prompt, Sampling, Strategy, generate_tokens};
use crate::RunError;
use crate::data::{Answer, LabelledRecord};
use crate::disclosure::Released;
use crate::objective::end_of_text;
use crate::score::{Metric, Score, Tokenization};
use network::Example;
use network::nn::Kernels;

/// Number of records that are answered at a time. Affects speed and memory only.
const BATCH: usize = 16;

/// Public records to be answered.
pub(super) struct Answers {
    prompts: Vec<Prompt>,
    references: Vec<String>,
}

impl Answers {
    /// Creates the prompts. The prompt of a record is what the model reads in training before it
    /// writes the target.
    pub fn new(records: &[LabelledRecord], examples: &[Example]) -> Self {
        let reference = |record: &LabelledRecord| match &record.answer {
            Answer::Text(target) => target.clone(),
            Answer::Labels(_) => String::new(),
        };
        Self {
            prompts: examples.iter().map(prompt).collect(),
            references: records.iter().map(reference).collect(),
        }
    }

    /// Returns BLEU and chrF of greedily decoded answers.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a prompt does not fit the model.
    pub fn score<B: Kernels>(
        &self,
        model: &InferenceModel<B>,
        tokenizer: &Tokenizer,
    ) -> Result<Released<Vec<Score>>, RunError> {
        // Prompts of similar length share a batch, so that a long prompt shortens the answers of
        // few others.
        let mut order: Vec<usize> = (0..self.prompts.len()).collect();
        order.sort_by_key(|&record| self.prompts[record].written.len());
        let mut answers = vec![String::new(); self.prompts.len()];
        let end = end_of_text(tokenizer)?;
        for records in order.chunks(BATCH) {
            let prompts: Vec<Prompt> = records.iter().map(|&record| self.prompts[record].clone()).collect();
            let options = GenerationOptions {
                tokens: model.most_answered(&prompts),
                min_tokens: 0,
                no_repeat_ngram: 0,
                strategy: Strategy::Sample(Sampling::GREEDY),
                batch: BATCH,
                seed: Some(0),
                first: 0,
            };
            for (&record, tokens) in
                records.iter().zip(generate_tokens(model, tokenizer, &prompts, end, &options)?)
            {
                answers[record] = tokenizer.decode(&tokens);
            }
        }
        let score = |metric: Metric| metric.score(&answers, &self.references, Tokenization::V13a);
        Ok(Released::from_public_text([Metric::Bleu, Metric::Chrf].map(score).into()))
    }
}

/// Returns the beginning of the example of a text to be written.
fn prompt(example: &Example) -> Prompt {
    let Example { input, decoder_input, positions, .. } = example;
    match (decoder_input.first(), positions.first()) {
        (Some(&start), _) => Prompt { encoder_input: input.clone(), written: vec![start] },
        (None, first) => {
            let read = first.map_or(input.len(), |&first| first as usize + 1);
            Prompt { encoder_input: Vec::new(), written: input[..read].to_vec() }
        }
    }
}
