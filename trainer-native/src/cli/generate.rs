//! Options of `generate`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DeviceName;
use training::RunError;
use training::infer::{
    Beams, DecodingStrategy, EarlyStopping, Generated, GenerationOptions, PromptFile, TokenSampling,
    UsualGeneration, Written, generate,
};
use training::progress::note;
use training::store::lineage::prove_text;

/// The temperature if neither a temperature nor beams are given.
const TEMPERATURE: f64 = 0.8;

#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// The run folder
    run: PathBuf,
    /// The beginning of the text [default: empty]
    #[arg(long)]
    prompt: Option<String>,
    /// A file with one prompt a line: text, or JSON lines if it ends in .jsonl; the result is JSON lines
    #[arg(long, value_name = "FILE")]
    prompts: Option<PathBuf>,
    /// The field of the JSON lines that holds the prompt; a.b is field b of field a
    #[arg(long, default_value = "text")]
    field: String,
    /// Write the result to this file instead of stdout, as JSON lines, with the proof of the run in a folder beside it (.proof)
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[command(flatten)]
    decoding: DecodingArgs,
    /// Number of prompts that are continued at a time; affects speed and memory only
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Seed that makes sampled text repeatable
    #[arg(long)]
    seed: Option<u64>,
    /// The device
    #[arg(long, default_value = "cpu")]
    device: DeviceName,
}

/// How tokens are chosen.
#[derive(Clone, Debug, Args)]
pub(super) struct DecodingArgs {
    /// Maximum number of tokens to generate
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Minimum number of tokens to generate [default: as in the checkpoint's generation_config.json, else 0; in synthesize 0]
    #[arg(long)]
    min_tokens: Option<usize>,
    /// Sampling temperature; 0 always takes the most likely token [default without --beams: as in the checkpoint's generation_config.json, else 0.8; in synthesize 1]
    #[arg(long)]
    temperature: Option<f64>,
    /// Sample among the K most likely tokens
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Sample among the fewest most likely tokens whose probabilities sum to at least P
    #[arg(long, value_name = "P")]
    top_p: Option<f64>,
    /// Sample among the tokens that are at least P times as likely as the likeliest one
    #[arg(long, value_name = "P")]
    min_p: Option<f64>,
    /// Divide the positive logits of tokens that a text already has by X, and multiply the others; 1 for no such penalty [default: as in the checkpoint's generation_config.json, else 1; in synthesize 1]
    #[arg(long, value_name = "X")]
    repetition_penalty: Option<f64>,
    /// Never generate a run of N tokens twice; 0 allows all runs [default: as in the checkpoint's generation_config.json, else 0; in synthesize 0]
    #[arg(long, value_name = "N")]
    no_repeat_ngram: Option<usize>,
    /// End a text before this string; may be given several times, besides the stop_strings of the checkpoint's generation_config.json
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Search for the most likely text with this many beams instead of sampling
    #[arg(long, value_name = "N")]
    beams: Option<usize>,
    /// Divide a text's log-probability by its length to this power: above 0 favors long texts [default: 1]
    #[arg(long, allow_negative_numbers = true)]
    length_penalty: Option<f64>,
    /// Stop when there are as many finished texts as beams (true), when no better text is likely (false) or when none is
    /// possible (never) [default: false]
    #[arg(long)]
    early_stopping: Option<Stopping>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Stopping {
    True,
    False,
    Never,
}

impl From<Stopping> for EarlyStopping {
    fn from(stopping: Stopping) -> Self {
        match stopping {
            Stopping::True => Self::Full,
            Stopping::False => Self::Unlikely,
            Stopping::Never => Self::Impossible,
        }
    }
}

impl From<EarlyStopping> for Stopping {
    fn from(stopping: EarlyStopping) -> Self {
        match stopping {
            EarlyStopping::Full => Self::True,
            EarlyStopping::Unlikely => Self::False,
            EarlyStopping::Impossible => Self::Never,
        }
    }
}

impl GenerateArgs {
    /// Generates text, and returns what goes to stdout.
    pub fn run(self) -> Result<String, RunError> {
        let prompts = match (&self.prompts, &self.prompt) {
            (Some(_), Some(_)) => return Err(refused("--prompt", "given with --prompts; give one of them")),
            (Some(path), None) => PromptFile { path, field: &self.field }.read()?,
            (None, prompt) => vec![prompt.clone().unwrap_or_default()],
        };
        let texts = self.texts(&prompts)?;
        if self.prompts.is_none() && self.out.is_none() {
            return Ok(texts.into_iter().map(|generated| generated.whole).collect());
        }
        let line = |(prompt, generated): (&String, &Generated)| {
            serde_json::to_string(&Written { prompt, text: &generated.text })
        };
        let lines: Result<Vec<String>, _> = prompts.iter().zip(&texts).map(line).collect();
        let lines = lines.map_err(|error| RunError::Failed(error.to_string()))?.join("\n");
        let Some(out) = self.out else { return Ok(lines) };
        // Nothing can be left beside a terminal or a pipe.
        if fs::metadata(&out).map_or(true, |file| file.is_file()) {
            prove_text(&self.run, &out)?;
        }
        fs::write(&out, lines + "\n").map_err(|error| RunError::storage("write", &out, &error))?;
        Ok(out.display().to_string())
    }

    /// Continues the prompts.
    pub fn texts(&self, prompts: &[String]) -> Result<Vec<Generated>, RunError> {
        let usual = UsualGeneration::of_run(&self.run, self.decoding.says_how())?;
        if !usual.not_applied.is_empty() {
            let names = usual.not_applied.join(", ");
            note(&format!("generation_config.json: not applied here, though transformers does: {names}"));
        }
        let options = GenerationOptions {
            last_token: usual.last_token,
            ..self.decoding.clone().with_usual(usual).options(self.batch, self.seed)?
        };
        generate(&self.run, self.device.into(), prompts, &options)
    }
}

impl DecodingArgs {
    /// Whether an option says how tokens are chosen.
    fn says_how(&self) -> bool {
        self.beams.is_some()
            || self.temperature.is_some()
            || self.top_k.is_some()
            || self.top_p.is_some()
            || self.min_p.is_some()
    }

    /// Generates as the checkpoint's settings say where no option says it.
    fn with_usual(self, usual: UsualGeneration) -> Self {
        let own = Self {
            min_tokens: self.min_tokens.or(Some(usual.min_tokens.min(self.tokens))),
            repetition_penalty: self.repetition_penalty.or(usual.repetition_penalty),
            no_repeat_ngram: self.no_repeat_ngram.or(Some(usual.no_repeat_ngram)),
            ..self
        };
        match usual.strategy {
            None => own,
            Some(DecodingStrategy::Sample(TokenSampling { temperature, top_k, top_p, min_p })) => {
                Self { temperature: Some(temperature), top_k, top_p, min_p, ..own }
            }
            Some(DecodingStrategy::Search(Beams { width, length_penalty, early_stopping })) => Self {
                beams: Some(width),
                length_penalty: own.length_penalty.or(Some(length_penalty)),
                early_stopping: own.early_stopping.or(Some(early_stopping.into())),
                ..own
            },
        }
    }

    /// Draws from the model's own distribution unless told otherwise.
    pub fn of_the_model(self) -> Self {
        let temperature = self.temperature.or(self.beams.is_none().then_some(1.0));
        Self { temperature, ..self }
    }

    /// Checks the options.
    pub fn options(&self, batch: usize, seed: Option<u64>) -> Result<GenerationOptions, RunError> {
        let tokens = self.tokens;
        let min_tokens = self.min_tokens.unwrap_or_default();
        if min_tokens > tokens {
            let given = format!("{min_tokens} is more than --tokens, {tokens}; allowed: at most that");
            return Err(refused("--min-tokens", &given));
        }
        if batch == 0 {
            return Err(refused("--batch", "0 is out of range; allowed: at least 1"));
        }
        let strategy = match self.beams {
            Some(width) => DecodingStrategy::Search(self.beams(width)?),
            None => DecodingStrategy::Sample(self.sampling()?),
        };
        let repetition_penalty = self.repetition_penalty.unwrap_or(1.0);
        if !(repetition_penalty > 0.0 && repetition_penalty.is_finite()) {
            let given = format!("{repetition_penalty} is out of range; allowed: a finite number above 0");
            return Err(refused("--repetition-penalty", &given));
        }
        if self.stop.iter().any(String::is_empty) {
            return Err(refused("--stop", "it is empty; give a text, or leave it out"));
        }
        if self.beams.is_some() && !self.stop.is_empty() {
            return Err(refused(
                "--stop",
                "a beam search (--beams, or num_beams of the checkpoint) ends at tokens alone; leave it out, or draw with --temperature",
            ));
        }
        Ok(GenerationOptions {
            tokens,
            min_tokens,
            no_repeat_ngram: self.no_repeat_ngram.unwrap_or_default(),
            repetition_penalty,
            last_token: None,
            stops: self.stop.clone(),
            strategy,
            batch,
            seed,
            first: 0,
        })
    }

    fn sampling(&self) -> Result<TokenSampling, RunError> {
        if self.length_penalty.is_some() || self.early_stopping.is_some() {
            let option = if self.length_penalty.is_some() { "--length-penalty" } else { "--early-stopping" };
            return Err(refused(option, "it needs beam search; add --beams N, or leave it out"));
        }
        let Self { temperature, top_k, top_p, min_p, .. } = *self;
        let temperature = temperature.unwrap_or(TEMPERATURE);
        if !(temperature >= 0.0 && temperature.is_finite()) {
            let given = format!("{temperature} is out of range; allowed: a finite number of at least 0");
            return Err(refused("--temperature", &given));
        }
        if top_k == Some(0) {
            return Err(refused("--top-k", "0 is out of range; allowed: at least 1"));
        }
        for (option, share) in [("--top-p", top_p), ("--min-p", min_p)] {
            if let Some(share) = share.filter(|&share| !(share > 0.0 && share <= 1.0)) {
                return Err(refused(
                    option,
                    &format!("{share} is out of range; allowed: above 0 and at most 1"),
                ));
            }
        }
        if temperature == 0.0 && (top_k.is_some() || top_p.is_some() || min_p.is_some()) {
            return Err(refused(
                "--temperature",
                "0 takes the most likely token; leave out --top-k, --top-p and --min-p",
            ));
        }
        Ok(TokenSampling { temperature, top_k, top_p, min_p })
    }

    fn beams(&self, width: usize) -> Result<Beams, RunError> {
        let sampled = [
            ("--temperature", self.temperature.is_some()),
            ("--top-k", self.top_k.is_some()),
            ("--top-p", self.top_p.is_some()),
            ("--min-p", self.min_p.is_some()),
        ];
        if let Some((option, _)) = sampled.into_iter().find(|(_, given)| *given) {
            return Err(refused(option, "it has no effect on beam search; leave it or --beams out"));
        }
        if width == 0 {
            return Err(refused("--beams", "0 is out of range; allowed: at least 1"));
        }
        let length_penalty = self.length_penalty.unwrap_or(1.0);
        if !length_penalty.is_finite() {
            let given = format!("{length_penalty} is out of range; allowed: a finite number");
            return Err(refused("--length-penalty", &given));
        }
        let early_stopping = self.early_stopping.map_or(EarlyStopping::Unlikely, Into::into);
        Ok(Beams { width, length_penalty, early_stopping })
    }
}

fn refused(option: &str, problem: &str) -> RunError {
    RunError::Refused(format!("{option}: {problem}"))
}
