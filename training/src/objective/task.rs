//! Makes the examples of tasks, from records with labels, tags or a text to be written.
//!
//! A text longer than the model's context is cut. If there are two texts, the longer one is cut, token by token, until
//! both fit.

use std::sync::Arc;

use tokenizer::Tokenizer;

use super::conversations::Conversations;
use super::special::{CLASSIFY, SEPARATE, Special, first_of_file};
use super::{Generation, end_of_text, spans};
use crate::RunError;
use crate::chat::ChatTemplate;
use crate::data::{Answer, LabelledRecord};
use network::Example;

/// A task with the special tokens and lengths that it needs.
#[derive(Clone, Debug)]
pub struct Task {
    objective: plan::Objective,
    layout: InputLayout,
    /// Longest input of the network.
    context: usize,
    /// Number of labels.
    labels: usize,
    /// Prefixes of the first and of the second text.
    prefixes: [String; 2],
    /// The template by which conversations become text, and the parts that are learnt.
    chat: Option<Conversations>,
}

/// The layout of texts in the input of a network.
#[derive(Clone, Copy, Debug)]
enum InputLayout {
    /// `[CLS]`, a text, `[SEP]`, and another text with its `[SEP]`. RoBERTa has two such tokens between the texts.
    Bert { classify: u32, separate: u32, between: usize },
    /// Two texts with the end-of-text token between them. The token that the tokenizer's file puts before a text comes
    /// first.
    Decoder { first: Option<u32>, eos: u32 },
    /// A text with the end-of-text token after it; the decoder begins with `start`. In BART each text has a first token. For classes,
    /// the decoder reads what the encoder reads, shifted by one (`T5ForSequenceClassification`).
    EncoderDecoder { eos: u32, start: u32, first: Option<u32>, decoder_context: usize },
}

impl InputLayout {
    /// Returns the tokens before a text that a decoder reads.
    fn first_of_decoder(self) -> Vec<u32> {
        match self {
            Self::Decoder { first, .. } => first.into_iter().collect(),
            Self::Bert { .. } | Self::EncoderDecoder { .. } => Vec::new(),
        }
    }
}

impl Task {
    /// Creates the task of a plan, if its objective is one.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the tokenizer lacks a special token that the family needs, or conversations have no template.
    pub fn new(
        plan: &plan::Plan,
        tokenizer: &Tokenizer,
        template: Option<&Arc<ChatTemplate>>,
    ) -> Result<Option<Self>, RunError> {
        let (objective, context) = (plan.training().objective, plan.model().context as usize);
        if !objective.reads_fields() {
            return Ok(None);
        }
        let special = Special { objective, tokenizer };
        let layout = match plan.model().family {
            family @ (plan::Family::Bert
            | plan::Family::Roberta
            | plan::Family::DistilBert
            | plan::Family::Electra
            | plan::Family::ModernBert) => InputLayout::Bert {
                classify: special.any(CLASSIFY)?,
                separate: special.any(SEPARATE)?,
                between: if family == plan::Family::Roberta { 2 } else { 1 },
            },
            plan::Family::T5 | plan::Family::T5V1_1 | plan::Family::Marian => InputLayout::EncoderDecoder {
                eos: end_of_text(tokenizer)?,
                start: special.padding()?,
                first: None,
                decoder_context: network::lengths::decoder_context(objective, plan.model()),
            },
            family @ (plan::Family::Bart | plan::Family::MBart) => InputLayout::EncoderDecoder {
                eos: end_of_text(tokenizer)?,
                start: end_of_text(tokenizer)?,
                first: tokenizer.id(CLASSIFY[1]).filter(|_| family == plan::Family::Bart),
                decoder_context: network::lengths::decoder_context(objective, plan.model()),
            },
            _ => InputLayout::Decoder { first: first_of_file(tokenizer), eos: end_of_text(tokenizer)? },
        };
        let chat = match objective {
            plan::Objective::Chat => Some(Conversations::new(plan, tokenizer, template)?),
            _ => None,
        };
        let data = plan.data();
        let prefixes =
            [&data.text_prefix, &data.second_text_prefix].map(|one| one.clone().unwrap_or_default());
        let labels = plan.training().labels().len();
        Ok(Some(Self { objective, layout, context, labels, prefixes, chat }))
    }

    /// Returns whether the answer of a record is labels, and not a text.
    pub(crate) fn predicts_labels(&self) -> bool {
        self.objective.has_labels()
    }

    /// Returns the example of a record. Without an answer, it has only the input and the places of
    /// its words.
    pub(crate) fn example(&self, record: &LabelledRecord, tokenizer: &Tokenizer) -> Example {
        if let Some(chat) = &self.chat {
            return chat.example(&record.text, tokenizer, self.context);
        }
        match (self.objective, &record.answer) {
            (plan::Objective::TokenClassification, Answer::Labels(tags)) => {
                self.tagged(&record.words, tags, tokenizer)
            }
            (_, Answer::Labels(labels)) => {
                let targets = match self.objective {
                    plan::Objective::MultiLabelClassification => {
                        (0..self.labels as u32).map(|label| u32::from(labels.contains(&label))).collect()
                    }
                    _ => labels.clone(),
                };
                let [first, second] = self.texts(record);
                let second = second.map(|text| tokenizer.encode(&text));
                Example { targets, ..self.read(tokenizer.encode(&first.unwrap_or_default()), second) }
            }
            (_, Answer::Text(target)) => {
                let texts: Vec<String> = self.texts(record).into_iter().flatten().collect();
                self.written(tokenizer.encode(&texts.join(" ")), tokenizer.encode(target))
            }
        }
    }

    /// Returns the first text of a record and its second, if there is one, after their prefixes.
    fn texts(&self, record: &LabelledRecord) -> [Option<String>; 2] {
        let [first, second] = &self.prefixes;
        [
            Some(format!("{first}{}", record.text)),
            record.second.as_ref().map(|text| format!("{second}{text}")),
        ]
    }

    /// Describes how many public records are cut to the model's context, if any is.
    pub(crate) fn cut_note(&self, records: &[LabelledRecord], tokenizer: &Tokenizer) -> Option<String> {
        let whole = self.without_limits();
        let is_cut =
            |record: &&LabelledRecord| self.example(record, tokenizer) != whole.example(record, tokenizer);
        let cut = records.iter().filter(is_cut).count();
        let written = match self.layout {
            InputLayout::EncoderDecoder { decoder_context, .. }
                if self.objective == plan::Objective::TextToText =>
            {
                format!(" ({decoder_context} to be written)")
            }
            _ => String::new(),
        };
        (cut > 0).then(|| {
            let (all, context) = (records.len(), self.context);
            format!(
                "{cut} of {all} records are longer than the model's {context} tokens{written} and are cut"
            )
        })
    }

    /// Returns the same task for a model that reads and writes texts of any length.
    fn without_limits(&self) -> Self {
        // Half of the largest number leaves room for the special tokens of a text.
        const ANY: usize = usize::MAX / 2;
        let layout = match self.layout {
            InputLayout::EncoderDecoder { eos, start, first, .. } => {
                InputLayout::EncoderDecoder { eos, start, first, decoder_context: ANY }
            }
            other => other,
        };
        Self { layout, context: ANY, ..self.clone() }
    }

    /// Lays out one or two texts in the input.
    fn read(&self, mut first: Vec<u32>, mut second: Option<Vec<u32>>) -> Example {
        let marks = match (self.layout, &second) {
            (InputLayout::Bert { between, .. }, Some(_)) => 2 + between,
            (InputLayout::Bert { .. }, None) => 2,
            (InputLayout::Decoder { first, .. }, second) => {
                usize::from(first.is_some()) + usize::from(second.is_some())
            }
            (InputLayout::EncoderDecoder { .. }, second) => 1 + usize::from(second.is_some()),
        };
        cut(&mut first, second.as_mut(), self.context.saturating_sub(marks));
        let mut example = Example::default();
        match self.layout {
            InputLayout::Bert { classify, separate, between } => {
                example.input = [&[classify], first.as_slice(), &[separate]].concat();
                example.segments = vec![0; example.input.len()];
                if let Some(second) = second {
                    example.input.extend(std::iter::repeat_n(separate, between - 1));
                    example.segments.resize(example.input.len(), 0);
                    example.input.extend([second.as_slice(), &[separate]].concat());
                    example.segments.resize(example.input.len(), 1);
                }
            }
            InputLayout::Decoder { eos, .. } | InputLayout::EncoderDecoder { eos, .. } => {
                example.input = self.layout.first_of_decoder();
                example.input.extend(first);
                if let Some(second) = second {
                    example.input.push(eos);
                    example.input.extend(second);
                }
                if let InputLayout::EncoderDecoder { start, .. } = self.layout {
                    example.input.push(eos);
                    let read = &example.input[..example.input.len() - 1];
                    example.decoder_input = [&[start], read].concat();
                }
                // A model reads at least one token.
                if example.input.is_empty() {
                    example.input.push(eos);
                }
            }
        }
        example
    }

    /// Makes the example of words with a tag each, or without tags. The first piece of a word carries its tag; words
    /// beyond the context have no target.
    fn tagged(&self, words: &[String], tags: &[u32], tokenizer: &Tokenizer) -> Example {
        let (mut pieces, mut firsts) = (Vec::new(), Vec::new());
        for (place, word) in words.iter().enumerate() {
            let blank = if place == 0 { "" } else { " " };
            let own = tokenizer.encode(&format!("{blank}{word}"));
            firsts.push((!own.is_empty()).then_some(pieces.len()));
            pieces.extend(own);
        }
        let offset = match self.layout {
            InputLayout::Bert { .. } => 1,
            _ => self.layout.first_of_decoder().len(),
        };
        let mut example = self.read(pieces, None);
        let last = example.input.len() - offset;
        for (index, first) in firsts.into_iter().enumerate() {
            if let Some(first) = first.filter(|first| *first < last) {
                example.positions.push((first + offset) as u32);
                example.targets.extend(tags.get(index));
            }
        }
        example
    }

    /// Makes the example of a text to be read and one to be written.
    fn written(&self, mut source: Vec<u32>, mut target: Vec<u32>) -> Example {
        match self.layout {
            InputLayout::EncoderDecoder { eos, start, first, decoder_context } => {
                let marks = 1 + usize::from(first.is_some());
                source.truncate(self.context - marks);
                target.truncate(decoder_context.saturating_sub(marks));
                let first: Vec<u32> = first.into_iter().collect();
                let whole = |text: Vec<u32>| [first.clone(), text, vec![eos]].concat();
                spans::answer(whole(source), whole(target), start)
            }
            InputLayout::Decoder { eos, .. } | InputLayout::Bert { separate: eos, .. } => {
                let before = self.layout.first_of_decoder();
                cut(&mut source, Some(&mut target), (self.context - 1).saturating_sub(before.len()));
                let first = before.len() + source.len();
                let window = [before, source, vec![eos], target, vec![eos]].concat();
                Example {
                    positions: (first as u32..window.len() as u32 - 1).collect(),
                    targets: window[first + 1..].to_vec(),
                    input: window[..window.len() - 1].to_vec(),
                    ..Example::default()
                }
            }
        }
    }

    /// Returns the way in which a model trained for this task generates text.
    pub fn generation(&self) -> Generation {
        if let Some(chat) = &self.chat {
            return Generation::Turn { end: chat.end() };
        }
        match (self.objective, self.layout) {
            (plan::Objective::TextToText, InputLayout::EncoderDecoder { start, first, .. }) => {
                Generation::FromDecoder { start, first }
            }
            (plan::Objective::TextToText, layout) => {
                Generation::Answer { first: layout.first_of_decoder().first().copied() }
            }
            _ => Generation::None,
        }
    }

    /// Returns the token that a decoder beside an encoder starts from.
    pub(crate) fn decoder_start(&self) -> Option<u32> {
        match self.layout {
            InputLayout::EncoderDecoder { start, .. } => Some(start),
            InputLayout::Bert { .. } | InputLayout::Decoder { .. } => None,
        }
    }

    /// Returns the text of a conversation in which the assistant speaks next, where plain text becomes one message of
    /// the user. For other tasks, returns the text after its prefix.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the template refuses it.
    pub fn turn(&self, prompt: &str) -> Result<String, RunError> {
        let [prefix, _] = &self.prefixes;
        self.chat.as_ref().map_or_else(|| Ok(format!("{prefix}{prompt}")), |chat| chat.turn(prompt))
    }

    /// Returns the template of conversations, if there is one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.chat.as_ref().map(Conversations::template)
    }

    /// Returns, for each word, the index of its prediction among those of the example, or `None`
    /// for a word beyond the context.
    pub(crate) fn predicted_words(&self, words: &[String], tokenizer: &Tokenizer) -> Vec<Option<usize>> {
        let numbered: Vec<u32> = (0..words.len() as u32).collect();
        let targets = self.tagged(words, &numbered, tokenizer).targets;
        let mut places = vec![None; words.len()];
        for (prediction, word) in targets.into_iter().enumerate() {
            places[word as usize] = Some(prediction);
        }
        places
    }
}

/// Cuts the longer of two texts until both have at most `most` tokens together.
fn cut(first: &mut Vec<u32>, second: Option<&mut Vec<u32>>, most: usize) {
    let Some(second) = second else { return first.truncate(most) };
    while first.len() + second.len() > most {
        if first.len() > second.len() {
            first.pop()
        } else {
            second.pop()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(objective: plan::Objective, layout: InputLayout, context: usize) -> Task {
        Task { objective, layout, context, labels: 3, prefixes: [String::new(), String::new()], chat: None }
    }

    const BERT: InputLayout = InputLayout::Bert { classify: 101, separate: 102, between: 1 };
    const ROBERTA: InputLayout = InputLayout::Bert { classify: 101, separate: 102, between: 2 };
    const DECODER: InputLayout = InputLayout::Decoder { first: None, eos: 9 };

    /// Oracle: `transformers`' longest-first truncation of pairs.
    #[test]
    fn texts_and_pairs_are_laid_out_as_bert_and_decoders_read_them() {
        let class = plan::Objective::SequenceClassification;
        let read = |layout, context, second: Option<Vec<u32>>| {
            let example = task(class, layout, context).read(vec![1, 2, 3, 4], second);
            (example.input, example.segments)
        };
        assert_eq!(read(BERT, 8, None), (vec![101, 1, 2, 3, 4, 102], vec![0; 6]));
        assert_eq!(read(BERT, 5, None).0, [101, 1, 2, 3, 102]);
        let pair = read(BERT, 8, Some(vec![5, 6]));
        assert_eq!(pair, (vec![101, 1, 2, 3, 102, 5, 6, 102], vec![0, 0, 0, 0, 0, 1, 1, 1]));
        assert_eq!(read(BERT, 6, Some(vec![5, 6])).0, [101, 1, 2, 102, 5, 102]);
        let pair = read(ROBERTA, 9, Some(vec![5, 6])).0;
        assert_eq!(pair, [101, 1, 2, 3, 102, 102, 5, 6, 102]);
        assert_eq!(read(DECODER, 8, Some(vec![5])).0, [1, 2, 3, 4, 9, 5]);
        assert_eq!(read(DECODER, 3, None).0, [1, 2, 3]);
        assert_eq!(task(class, DECODER, 3).read(vec![], None).input, [9]);
        let begins = InputLayout::Decoder { first: Some(8), eos: 9 };
        assert_eq!(read(begins, 8, Some(vec![5])).0, [8, 1, 2, 3, 4, 9, 5]);
        assert_eq!(read(begins, 3, None).0, [8, 1, 2]);
        let tagged = task(plan::Objective::TokenClassification, begins, 3);
        let bytes = Tokenizer::bytes(&[]).unwrap();
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(tagged.tagged(&words[..1], &[2], &bytes).positions, [1]);
        assert!(tagged.tagged(&words, &[2, 1, 0], &bytes).positions.iter().all(|place| *place < 3));
    }

    /// Oracle: `T5Tokenizer` on pairs, and `_shift_right` of `T5ForSequenceClassification`, whose decoder reads the encoder's input.
    #[test]
    fn a_decoder_reads_the_pair_that_is_classified_shifted_by_one() {
        let layout = InputLayout::EncoderDecoder { eos: 1, start: 0, first: None, decoder_context: 8 };
        let task = task(plan::Objective::SequenceClassification, layout, 8);
        let pair = task.read(vec![5, 6, 7], Some(vec![8, 9]));
        assert_eq!((pair.input, pair.decoder_input), (vec![5, 6, 7, 1, 8, 9, 1], vec![0, 5, 6, 7, 1, 8, 9]));
        let cut = task.read(vec![5, 6, 7, 8, 9], Some(vec![8, 9]));
        assert_eq!(cut.input, [5, 6, 7, 8, 1, 8, 9, 1]);
    }

    #[test]
    fn what_is_written_is_predicted_after_what_is_read_and_nothing_else_is() {
        let text = plan::Objective::TextToText;
        let example = task(text, DECODER, 8).written(vec![1, 2], vec![5, 6]);
        assert_eq!(
            (example.input, example.positions, example.targets),
            (vec![1, 2, 9, 5, 6], vec![2, 3, 4], vec![5, 6, 9])
        );
        let begins = InputLayout::Decoder { first: Some(8), eos: 9 };
        let example = task(text, begins, 8).written(vec![1, 2], vec![5, 6]);
        assert_eq!((example.input, example.positions), (vec![8, 1, 2, 9, 5, 6], vec![3, 4, 5]));
        let cut = task(text, DECODER, 4).written(vec![1, 2, 3, 4], vec![5, 6]);
        assert_eq!((cut.input, cut.targets), (vec![1, 2, 9, 5], vec![5, 9]));
        let layout = InputLayout::EncoderDecoder { eos: 9, start: 0, first: None, decoder_context: 3 };
        let example = task(text, layout, 3).written(vec![1, 2, 3], vec![5, 6, 7]);
        assert_eq!(
            (example.input, example.decoder_input, example.targets),
            (vec![1, 2, 9], vec![0, 5, 6], vec![5, 6, 9])
        );
        let layout = InputLayout::EncoderDecoder { eos: 9, start: 9, first: Some(8), decoder_context: 4 };
        let example = task(text, layout, 4).written(vec![1, 2, 3], vec![5, 6, 7]);
        assert_eq!(
            (example.input, example.decoder_input, example.targets),
            (vec![8, 1, 2, 9], vec![9, 8, 5, 6], vec![8, 5, 6, 9])
        );
    }
}
