//! Runs as Opacus, jax_privacy and dp_accounting describe them.

use accountant::DpEvent;
use serde_json::{Map, Value};

const KNOWN: &str = "an Opacus accountant's state {\"history\": [[noise_multiplier, sample_rate, steps], …], \"mechanism\": \"rdp\"}, \
                     settings such as {\"noise_multiplier\": 1.1, \"batch_size\": 256, \"num_samples\": 60000, \"epochs\": 60}, or an \
                     event of dp_accounting as json.dumps(event.to_named_tuple()) writes it";

/// Names of settings, in Opacus, jax_privacy and their examples.
const NOISE: &[&str] = &["noise_multiplier", "sigma"];
const RATE: &[&str] = &["sample_rate", "sampling_probability", "sampling_prob"];
const BATCH: &[&str] = &["expected_batch_size", "logical_batch_size", "batch_size"];
const UNITS: &[&str] = &["num_samples", "dataset_size", "sample_size", "num_examples"];
const STEPS: &[&str] = &["num_updates", "iterations", "num_steps", "steps"];
const EPOCHS: &[&str] = &["num_epochs", "epochs"];
const DELTA: &[&str] = &["target_delta", "delta"];
const ACCOUNTANT: &[&str] = &["mechanism", "accountant"];
const LARGEST: &[&str] = &["truncated_batch_size", "largest_batch_size"];
/// Settings of jax_privacy alone.
const OF_JAX: &[&str] = &["num_updates", "truncated_batch_size", "iterations"];

/// The accountant of another library.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Theirs {
    /// Opacus's Rényi orders.
    OpacusRdp,
    /// Opacus's privacy random variables.
    Prv,
    /// Opacus's Gaussian approximation.
    Gdp,
    /// dp_accounting's Rényi orders.
    Rdp,
    /// dp_accounting's privacy loss distributions.
    Pld,
}

impl Theirs {
    pub fn name(self) -> &'static str {
        match self {
            Self::OpacusRdp | Self::Rdp => "rdp",
            Self::Prv => "prv",
            Self::Gdp => "gdp",
            Self::Pld => "pld",
        }
    }
}

/// Equal steps of DP-SGD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub sigma: f64,
    pub rate: f64,
    pub steps: u64,
}

/// A run of another library.
#[derive(Debug)]
pub(super) struct Settings {
    pub tool: &'static str,
    pub accountant: Theirs,
    pub steps: Vec<Step>,
    /// An event that is not a list of steps.
    other: Option<DpEvent>,
    is_poisson: bool,
    /// The largest batch of truncated Poisson samples.
    largest: Option<u64>,
    pub units: Option<f64>,
    pub delta: Option<f64>,
    /// The ε that the file states.
    pub epsilon: Option<f64>,
    /// Names in the file that are not read.
    pub ignored: Vec<String>,
}

impl Settings {
    /// Reads the JSON.
    pub fn of(read: &Value) -> Result<Self, String> {
        match read {
            Value::Array(parts) if parts.first().is_some_and(Value::is_string) => Ok(Self {
                tool: "dp_accounting",
                accountant: Theirs::Pld,
                other: Some(event_of(read)?),
                ..Self::empty()
            }),
            // A history alone.
            Value::Array(_) => Self::of_fields(Map::from_iter([("history".to_owned(), read.clone())])),
            Value::Object(fields) => Self::of_fields(fields.clone()),
            _ => Err(format!("allowed: {KNOWN}")),
        }
    }

    fn empty() -> Self {
        Self {
            tool: "Opacus",
            accountant: Theirs::Prv,
            steps: Vec::new(),
            other: None,
            is_poisson: true,
            largest: None,
            units: None,
            delta: None,
            epsilon: None,
            ignored: Vec::new(),
        }
    }

    fn of_fields(mut fields: Map<String, Value>) -> Result<Self, String> {
        let is_jax = OF_JAX.iter().any(|name| fields.contains_key(*name));
        let accountant = taken(&mut fields, ACCOUNTANT);
        let accountant = match (accountant.as_ref().and_then(Value::as_str), is_jax) {
            (Some("rdp"), true) => Theirs::Rdp,
            (Some("pld"), _) | (None, true) => Theirs::Pld,
            (Some("rdp"), false) => Theirs::OpacusRdp,
            (Some("gdp"), false) => Theirs::Gdp,
            // Opacus's default.
            (Some("prv"), _) | (None, false) => Theirs::Prv,
            (Some(other), _) => {
                return Err(format!("accountant {other:?}; allowed: \"rdp\", \"prv\", \"gdp\" or \"pld\""));
            }
        };
        let is_of_jax = is_jax || accountant == Theirs::Pld;
        let mut found = Self {
            tool: if is_of_jax { "jax_privacy" } else { "Opacus" },
            accountant,
            is_poisson: taken(&mut fields, &["poisson_sampling"])
                .is_none_or(|value| value != Value::Bool(false)),
            largest: number(&mut fields, LARGEST)?
                .map(|largest| whole("truncated_batch_size", largest))
                .transpose()?,
            units: number(&mut fields, UNITS)?,
            delta: number(&mut fields, DELTA)?,
            epsilon: number(&mut fields, &["epsilon"])?,
            ..Self::empty()
        };
        found.steps = match taken(&mut fields, &["history"]) {
            Some(history) => steps_of(&history)?,
            None => vec![step_of(&mut fields, found.units)?],
        };
        if found.largest.is_some() && found.units.is_none() {
            return Err("truncated_batch_size: give num_samples, too".to_owned());
        }
        found.ignored = fields.into_iter().map(|(name, _)| name).collect();
        Ok(found)
    }

    /// Whether batches are those of shuffled epochs.
    pub fn shuffles(&self) -> bool {
        !self.is_poisson
    }

    /// The event of the run.
    pub fn event(&self) -> DpEvent {
        let event = |step: &Step| {
            let Step { sigma: noise_multiplier, rate: sampling_probability, steps } = *step;
            if self.shuffles() {
                let batches = (1.0 / sampling_probability * (1.0 + 1e-12)).floor().max(1.0) as u64;
                return DpEvent::ShuffledGaussian {
                    noise_multiplier,
                    batches,
                    epochs: steps.div_ceil(batches),
                };
            }
            let one = match (self.largest, self.units) {
                (Some(largest_batch), Some(units)) => DpEvent::TruncatedPoissonSampledGaussian {
                    sampling_probability,
                    noise_multiplier,
                    units: units as u64,
                    largest_batch,
                },
                _ => DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier },
            };
            DpEvent::SelfComposed { event: Box::new(one), count: steps }
        };
        self.other
            .clone()
            .unwrap_or_else(|| DpEvent::Composed { events: self.steps.iter().map(event).collect() })
    }

    /// The event that the library's accountant counts: Poisson samples, whatever the loader draws.
    pub fn charged(&self) -> DpEvent {
        let poisson = Self {
            is_poisson: true,
            largest: None,
            steps: self.steps.clone(),
            other: self.other.clone(),
            ..Self::empty()
        };
        poisson.event()
    }
}

/// The first of these settings, removed from the others.
fn taken(fields: &mut Map<String, Value>, names: &[&str]) -> Option<Value> {
    let name = names.iter().find(|name| fields.contains_key(**name))?;
    fields.remove(*name).filter(|value| !value.is_null())
}

fn number(fields: &mut Map<String, Value>, names: &[&str]) -> Result<Option<f64>, String> {
    let Some(value) = taken(fields, names) else { return Ok(None) };
    let read = value.as_f64().filter(|number| number.is_finite());
    read.map(Some).ok_or_else(|| format!("{} is {value}; allowed: a number", names[0]))
}

fn whole(name: &str, value: f64) -> Result<u64, String> {
    if (1.0..=1e12).contains(&value) {
        Ok(value as u64)
    } else {
        Err(format!("{name} is {value}; allowed: a whole number from 1 to 1e12"))
    }
}

fn steps_of(history: &Value) -> Result<Vec<Step>, String> {
    let entry = |entry: &Value| match entry.as_array().map(Vec::as_slice) {
        Some([sigma, rate, steps]) => Some(Step {
            sigma: sigma.as_f64()?,
            rate: rate.as_f64()?,
            steps: whole("steps", steps.as_f64()?).ok()?,
        }),
        _ => None,
    };
    let steps = history.as_array().into_iter().flatten().map(entry).collect::<Option<Vec<_>>>();
    steps.filter(|steps| !steps.is_empty()).ok_or_else(|| {
        "history: allowed: a list of [noise_multiplier, sample_rate, steps], such as [[1.1, 0.004, 14062]]".to_owned()
    })
}

fn step_of(fields: &mut Map<String, Value>, units: Option<f64>) -> Result<Step, String> {
    let sigma =
        number(fields, NOISE)?.ok_or_else(|| format!("noise_multiplier is missing; allowed: {KNOWN}"))?;
    let (rate, batch) = (number(fields, RATE)?, number(fields, BATCH)?);
    let rate = match (rate, batch, units) {
        (Some(rate), ..) => rate,
        (None, Some(batch), Some(units)) if batch > 0.0 && batch <= units => batch / units,
        _ => {
            return Err("the sample rate is missing; give sample_rate, or batch_size and num_samples, which is at least as large".to_owned());
        }
    };
    let (steps, epochs) = (number(fields, STEPS)?, number(fields, EPOCHS)?);
    let steps = match (steps, epochs) {
        (Some(steps), _) => steps,
        // As in Opacus.
        (None, Some(epochs)) => (epochs / rate).floor(),
        (None, None) => return Err("the number of steps is missing; give steps or epochs".to_owned()),
    };
    Ok(Step { sigma, rate, steps: whole("steps", steps)? })
}

/// An event of dp_accounting: module, class, and the attributes in their order. JSON's own limit bounds the nesting.
fn event_of(read: &Value) -> Result<DpEvent, String> {
    let parts = read.as_array().map(Vec::as_slice).unwrap_or_default();
    let name = parts.get(1).and_then(Value::as_str).unwrap_or_default();
    let number = |value: &Value| value.as_f64().ok_or_else(|| format!("{name}: {value} is no number"));
    match (name, parts.get(2..).unwrap_or_default()) {
        ("NoOpDpEvent", []) => Ok(DpEvent::Composed { events: Vec::new() }),
        ("GaussianDpEvent", [noise]) => Ok(DpEvent::Gaussian { noise_multiplier: number(noise)? }),
        ("LaplaceDpEvent", [noise]) => Ok(DpEvent::Laplace { noise_multiplier: number(noise)? }),
        ("PoissonSampledDpEvent", [probability, event]) => match event_of(event)? {
            DpEvent::Gaussian { noise_multiplier } => Ok(DpEvent::PoissonSampledGaussian {
                sampling_probability: number(probability)?,
                noise_multiplier,
            }),
            DpEvent::Laplace { noise_multiplier } => Ok(DpEvent::PoissonSampledLaplace {
                sampling_probability: number(probability)?,
                noise_multiplier,
            }),
            _ => Err(format!(
                "{name} is not taken of this event; allowed: of a GaussianDpEvent or a LaplaceDpEvent"
            )),
        },
        ("RandomizedResponseDpEvent", [noise, buckets]) => Ok(DpEvent::RandomizedResponse {
            noise_parameter: number(noise)?,
            buckets: whole("num_buckets", number(buckets)?)?,
        }),
        ("SelfComposedDpEvent", [event, count]) => Ok(DpEvent::SelfComposed {
            event: Box::new(event_of(event)?),
            count: whole("count", number(count)?)?,
        }),
        ("ComposedDpEvent", [Value::Array(events)]) => {
            Ok(DpEvent::Composed { events: events.iter().map(event_of).collect::<Result<_, _>>()? })
        }
        (other, _) => Err(format!(
            "class {other:?} is not taken; allowed: GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent of either, \
             RandomizedResponseDpEvent, SelfComposedDpEvent, ComposedDpEvent and NoOpDpEvent"
        )),
    }
}
