//! Turns the arguments of a sampling scheme into events.

use accountant::{Delta, DpEvent, NeighboringRelation};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct SamplingArgs {
    /// Expected batch size; requires --dataset-size.
    #[arg(long, requires = "dataset_size", conflicts_with = "sampling_probability")]
    batch_size: Option<f64>,
    /// Number of units in the data set.
    #[arg(long)]
    dataset_size: Option<f64>,
    /// Probability that a unit takes part in a step.
    #[arg(long, conflicts_with = "dataset_size")]
    sampling_probability: Option<f64>,
    /// How batches are drawn.
    #[arg(long, value_enum, default_value_t = Sampling::Poisson)]
    sampling: Sampling,
    /// Largest batch, for --sampling truncated; further units are left out.
    #[arg(long)]
    largest_batch: Option<u64>,
    /// Bands of the matrix that correlates the noise, for --sampling cyclic-poisson.
    #[arg(long)]
    bands: Option<u64>,
    /// Which data sets are neighbours.
    #[arg(long, value_enum, default_value_t = Relation::AddOrRemoveOne)]
    pub(crate) relation: Relation,
}

/// A scheme whose arguments fit together.
#[derive(Clone, Copy)]
pub(crate) struct Scheme {
    sampling: Sampling,
    probability: f64,
    units: Option<u64>,
    largest_batch: u64,
    bands: u64,
}

/// Accepts a whole number that is given as a float.
fn whole(name: &str, value: f64) -> Result<u64, String> {
    if (1.0..=1e12).contains(&value) && value.fract() == 0.0 {
        Ok(value as u64)
    } else {
        Err(format!("{name} is {value}; allowed: a whole number from 1 to 1e12"))
    }
}

impl SamplingArgs {
    /// Returns the failure probability, which must be below 1 / dataset size if that is known.
    pub(crate) fn delta(&self, delta: f64) -> Result<Delta, String> {
        let delta = Delta::new(delta).map_err(|error| error.to_string())?;
        match self.dataset_size {
            Some(units) if delta.get() * units >= 1.0 => Err(format!(
                "--delta is {:e} for {units} units; allowed: below 1 / --dataset-size = {:e}, since publishing one unit at random \
                 would satisfy any larger one",
                delta.get(),
                1.0 / units
            )),
            _ => Ok(delta),
        }
    }

    /// Returns the scheme, or an error that says what is missing.
    pub(crate) fn scheme(&self) -> Result<Scheme, String> {
        let probability = match (self.sampling, self.sampling_probability, self.batch_size, self.dataset_size)
        {
            (Sampling::None, None, None, _) => 1.0,
            (Sampling::None, ..) => {
                return Err("--sampling none: every unit takes part in every step; remove --batch-size and \
                            --sampling-probability"
                    .to_owned());
            }
            (_, Some(probability), ..) => probability,
            (_, None, Some(batch), Some(units)) if batch > 0.0 && batch <= units => batch / units,
            (_, None, Some(batch), Some(units)) => {
                return Err(format!(
                    "--batch-size is {batch}; allowed: above 0 and at most --dataset-size, which is {units}"
                ));
            }
            _ => {
                return Err("the sampling probability is missing; give --batch-size and --dataset-size, or \
                            --sampling-probability, or --sampling none"
                    .to_owned());
            }
        };
        self.with(probability)
    }

    /// Returns the settings of the sampling, by their names for a reader of a statement.
    pub(crate) fn named(&self, unit: &str) -> Result<Vec<(String, String)>, String> {
        let scheme = self.scheme()?;
        let given = |number: Option<f64>| number.map_or("not given".to_owned(), |number| number.to_string());
        let mut named = vec![
            (format!("Number of {unit}s, N"), given(self.dataset_size)),
            ("Expected batch size".to_owned(), given(self.batch_size)),
            ("Sampling".to_owned(), format!("{}, probability {}", self.sampling.name(), scheme.probability)),
        ];
        named.extend(self.largest_batch.map(|most| ("Largest batch".to_owned(), most.to_string())));
        named.extend(self.bands.map(|bands| ("Bands".to_owned(), bands.to_string())));
        Ok(named)
    }

    /// Returns the scheme of a batch that is searched for, and the number of units.
    pub(crate) fn without_batch(&self) -> Result<(Scheme, u64), String> {
        if self.batch_size.is_some() || self.sampling_probability.is_some() {
            return Err(
                "this command searches for the batch: give --dataset-size, and remove --batch-size and \
                        --sampling-probability"
                    .to_owned(),
            );
        }
        let units = self.dataset_size.ok_or("--dataset-size is missing; give the number of units")?;
        if self.sampling == Sampling::None {
            return Err("--sampling none has no batch to search for; allowed: any other scheme".to_owned());
        }
        Ok((self.with(f64::NAN)?, whole("--dataset-size", units)?))
    }

    fn with(&self, probability: f64) -> Result<Scheme, String> {
        let units = self.dataset_size.map(|units| whole("--dataset-size", units)).transpose()?;
        let needs = |what: &str| format!("--sampling {}: give {what}", self.sampling.name());
        let sized = matches!(self.sampling, Sampling::Truncated | Sampling::Fixed);
        if sized && units.is_none() {
            return Err(needs("--batch-size and --dataset-size"));
        }
        if self.sampling == Sampling::Truncated && self.largest_batch.is_none() {
            return Err(needs("--largest-batch"));
        }
        if self.sampling != Sampling::Truncated && self.largest_batch.is_some() {
            return Err("--largest-batch requires --sampling truncated".to_owned());
        }
        let bands = match (self.sampling, self.bands) {
            (Sampling::CyclicPoisson, None | Some(0)) => return Err(needs("--bands, at least 1")),
            (Sampling::CyclicPoisson, Some(bands)) if bands as f64 * probability > 1.0 => {
                return Err(format!(
                    "--bands is {bands}; allowed: at most 1 / sampling probability = {}, because every part of the units must hold a \
                     whole batch",
                    (1.0 / probability).floor()
                ));
            }
            (Sampling::CyclicPoisson, Some(bands)) => bands,
            (_, Some(_)) => return Err("--bands requires --sampling cyclic-poisson".to_owned()),
            (_, None) => 1,
        };
        if self.sampling == Sampling::Fixed
            && let Some(batch) = self.batch_size
        {
            whole("--batch-size of --sampling fixed", batch)?;
        }
        let largest_batch = self.largest_batch.unwrap_or(0);
        Ok(Scheme { sampling: self.sampling, probability, units, largest_batch, bands })
    }
}

impl Scheme {
    /// Returns the scheme with an expected batch of `batch` out of `units`.
    pub(crate) fn with_batch(self, batch: u64, units: u64) -> Self {
        Self { probability: batch as f64 / units as f64, units: Some(units), ..self }
    }

    /// Returns the number of steps of so many passes over the data, rounded up.
    pub(crate) fn steps_of(self, epochs: f64) -> Result<u64, String> {
        let steps = (epochs / self.probability * (1.0 - 1e-12)).ceil();
        if (1.0..9e15).contains(&steps) {
            Ok(steps as u64)
        } else {
            Err(format!("--epochs is {epochs}; allowed: above 0, and fewer than 9e15 steps"))
        }
    }

    /// Returns the event of `steps` steps.
    pub(crate) fn event(self, noise_multiplier: f64, steps: u64) -> DpEvent {
        let sampling_probability = self.probability;
        let units = self.units.unwrap_or(0);
        // Fewer batches an epoch cost more; an unfinished epoch is charged in full.
        let batches = (1.0 / sampling_probability * (1.0 + 1e-12)).floor().max(1.0) as u64;
        let epochs = steps.div_ceil(batches);
        let step = match self.sampling {
            Sampling::Poisson => DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier },
            Sampling::CyclicPoisson => {
                // A batch larger than a part takes all of it.
                let sampling_probability = (self.bands as f64 * sampling_probability).min(1.0);
                let round = DpEvent::CyclicPoissonSampledGaussian { sampling_probability, noise_multiplier };
                return DpEvent::SelfComposed { event: Box::new(round), count: steps.div_ceil(self.bands) };
            }
            Sampling::Truncated => DpEvent::TruncatedPoissonSampledGaussian {
                sampling_probability,
                noise_multiplier,
                units,
                largest_batch: self.largest_batch,
            },
            Sampling::Fixed => DpEvent::FixedSizeSampledGaussian {
                sample_size: (sampling_probability * units as f64).round() as u64,
                population: units,
                noise_multiplier,
            },
            Sampling::None => DpEvent::Gaussian { noise_multiplier },
            Sampling::Shuffle => return DpEvent::ShuffledGaussian { noise_multiplier, batches, epochs },
            Sampling::BallsInBins => {
                return DpEvent::BallsInBinsGaussian { noise_multiplier, batches, epochs };
            }
        };
        DpEvent::SelfComposed { event: Box::new(step), count: steps }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Sampling {
    /// Draw each unit independently.
    Poisson,
    /// Draw each unit of one of --bands parts independently, from one part after another, with correlated noise.
    CyclicPoisson,
    /// Draw each unit independently, then cut the batch to --largest-batch units.
    Truncated,
    /// Draw a fixed number of units without replacement.
    Fixed,
    /// Shuffle the data set every epoch and cut it into batches.
    #[value(alias = "shuffled")]
    Shuffle,
    /// Put every unit into one random batch of each epoch.
    BallsInBins,
    /// Use every unit in every step.
    #[value(alias = "full")]
    None,
}

impl Sampling {
    fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::CyclicPoisson => "cyclic-poisson",
            Self::Truncated => "truncated",
            Self::Fixed => "fixed",
            Self::Shuffle => "shuffle",
            Self::BallsInBins => "balls-in-bins",
            Self::None => "none",
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Relation {
    /// One unit is added or removed.
    AddOrRemoveOne,
    /// One unit is exchanged for another.
    ReplaceOne,
    /// One unit's contribution is zeroed out.
    ZeroOut,
}

impl From<Relation> for NeighboringRelation {
    fn from(relation: Relation) -> Self {
        match relation {
            Relation::AddOrRemoveOne => Self::AddOrRemoveOne,
            Relation::ReplaceOne => Self::ReplaceOne,
            Relation::ZeroOut => Self::ZeroOut,
        }
    }
}
