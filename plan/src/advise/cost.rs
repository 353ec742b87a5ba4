//! Estimates what a plan needs: memory, arithmetic and time, by formulas that a reader can check.
//!
//! The estimates are good to about a factor of two. They never enter an event or an ε.

use serde::Serialize;

use crate::file::{Network, examples_at_once};
use crate::{Arithmetic, Device, PlanFile, ProcessSettings, WarmStart};
use crate::{LARGEST_WHOLE_SUM, SUMS_A_MESSAGE};

/// A machine, from its data sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Name of the machine.
    pub name: &'static str,
    /// Largest rate in 32-bit floating point, FLOP a second.
    pub peak_flops: f64,
    /// Fraction of that rate that training reaches.
    pub utilization: f64,
    /// Memory in bytes.
    pub memory: f64,
    /// Number of bytes that the machine can send to others per second, while it receives as many.
    pub network: f64,
    /// Seconds from sending a small message to receiving it.
    pub latency: f64,
    /// Number of cores that compute micro-batches; 0 for a graphics processor, which computes one at a time.
    pub cores: u32,
}

/// Rates in 32 bits without tensor cores: lanes × clock × 2. H100 SXM: 16 896 lanes × 1.98 GHz, 80 GB
/// (<https://modal.com/gpu-glossary/perf/peak-rate>). A100: 19.5 TFLOPS, 80 GB, NVIDIA's data sheet as quoted by
/// <https://glennklockwood.com/garden/processors/A100>. RTX 4090: 16 384 lanes × 2.52 GHz, 24 GB, and T4: 2 560 lanes ×
/// 1.59 GHz, 16 GB (<https://www.topcpu.net/en/gpu-c/tesla-t4-vs-geforce-rtx-4090>). The processor, 8 cores × 3 GHz × 32 FLOP
/// a cycle (two 256-bit fused multiply-adds) with 16 GB, is an assumption, and so are the utilizations and the networks: 10 Gbit/s with 50 µs, and 200 and 400 Gbit/s with 5 µs for the A100 and
/// H100. Memory in units of 10⁹ bytes.
pub const MACHINES: [Machine; 5] = [
    Machine {
        name: "Processor, 8 cores",
        peak_flops: 0.77e12,
        utilization: 0.25,
        memory: 16e9,
        network: 1.25e9,
        latency: 5e-5,
        cores: 8,
    },
    graphics_processor("NVIDIA T4", 8.1e12, 0.35, 16e9, [1.25e9, 5e-5]),
    graphics_processor("NVIDIA RTX 4090", 82.6e12, 0.35, 24e9, [1.25e9, 5e-5]),
    graphics_processor("NVIDIA A100 80 GB", 19.5e12, 0.5, 80e9, [25e9, 5e-6]),
    graphics_processor("NVIDIA H100 SXM", 67e12, 0.4, 80e9, [50e9, 5e-6]),
];

/// Number of small messages that all ranks exchange in a step, at the most: agreements, lengths of drawn units, and their tokens.
pub const SMALL_MESSAGES: u32 = 20;

/// Number of parameters whose sums or weights the ranks exchange in one message.
pub const PARAMETERS_A_MESSAGE: u32 = 1 << 22;

const fn graphics_processor(
    name: &'static str,
    peak_flops: f64,
    utilization: f64,
    memory: f64,
    [network, latency]: [f64; 2],
) -> Machine {
    Machine { name, peak_flops, utilization, memory, network, latency, cores: 0 }
}

/// The work and the memory that a plan needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Number of parameters, P.
    pub parameters: u128,
    /// Number of tokens processed: steps × expected batch × views of a unit × window. Units that have fewer windows
    /// need fewer.
    pub tokens: u128,
    /// Floating-point operations: tokens × (4·P + 4·T + 12·layers·width·window).
    pub flops: f64,
    /// A lower bound on memory: bytes of weights and of the activations of one micro-batch in 32 bits, and of gradient sum and two
    /// moments of what is trained. Frozen weights of a checkpoint count 16 bits.
    pub bytes: u128,
    /// Number of parameters that are trained, T. Adapters count as nothing.
    pub trained: u128,
    /// Number of steps.
    pub steps: u128,
    /// Number of micro-batches in a batch of the expected size, averaged over the steps.
    pub micro_batches: f64,
    /// Number of parts of a micro-batch that a processor adds to a sum one after the other: 1, or more where it computes examples one by
    /// one.
    pub parts_of_micro_batch: f64,
    /// Standard deviation of the number of micro-batches in a drawn batch, averaged over the steps; 0 if all batches have one size.
    pub micro_batch_spread: f64,
    /// Floating-point operations before the first step, on texts of released words. One rank alone takes them.
    pub warm_start_flops: f64,
}

/// The speed of one of several ranks: measured, or from a machine's data sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSpeed {
    /// Seconds for one micro-batch.
    pub micro_batch_seconds: f64,
    /// Number of micro-batches, or parts of these, that the rank computes at the same time.
    pub workers: u32,
    /// Seconds in which one rank alone adds noise to all parameters and updates them.
    pub update_seconds: f64,
    /// Number of bytes that the rank can send to others per second, while it receives as many.
    pub network: f64,
    /// Seconds from sending a small message to receiving it.
    pub latency: f64,
}

/// The cost of a step on several ranks. The formulas of its fields count P ranks, M micro-batches and T trained
/// parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankCost {
    /// P, the number of ranks.
    pub ranks: u64,
    /// E⌈M/P⌉ · seconds of a micro-batch + seconds of the update / P + bytes sent / network + messages · ⌈log₂ P⌉ · latency. M is the number
    /// of micro-batches in a drawn batch: the step waits for the rank with the most.
    pub step_seconds: f64,
    /// Seconds of these in which the ranks exchange messages.
    pub exchange_seconds: f64,
    /// Number of messages of a step, each of which all ranks wait for.
    pub messages: u64,
    /// Number of ranks that have no micro-batch in a step with a batch of the expected size: P − M, where P is larger.
    pub idle: u64,
    /// Number of bytes that each rank sends in a step, and receives: 12·T·(P − 1)/P. The reduce-scatter of sums takes 8
    /// bytes a parameter, the all-gather of weights 4. Above [`LARGEST_WHOLE_SUM`] parameters, (8·r + 8/P + 4)·T·(P − 1)/P: the sums are
    /// exchanged r = E⌈M·parts/(P·workers)⌉ times, and then sent to the owners of the parameters.
    pub bytes_sent: f64,
    /// Memory of each rank in bytes: that of a single process less 8·T·(P − 1)/P, the other ranks' parts of the two
    /// moments. Above [`LARGEST_WHOLE_SUM`] parameters, less 12·T·(P − 1)/P: also their parts of the sum.
    pub memory: f64,
    /// Speed of P ranks as a fraction of P times the speed of one.
    pub efficiency: f64,
}

impl Cost {
    /// Returns the seconds on a machine: operations divided by the rate that training reaches.
    #[must_use]
    pub fn seconds_on(&self, machine: &Machine) -> f64 {
        (self.flops + self.warm_start_flops) / (machine.peak_flops * machine.utilization)
    }

    /// Returns whether the machine has enough memory.
    #[must_use]
    pub fn fits(&self, machine: &Machine) -> bool {
        self.bytes as f64 <= machine.memory
    }

    /// Returns the speed of a machine as a rank. All of its time is counted in its micro-batches, which have one size.
    #[must_use]
    pub fn speed_of(&self, machine: &Machine) -> RankSpeed {
        let micro_batches = (self.steps as f64 * self.micro_batches).max(1.0);
        let micro_batch_seconds = self.flops / (machine.peak_flops * machine.utilization) / micro_batches;
        RankSpeed {
            micro_batch_seconds,
            update_seconds: 0.0,
            network: machine.network,
            latency: machine.latency,
            workers: machine.cores.max(1),
        }
    }

    /// Returns whether ranks exchange sums after each micro-batch.
    fn divides_sums(&self) -> bool {
        self.trained > u128::from(LARGEST_WHOLE_SUM)
    }

    /// Returns the expected number of micro-batches that the rank with the most computes in a step.
    fn rounds(&self, ranks: f64) -> f64 {
        self.rounds_of(1.0, ranks)
    }

    /// Returns the same for parts of micro-batches, of which all ranks compute so many at the same time.
    fn rounds_of(&self, parts: f64, at_once: f64) -> f64 {
        if self.micro_batch_spread == 0.0 {
            return (self.micro_batches * parts / at_once).ceil();
        }
        let rounds = |deviation: f64| {
            let drawn = (self.micro_batches + deviation * self.micro_batch_spread).round().max(0.0);
            (drawn * parts / at_once).ceil()
        };
        let all = NORMAL_QUANTILES.map(|quantile| rounds(quantile) + rounds(-quantile));
        all.iter().sum::<f64>() / (2 * NORMAL_QUANTILES.len()) as f64
    }

    /// Returns the cost of a step on several ranks.
    ///
    /// ```
    /// use plan::{MACHINES, PlanFile};
    /// let cost = PlanFile::parse(include_str!("../../presets/quickstart.json"))?.cost();
    /// let four = cost.on_ranks(4, &cost.speed_of(&MACHINES[0]));
    /// assert_eq!(four.bytes_sent, 9.0 * cost.trained as f64);
    /// assert!(four.efficiency < 1.0);
    /// # Ok::<(), plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn on_ranks(&self, ranks: u64, speed: &RankSpeed) -> RankCost {
        let trained = self.trained as f64;
        let messages_of = |length: u32, values: f64| (values / f64::from(length)).ceil();
        let step = |ranks: f64| {
            // Sums, and the bytes a parameter of all messages together.
            let (large, a_parameter) = if self.divides_sums() {
                let sums = self.rounds_of(self.parts_of_micro_batch, ranks * f64::from(speed.workers.max(1)));
                let to_owners = MESSAGES_TO_OWNERS * messages_of(SUMS_A_MESSAGE, trained / ranks);
                (sums * messages_of(SUMS_A_MESSAGE, trained) + to_owners, 8.0 * sums + 8.0 / ranks + 4.0)
            } else {
                (messages_of(PARAMETERS_A_MESSAGE, trained), 12.0)
            };
            let bytes_sent = a_parameter * trained * (ranks - 1.0) / ranks;
            let messages = f64::from(SMALL_MESSAGES) + large + messages_of(PARAMETERS_A_MESSAGE, trained);
            let computing = self.rounds(ranks) * speed.micro_batch_seconds;
            let waiting = messages * libm::log2(ranks).ceil() * speed.latency;
            let exchange = if ranks > 1.0 { bytes_sent / speed.network + waiting } else { 0.0 };
            (computing + speed.update_seconds / ranks + exchange, exchange, bytes_sent, messages)
        };
        let count = ranks.max(1) as f64;
        let (step_seconds, exchange_seconds, bytes_sent, messages) = step(count);
        RankCost {
            ranks: ranks.max(1),
            step_seconds,
            exchange_seconds,
            messages: if ranks > 1 { messages as u64 } else { 0 },
            idle: ranks.saturating_sub(self.micro_batches.ceil() as u64),
            bytes_sent,
            memory: self.bytes as f64
                - if self.divides_sums() { 12.0 } else { 8.0 } * trained * (count - 1.0) / count,
            efficiency: step(1.0).0 / (count * step_seconds),
        }
    }
}

/// Messages in which a rank gets as many sums of its parameters as are in one message: two lengths, and two parts.
const MESSAGES_TO_OWNERS: f64 = 4.0;

/// Quantiles of the normal distribution at 17/32, 19/32, …, 31/32.
const NORMAL_QUANTILES: [f64; 8] = [0.0784, 0.2372, 0.4023, 0.5791, 0.7764, 1.0100, 1.3180, 1.8627];

/// The size of a text that stays in its files, of which each rank reads its own share once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextSize {
    /// Number of bytes of its files.
    pub bytes: f64,
    /// Number of records.
    pub records: f64,
    /// Whether its words are counted for a private vocabulary.
    pub counts_words: bool,
}

/// What the ranks do before the first step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankStart {
    /// Number of bytes of text that each rank reads: bytes / P, and as many if it counts words. Comparing it with a public evaluation
    /// text reads it once more, and so does comparing the files of a text that is in several.
    pub bytes_read: f64,
    /// Seconds in which a rank reads them, and counts words on one core.
    pub seconds: f64,
    /// Seconds in which the first rank then brings the word counts of all ranks together and releases words, whatever their number.
    pub gathering_seconds: f64,
    /// Bytes of a rank's index: 8 · records / P.
    pub index: f64,
}

/// CPU seconds in which `dp-tokenizer count` counts the words of a byte: 22 a GB were measured on 10 GB.
const COUNTING: f64 = 22e-9;

/// CPU seconds in which the first rank brings together and releases the words of a byte: 9 to 15 a GB were measured on 0.3 GB, by method and
/// unit.
const GATHERING: f64 = 15e-9;

impl TextSize {
    /// Returns what `ranks` ranks do before the first step, each of which reads so many bytes a second.
    #[must_use]
    pub fn start_on(&self, ranks: u64, bytes_per_second: f64) -> RankStart {
        let share = ranks.max(1) as f64;
        let (readings, counted) = if self.counts_words { (2.0, self.bytes) } else { (1.0, 0.0) };
        let bytes_read = readings * self.bytes / share;
        RankStart {
            bytes_read,
            seconds: bytes_read / bytes_per_second + counted / share * COUNTING,
            gathering_seconds: counted * GATHERING,
            index: 8.0 * self.records / share,
        }
    }
}

impl PlanFile {
    /// Returns what the plan needs, whether or not it can be certified. The vocabulary of a public tokenizer counts as
    /// that of bytes ([`crate::Tokenizer::least_vocabulary`]).
    ///
    /// A token costs 2·P forward, 2·P + 2·T backward (Kaplan et al. 2020, §2.1), at most 2·T more for the norm of one
    /// example's gradient (a second product with the weights' shape; the Gram form is taken where it is less), and
    /// 12·layers·width·window for attention scores (Chowdhery et al. 2022, appendix B).
    ///
    /// ```
    /// use plan::PlanFile;
    /// let file = PlanFile::parse(include_str!("../../presets/quickstart.json"))?;
    /// let cost = file.cost();
    /// let [steps, batch] = [file.training.steps, file.training.expected_batch_size].map(|n| u128::from(n.unwrap_or(0)));
    /// assert_eq!(cost.tokens, steps * batch * u128::from(file.model.context));
    /// # Ok::<(), plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost_of(Network::of(self))
    }

    /// Returns the same as [`Self::cost`] for a vocabulary of this size, because the plan does not state that of a
    /// public tokenizer.
    #[must_use]
    pub fn cost_with_vocabulary(&self, vocabulary: u32) -> Cost {
        self.cost_of(Network::with_vocabulary(self, vocabulary))
    }

    /// Returns the number of parameters of adapters of the usual matrices ([`crate::Lora::usual`]); 0 for adapters of others.
    #[must_use]
    pub fn adapters(&self) -> u128 {
        Network::of(self).adapters()
    }

    /// Returns an estimate of the most bytes of memory that training takes on a machine with a vocabulary of this size; on a graphics
    /// processor a lower bound. The estimate is that of the trainer's dry run, with adapters of the usual matrices. Adapters of others
    /// count as nothing.
    ///
    /// ```
    /// use plan::{CHECKPOINTS, MACHINES, PlanFile, Trained};
    /// let mut file = PlanFile::parse(include_str!("../../presets/quickstart.json"))?;
    /// CHECKPOINTS[0].apply(&mut file, Trained::Lora);
    /// let adapters = file.memory_on(&MACHINES[0], 50_257);
    /// CHECKPOINTS[0].apply(&mut file, Trained::All);
    /// assert!(adapters < file.memory_on(&MACHINES[0], 50_257));
    /// # Ok::<(), plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn memory_on(&self, machine: &Machine, vocabulary: u32) -> f64 {
        let (network, adapters) = (Network::with_vocabulary(self, vocabulary), self.adapters());
        if machine.cores == 0 {
            return (self.cost_of(network).bytes + 16 * adapters) as f64;
        }
        let at_once = || network.windows_at_once(machine.memory as u64, machine.cores);
        let largest = self.training.phases().into_iter().map(|phase| phase.expected_batch_size).max();
        let micro_batch = u64::from(self.performance.physical_batch.unwrap_or_else(at_once));
        let settings = ProcessSettings {
            micro_batch: micro_batch.min(largest.unwrap_or(1)) as u32,
            workers: machine.cores,
            frozen_in_16_bits: false,
            exact: self.arithmetic_on(Device::Cpu) == Arithmetic::Exact,
            ranks: 1,
        };
        network.peak_bytes(self, adapters, settings) as f64
    }

    fn cost_of(&self, network: Network<'_>) -> Cost {
        let model = &self.model;
        let parameters = network.parameters();
        let micro_batch = self.performance.physical_batch.unwrap_or(1).max(1);
        let bytes = network.least_training_bytes(micro_batch);
        let drawn = |phase: crate::BatchPhase| {
            u128::from(phase.steps).saturating_mul(u128::from(phase.expected_batch_size))
        };
        let phases = self.training.phases();
        let units = phases.iter().copied().map(drawn).fold(0, u128::saturating_add);
        let steps = phases.iter().map(|phase| u128::from(phase.steps)).fold(0, u128::saturating_add);
        let rounds = |phase: &crate::BatchPhase| {
            phase.steps as f64 * (phase.expected_batch_size as f64 / f64::from(micro_batch)).ceil()
        };
        let micro_batches = phases.iter().map(rounds).sum::<f64>() / (steps as f64).max(1.0);
        let sampling = self.privacy.sampling;
        let population = sampling.population(self.data.units).max(1) as f64;
        let deviation = |phase: &crate::BatchPhase| {
            let expected = phase.expected_batch_size as f64;
            let variance = expected * (1.0 - expected / population).max(0.0);
            phase.steps as f64 * variance.sqrt() / f64::from(micro_batch)
        };
        let spread = phases.iter().map(deviation).sum::<f64>() / (steps as f64).max(1.0);
        let micro_batch_spread = if sampling.has_one_batch_size() { 0.0 } else { spread };
        let a_unit = u128::from(model.context).saturating_mul(u128::from(self.training.views_per_unit));
        let tokens = units.saturating_mul(a_unit);
        let trained = network.trained();
        let [flops, warm_start_flops] = self.operations(network, units);
        let exact = self.arithmetic_on(self.performance.device) == Arithmetic::Exact;
        let one_by_one = exact || self.performance.device == Device::Cpu;
        let at_once = if one_by_one { examples_at_once(self, exact, micro_batch) } else { micro_batch };
        Cost {
            parameters,
            tokens,
            flops,
            bytes,
            trained,
            steps,
            micro_batches,
            parts_of_micro_batch: f64::from(micro_batch.div_ceil(at_once)),
            micro_batch_spread,
            warm_start_flops,
        }
    }

    /// Floating-point operations of steps that draw so many units in all, and of the start from released words.
    fn operations(&self, network: Network<'_>, units: u128) -> [f64; 2] {
        let model = &self.model;
        let [layers, width, window] = [model.layers, model.d_model, model.context].map(f64::from);
        // A table that is only looked up takes none.
        let is_looked_up = self.training.objective.has_labels();
        let looked_up = if is_looked_up { f64::from(network.vocabulary) * width } else { 0.0 };
        let multiplied = network.parameters() as f64 - looked_up;
        let trained = (network.trained() as f64).min(multiplied);
        let a_token = 4.0 * (multiplied + trained) + 12.0 * layers * width * window;
        let views = f64::from(self.training.views_per_unit);
        let flops = if self.has_fixed_features() {
            // One forward pass over each unit.
            let computed = units.min(u128::from(self.population())) as f64;
            computed * views * window * (2.0 * multiplied + 4.0 * layers * width * window)
        } else {
            units as f64 * views * window * a_token
        };
        let start = self.training.warm_start.map_or(0, |start| start.steps);
        [flops, start.saturating_mul(WarmStart::BATCH_SIZE) as f64 * window * a_token]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quickstart() -> PlanFile {
        serde_json::from_str(include_str!("../../presets/quickstart.json")).expect("a preset is a plan")
    }

    /// Oracle: by hand. P = 1 M, one block of width 100 and window 50: a token takes 8 M + 60 k operations.
    #[test]
    fn operations_and_time_follow_the_formulas() {
        let mut file = quickstart();
        file.training.steps = Some(10);
        file.training.expected_batch_size = Some(20);
        file.model.context = 50;
        file.training.warm_start = None;
        let cost = file.cost();
        assert_eq!(cost.tokens, 10 * 20 * 50);
        let attention = 12.0 * f64::from(file.model.layers) * f64::from(file.model.d_model) * 50.0;
        let by_hand = 10_000.0 * (8.0 * cost.parameters as f64 + attention);
        assert!((cost.flops / by_hand - 1.0).abs() < 1e-12);
        let machine = graphics_processor("m", 1e9, 0.5, 1.0, [1e9, 1e-6]);
        assert!((cost.seconds_on(&machine) * 5e8 / by_hand - 1.0).abs() < 1e-12);
        file.training.warm_start = Some(WarmStart { steps: 30 });
        let longer = file.cost();
        assert!(
            (longer.seconds_on(&machine) / cost.seconds_on(&machine) - (1.0 + 30.0 * 64.0 / 200.0)).abs()
                < 1e-9
        );
        assert_eq!((longer.flops, longer.tokens), (cost.flops, cost.tokens));
        assert!(!cost.fits(&machine) && cost.fits(&Machine { memory: 1e15, ..machine }));
    }

    /// Oracle: by hand. A head reads features that are computed once. The table of tokens is only looked up.
    #[test]
    fn a_head_costs_one_forward_pass_over_each_unit() {
        let mut file = quickstart();
        (file.training.objective, file.training.dropout) = (crate::Objective::SequenceClassification, 0.0);
        file.model.trainable = crate::Trainable::Head;
        let (cost, width) = (file.cost(), f64::from(file.model.d_model));
        let below = cost.parameters as f64 - f64::from(file.tokenizer.least_vocabulary()) * width;
        let window = f64::from(file.model.context);
        let a_token = 2.0 * below + 4.0 * f64::from(file.model.layers) * width * window;
        assert!((cost.flops / (file.data.units as f64 * window * a_token) - 1.0).abs() < 1e-12);
    }

    /// Oracle: by hand. Four views take four times the tokens, and a micro-batch four times the activations.
    #[test]
    fn views_multiply_tokens_and_activations_and_not_parameters() {
        let mut file = quickstart();
        let one = file.cost();
        file.training.views_per_unit = 4;
        let four = file.cost();
        assert_eq!((four.tokens, four.parameters, four.steps), (4 * one.tokens, one.parameters, one.steps));
        assert!((four.flops / one.flops - 4.0).abs() < 1e-12);
        let fixed = 16 * one.parameters;
        assert_eq!(four.bytes - fixed, 4 * (one.bytes - fixed));
        let plan = crate::Plan::try_from(file).expect("it is valid");
        let rooms = [1, 2, 3].map(|bits| plan.windows_at_once(259, None, 1 << (25 + 2 * bits), 1));
        assert!(rooms.is_sorted() && rooms[2] <= 32, "{rooms:?}");
    }

    /// Oracle: by hand. 20 examples in micro-batches of 3 are 7 of them, of which one of 2 ranks computes 4.
    #[test]
    fn ranks_share_micro_batches_moments_and_messages() {
        let mut file = quickstart();
        (file.training.steps, file.training.expected_batch_size) = (Some(10), Some(20));
        file.performance.physical_batch = Some(3);
        file.training.warm_start = None;
        file.privacy.sampling = crate::Sampling::FixedSize;
        let cost = file.cost();
        assert_eq!((cost.steps, cost.micro_batches, cost.trained), (10, 7.0, cost.parameters));
        let trained = cost.trained as f64;
        let speed = RankSpeed {
            micro_batch_seconds: 2.0,
            update_seconds: 1.0,
            network: 6.0 * trained,
            latency: 0.0,
            workers: 1,
        };
        let [one, two, many] = [1, 2, 100].map(|ranks| cost.on_ranks(ranks, &speed));
        assert_eq!((one.step_seconds, one.bytes_sent, one.efficiency), (15.0, 0.0, 1.0));
        assert_eq!((two.step_seconds, two.bytes_sent), (4.0 * 2.0 + 0.5 + 1.0, 6.0 * trained));
        assert_eq!(two.efficiency, 15.0 / (2.0 * 9.5));
        assert_eq!(one.memory - two.memory, 4.0 * trained);
        assert!(many.step_seconds > 2.0 + 1.98 && many.efficiency < 0.04);
        let machine = MACHINES[0];
        let whole = cost.on_ranks(1, &cost.speed_of(&machine)).step_seconds * 10.0;
        assert!((whole / cost.seconds_on(&machine) - 1.0).abs() < 1e-12);
        assert_eq!([one.idle, two.idle, many.idle], [0, 0, 93]);
        // 100 ranks wait seven times for each of 20 small messages and two large ones.
        let slow = cost.on_ranks(100, &RankSpeed { latency: 1e-3, ..speed });
        assert_eq!((one.messages, slow.messages), (0, 22));
        assert!((slow.step_seconds - many.step_seconds - 0.154).abs() < 1e-12);
    }

    /// Oracle: by hand. 200 M parameters are sent in 191 messages after each of 2 rounds, in which 2 ranks compute 4 of 7 micro-batches, in
    /// 96 messages to their owners, and in 48 messages of weights.
    #[test]
    fn sums_of_many_parameters_are_divided_and_sent_after_each_micro_batch() {
        let mut file = quickstart();
        (file.training.steps, file.training.expected_batch_size) = (Some(10), Some(20));
        file.performance.physical_batch = Some(3);
        file.privacy.sampling = crate::Sampling::FixedSize;
        let cost = Cost { trained: 200_000_000, parts_of_micro_batch: 1.0, ..file.cost() };
        let speed = RankSpeed {
            micro_batch_seconds: 2.0,
            update_seconds: 0.0,
            network: 2e9,
            latency: 0.0,
            workers: 2,
        };
        let two = cost.on_ranks(2, &speed);
        assert_eq!(two.bytes_sent, (8.0 * 2.0 + 4.0 + 4.0) * 1e8);
        assert_eq!(two.messages, 20 + 2 * 191 + 4 * 96 + 48);
        assert!((two.step_seconds - (8.0 + 1.2)).abs() < 1e-12);
        assert_eq!(cost.bytes as f64 - two.memory, 6.0 * 2e8);
        // Where examples are computed one by one, each is sent.
        let alone = Cost { parts_of_micro_batch: 3.0, ..cost }.on_ranks(2, &speed);
        assert_eq!(alone.bytes_sent, (8.0 * 6.0 + 4.0 + 4.0) * 1e8);
    }

    #[test]
    fn the_parts_of_a_micro_batch_are_examples_where_sums_are_exact() {
        let mut file = quickstart();
        file.performance.physical_batch = Some(6);
        for (arithmetic, context, parts) in [
            (Arithmetic::Fast, 64, 1.0),
            (Arithmetic::Exact, 128, 2.0),
            (Arithmetic::Exact, 200, 6.0),
            (Arithmetic::Fast, 512, 6.0),
        ] {
            (file.privacy.arithmetic, file.model.context) = (Some(arithmetic), context);
            assert_eq!(file.cost().parts_of_micro_batch, parts);
        }
        file.performance.device = Device::Cuda;
        assert_eq!(file.cost().parts_of_micro_batch, 1.0);
    }

    /// Oracle: by hand. A mean of 100 micro-batches of one unit with a deviation of 10 leaves 10 ranks with 10.5 in the mean, because the
    /// number of rounds is rounded up.
    #[test]
    fn a_step_waits_for_the_rank_with_the_most_of_a_drawn_batch() {
        let mut file = quickstart();
        (file.training.steps, file.training.expected_batch_size) = (Some(10), Some(100));
        (file.performance.physical_batch, file.data.units) = (Some(1), 1 << 40);
        file.privacy.sampling = crate::Sampling::Poisson;
        let cost = file.cost();
        assert!((cost.micro_batch_spread - 10.0).abs() < 1e-6);
        assert!((cost.rounds(1.0) - 100.0).abs() < 0.1, "{}", cost.rounds(1.0));
        assert!((cost.rounds(10.0) - 10.5).abs() < 0.1, "{}", cost.rounds(10.0));
        assert_eq!(cost.rounds(1000.0), 1.0);
        file.privacy.sampling = crate::Sampling::FixedSize;
        assert_eq!(file.cost().rounds(10.0), 10.0);
    }

    /// Oracle: by hand.
    #[test]
    fn what_a_rank_reads_and_keeps_of_a_text_falls_with_their_number() {
        let text = TextSize { bytes: 1e13, records: 1e10, counts_words: false };
        let start = text.start_on(1000, 1e8);
        assert_eq!((start.bytes_read, start.seconds, start.index), (1e10, 100.0, 8e7));
        assert_eq!(start.gathering_seconds, 0.0);
        let counted = TextSize { counts_words: true, ..text };
        let start = counted.start_on(1000, 1e8);
        assert_eq!((start.bytes_read, start.seconds), (2e10, 200.0 + 1e10 * COUNTING));
        assert_eq!(start.gathering_seconds, 1e13 * GATHERING);
    }

    #[test]
    fn a_plan_beyond_all_machines_saturates_instead_of_failing() {
        let mut file = quickstart();
        file.training.steps = Some(u64::MAX);
        file.training.expected_batch_size = Some(u64::MAX);
        file.model.context = u32::MAX;
        assert!(file.cost().flops.is_finite());
        assert_eq!(file.cost().tokens, u128::MAX);
    }
}
