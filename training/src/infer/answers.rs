//! Scores the texts that a model writes for public records against their targets.

use tokenizer::Tokenizer;

use super::generate::{
    Beams, DecodingStrategy, EarlyStopping, GenerationOptions, Prompt, TokenSampling, generate_tokens,
};
use super::{AnswerEvaluation, InferenceModel, TokenEvaluation};
use crate::RunError;
use crate::data::{Answer, LabelledRecord};
use crate::disclosure::Released;
use crate::objective::{Task, end_of_text};
use crate::score::{Metric, Tokenization};
use network::Example;
use network::nn::Kernels;

/// Number of records that are answered at a time. Affects speed and memory only.
const BATCH: usize = 16;

/// Public records to be answered.
pub(super) struct Answers {
    prompts: Vec<Prompt>,
    references: Vec<String>,
    sources: Vec<String>,
    kind: Kind,
    /// Number of beams of the search for an answer; without it, answers are decoded greedily.
    beams: Option<u32>,
}

enum Kind {
    Text,
    /// Labels, and for each record its example with each label in place of the answer.
    Labels {
        labels: Vec<String>,
        candidates: Vec<Example>,
    },
    Numbers,
}

impl Answers {
    /// Creates the prompts. The prompt of a record is what the model reads in training before it
    /// writes the target.
    pub fn new(
        records: &[LabelledRecord],
        examples: &[Example],
        task: &Task,
        tokenizer: &Tokenizer,
        plan: &plan::Plan,
    ) -> Self {
        let reference = |record: &LabelledRecord| match &record.answer {
            Answer::Text(target) => target.clone(),
            Answer::Labels(_) => String::new(),
        };
        let kind = match plan.training().answers.as_ref() {
            None => Kind::Text,
            Some(plan::Answers::Numbers(_)) => Kind::Numbers,
            Some(plan::Answers::Labels(labels)) => {
                let with = |record: &LabelledRecord, label: &String| {
                    let answer = Answer::Text(label.clone());
                    task.example(&LabelledRecord { answer, ..record.clone() }, tokenizer)
                };
                let of_record = |record| labels.iter().map(move |label| with(record, label));
                Kind::Labels {
                    labels: labels.clone(),
                    candidates: records.iter().flat_map(of_record).collect(),
                }
            }
        };
        Self {
            prompts: examples.iter().map(prompt).collect(),
            references: records.iter().map(reference).collect(),
            sources: records.iter().map(|record| record.text.clone()).collect(),
            kind,
            beams: plan.evaluation().and_then(|evaluation| evaluation.beams),
        }
    }

    /// Adds the figures of decoded answers to those of tokens: scores of labels, correlations of numbers, or BLEU and
    /// chrF.
    ///
    /// # Errors
    /// [`RunError::Failed`] if a prompt does not fit the model.
    pub fn score<B: Kernels>(
        &self,
        figures: TokenEvaluation,
        model: &InferenceModel<B>,
        tokenizer: &Tokenizer,
    ) -> Result<TokenEvaluation, RunError> {
        let written = self.written(model, tokenizer)?;
        let bleu = |texts: &[String]| Metric::Bleu.score(texts, &self.references, Tokenization::V13a);
        let answers = match &self.kind {
            Kind::Text => {
                let chrf = Metric::Chrf.score(&written, &self.references, Tokenization::V13a);
                let scores = Some(Released::from_public_text(vec![bleu(&written), chrf]));
                let copied_bleu = Some(bleu(&self.sources).score);
                return Ok(TokenEvaluation { scores, copied_bleu, ..figures });
            }
            Kind::Numbers => AnswerEvaluation::of_numbers(&self.references, &written),
            Kind::Labels { labels, candidates } => {
                let place = |text: &String| {
                    labels.iter().position(|label| label == text.trim()).unwrap_or(labels.len()) as u32
                };
                let [actual, written] =
                    [&self.references, &written].map(|all| all.iter().map(place).collect::<Vec<_>>());
                let nll = model.nll_each(candidates).map_err(|error| RunError::Failed(error.to_string()))?;
                let least = |nll: &[f64]| {
                    let places = (0..).zip(nll).min_by(|one, other| one.1.total_cmp(other.1));
                    places.map_or(0, |(place, _)| place)
                };
                let likeliest: Vec<u32> = nll.chunks_exact(labels.len()).map(least).collect();
                AnswerEvaluation::of_labels(labels.len(), &actual, &written, &likeliest)
            }
        };
        Ok(TokenEvaluation { answers: Some(answers), ..figures })
    }

    /// Decodes the answer to each prompt.
    fn written<B: Kernels>(
        &self,
        model: &InferenceModel<B>,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<String>, RunError> {
        // Prompts of similar length share a batch, so that a long prompt shortens the answers of
        // few others.
        let mut order: Vec<usize> = (0..self.prompts.len()).collect();
        order.sort_by_key(|&record| self.prompts[record].written.len());
        let mut answers = vec![String::new(); self.prompts.len()];
        let end = end_of_text(tokenizer)?;
        let strategy = match self.beams {
            None => DecodingStrategy::Sample(TokenSampling::GREEDY),
            Some(width) => DecodingStrategy::Search(Beams {
                width: width as usize,
                length_penalty: 1.0,
                early_stopping: EarlyStopping::Unlikely,
            }),
        };
        for records in order.chunks(BATCH) {
            let prompts: Vec<Prompt> = records.iter().map(|&record| self.prompts[record].clone()).collect();
            let options = GenerationOptions {
                tokens: model.most_answered(&prompts),
                strategy,
                batch: BATCH,
                seed: Some(0),
                ..GenerationOptions::default()
            };
            for (&record, tokens) in
                records.iter().zip(generate_tokens(model, tokenizer, &prompts, vec![end], &options)?)
            {
                answers[record] = tokenizer.decode(&tokens);
            }
        }
        Ok(answers)
    }
}

/// Returns the beginning of the example of a text to be written.
pub(super) fn prompt(example: &Example) -> Prompt {
    let Example { input, decoder_input, positions, .. } = example;
    match (decoder_input.first(), positions.first()) {
        (Some(&start), _) => Prompt { encoder_input: input.clone(), written: vec![start] },
        (None, first) => {
            let read = first.map_or(input.len(), |&first| first as usize + 1);
            Prompt { encoder_input: Vec::new(), written: input[..read].to_vec() }
        }
    }
}
