//! Where candidates come from, and how they are varied.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use mechanisms::Stream;
use plan::Device;

use super::candidate::{Candidate, stream};
use super::input::{EvolutionInput, Public};
use super::nearest::nearest;
use crate::RunError;
use crate::infer::{BertScore, GenerationOptions, generate};
use crate::progress::note;

/// Number of times that a run is asked for texts before the evolution gives up: its model may write empty ones.
const ATTEMPTS: usize = 20;
/// Number of texts beyond those asked for among which one is looked for that is not used yet.
const SPARE_NEIGHBORS: usize = 64;

/// A source of candidates.
pub(super) struct Supply<'a> {
    embedding: &'a BertScore<'a>,
    kind: Kind,
}

enum Kind {
    Run { folder: PathBuf, device: Device, tokens: usize },
    Texts { texts: Vec<String>, embeddings: Vec<Vec<f32>>, places: HashMap<String, usize> },
}

impl<'a> Supply<'a> {
    /// Opens the source of an evolution file.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the folder of the embedding holds no BERT.
    pub fn new(
        input: &EvolutionInput,
        public: Public,
        device: Device,
        embedding: &'a BertScore<'a>,
    ) -> Result<Self, RunError> {
        let kind = match input.run() {
            Some(folder) => Kind::Run { folder, device, tokens: input.certified.file.tokens as usize },
            None => {
                note(&format!("embedding {} public texts", public.texts.len()));
                let embeddings = embedding.embeddings_alone(&public.texts)?;
                let places = public.texts.iter().cloned().zip(0..).collect();
                Kind::Texts { texts: public.texts, embeddings, places }
            }
        };
        Ok(Self { embedding, kind })
    }

    /// Returns the embeddings of candidates, each of length 1.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn embeddings(&self, candidates: &[Candidate]) -> Result<Vec<Vec<f32>>, RunError> {
        match &self.kind {
            Kind::Run { .. } => {
                let texts: Vec<String> = candidates.iter().map(|candidate| candidate.text.clone()).collect();
                self.embedding.embeddings_alone(&texts)
            }
            Kind::Texts { embeddings, places, .. } => {
                let of = |candidate: &Candidate| {
                    places
                        .get(&candidate.text)
                        .and_then(|at| embeddings.get(*at))
                        .cloned()
                        .unwrap_or_default()
                };
                Ok(candidates.iter().map(of).collect())
            }
        }
    }

    /// Returns the candidates of the first round: `each` texts for each group, group by group.
    ///
    /// # Errors
    /// Those of generation.
    pub fn first(&mut self, groups: usize, each: usize, seed: u64) -> Result<Vec<String>, RunError> {
        match &self.kind {
            Kind::Run { .. } => {
                let prompts = vec![String::new(); groups * each];
                self.written(&prompts, &mut stream(seed, 0, 0))
            }
            Kind::Texts { texts, .. } => {
                let of_group = |group| {
                    let mut stream = stream(seed, 0, group);
                    let mut places: Vec<usize> = (0..texts.len()).collect();
                    for at in 0..each.min(texts.len()) {
                        places.swap(at, at + stream.below((texts.len() - at) as u64) as usize);
                    }
                    places.truncate(each);
                    places.into_iter().map(|at| texts[at].clone())
                };
                Ok((0..groups).flat_map(of_group).collect())
            }
        }
    }

    /// Returns a variation of each parent: written again after a random number of its words, or the nearest text of the file that is
    /// neither in `used` nor among those returned before it.
    ///
    /// # Errors
    /// Those of generation.
    pub fn varied(
        &mut self,
        parents: &[&str],
        used: &[String],
        stream: &mut Stream,
    ) -> Result<Vec<String>, RunError> {
        let Kind::Texts { texts, embeddings, places } = &self.kind else {
            let prompts: Vec<String> = parents.iter().map(|parent| beginning(parent, stream)).collect();
            return self.written(&prompts, stream);
        };
        let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
        parents.iter().for_each(|parent| *asked.entry(parent).or_default() += 1);
        let all: Vec<usize> = (0..texts.len()).collect();
        let mut used: HashSet<usize> = used.iter().filter_map(|text| places.get(text)).copied().collect();
        let mut varied = Vec::with_capacity(parents.len());
        for (parent, count) in asked {
            let own = places.get(parent).and_then(|at| embeddings.get(*at));
            let most = count + SPARE_NEIGHBORS;
            let near = own.map(|own| nearest(own, &all, embeddings, most)).unwrap_or_default();
            let new: Vec<usize> = near.into_iter().filter(|at| used.insert(*at)).take(count).collect();
            varied.extend(new.iter().map(|at| texts[*at].clone()));
            // All texts near it are in use: one of the others, or the parent once more.
            for _ in new.len()..count {
                let other = stream.below(texts.len() as u64) as usize;
                varied.push(if used.insert(other) { texts[other].clone() } else { parent.to_owned() });
            }
        }
        Ok(varied)
    }

    /// Writes a text after each prompt, none of which is empty.
    fn written(&self, prompts: &[String], stream: &mut Stream) -> Result<Vec<String>, RunError> {
        let Kind::Run { folder, device, tokens } = &self.kind else { return Ok(prompts.to_vec()) };
        let mut texts = vec![String::new(); prompts.len()];
        for _ in 0..ATTEMPTS {
            let empty: Vec<usize> = (0..texts.len()).filter(|at| texts[*at].is_empty()).collect();
            if empty.is_empty() {
                return Ok(texts);
            }
            let options = GenerationOptions {
                tokens: *tokens,
                seed: Some(stream.below(1 << 53)),
                ..GenerationOptions::default()
            };
            let asked: Vec<String> = empty.iter().map(|at| prompts[*at].clone()).collect();
            for (at, written) in empty.iter().zip(generate(folder, *device, &asked, &options)?) {
                texts[*at] = written.whole.trim().to_owned();
            }
        }
        Err(RunError::Refused(format!(
            "candidates.run: {}: its model writes mostly empty texts; use a run that was trained for longer",
            folder.display()
        )))
    }
}

/// Returns the first words of a text: none up to all but one.
fn beginning(text: &str, stream: &mut Stream) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let kept = stream.below(words.len().max(1) as u64) as usize;
    words[..kept].join(" ")
}
