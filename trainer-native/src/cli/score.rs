//! Options of `score`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::print_result;
use training::RunError;
use training::infer::{BertScore, PromptFile};
use training::score::{Metric, Score, Tokenization};

#[derive(Debug, Args)]
pub(super) struct ScoreArgs {
    /// The hypotheses, one a line: text, or JSON lines if the name ends in .jsonl
    hypotheses: PathBuf,
    /// The references, one a line, in the same order
    references: PathBuf,
    /// The scores, separated by commas
    #[arg(long, value_delimiter = ',', default_values = ["bleu", "chrf"])]
    metric: Vec<MetricName>,
    /// How BLEU cuts texts into words
    #[arg(long, default_value = "13a")]
    tokenize: TokenizationName,
    /// The folder of the BERT of BERTScore: config.json, model.safetensors and tokenizer.json
    #[arg(long, value_name = "DIR")]
    bert: Option<PathBuf>,
    /// The layer of the BERT [default: 9 of 12, 18 of 24, or the last]
    #[arg(long, value_name = "N", requires = "bert")]
    layer: Option<usize>,
    /// The field of JSON lines that holds the text; a.b is field b of field a
    #[arg(long, default_value = "text")]
    field: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MetricName {
    Bleu,
    Chrf,
    #[value(name = "chrf++")]
    ChrfPlusPlus,
    /// BERTScore, with a BERT of your own
    #[value(name = "bertscore")]
    BertScore,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TokenizationName {
    #[value(name = "13a")]
    V13a,
    Intl,
    None,
}

impl From<TokenizationName> for Tokenization {
    fn from(name: TokenizationName) -> Self {
        match name {
            TokenizationName::V13a => Self::V13a,
            TokenizationName::Intl => Self::International,
            TokenizationName::None => Self::None,
        }
    }
}

impl ScoreArgs {
    /// Scores, and prints the result.
    pub fn run(self) -> Result<(), RunError> {
        let read = |path: &PathBuf| PromptFile { path, field: &self.field }.read();
        let (hypotheses, references) = (read(&self.hypotheses)?, read(&self.references)?);
        if hypotheses.len() != references.len() {
            return Err(RunError::Refused(format!(
                "{} has {} lines, but {} has {}; allowed: one reference for each hypothesis, in the same order",
                self.hypotheses.display(),
                hypotheses.len(),
                self.references.display(),
                references.len()
            )));
        }
        let score = |name: &MetricName| {
            let metric = match name {
                MetricName::Bleu => Metric::Bleu,
                MetricName::Chrf => Metric::Chrf,
                MetricName::ChrfPlusPlus => Metric::ChrfPlusPlus,
                MetricName::BertScore => {
                    let Some(folder) = &self.bert else {
                        let what = "--metric bertscore: no BERT is given; name its folder with --bert DIR";
                        return Err(RunError::Refused(what.to_owned()));
                    };
                    return BertScore { folder, layer: self.layer, named_by: "--bert" }
                        .score(&hypotheses, &references);
                }
            };
            Ok(metric.score(&hypotheses, &references, self.tokenize.into()))
        };
        let scores: Vec<Score> = self.metric.iter().map(score).collect::<Result<_, _>>()?;
        let lines: Vec<String> = scores.iter().map(Score::to_string).collect();
        print_result(&scores, &lines.join("\n"), self.json)
    }
}
