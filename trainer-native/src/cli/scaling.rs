//! Options of `scaling`.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use plan::{Cost, LARGEST_WHOLE_SUM, MACHINES, Plan, RankCost, RankSpeed, RankStart, TextSize};
use serde::Serialize;

use super::advise::MachineName;
use super::print_result;
use training::data::text_bytes;
use training::plan_file::read_uncertified;
use training::{RunError, memory, vocabulary};

#[derive(Debug, Args)]
pub(super) struct ScalingArgs {
    /// The plan
    #[arg(long, value_name = "PLAN.json")]
    plan: PathBuf,
    /// Number of tokens, if the plan names a public tokenizer that is not here [default: as in its file]
    #[arg(long, value_name = "N")]
    vocab_size: Option<u32>,
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', default_values_t = [1_u64, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096])]
    ranks: Vec<u64>,
    /// What each rank runs on, where a time is not given
    #[arg(long, default_value = "cpu")]
    machine: MachineName,
    /// Measured seconds for one micro-batch [default: from the machine's data sheet]
    #[arg(long, value_name = "S")]
    micro_batch_seconds: Option<f64>,
    /// Number of micro-batches that a rank computes at the same time, one a thread [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers: Option<u32>,
    /// Measured seconds in which one rank alone adds noise to all parameters and updates them
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    update_seconds: f64,
    /// Measured bytes a second, in GB, that a rank sends in a reduce-scatter or an all-gather [default: the machine's network]
    #[arg(long, value_name = "GB")]
    gigabytes_per_second: Option<f64>,
    /// Measured seconds from sending a small message to receiving it [default: the machine's network]
    #[arg(long, value_name = "S")]
    latency_seconds: Option<f64>,
    /// Size of the training text, in GB, if it is not here [default: that of its files]
    #[arg(long, value_name = "GB")]
    text_gigabytes: Option<f64>,
    /// Number of its records, of which each rank keeps the places of its share [default: units, as the plan declares them]
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Megabytes of text that a rank reads a second before the first step
    #[arg(long, value_name = "MB", default_value_t = 100.0)]
    text_megabytes_per_second: f64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl ScalingArgs {
    /// Prints what a step of the plan takes on several ranks.
    pub fn run(self) -> Result<(), RunError> {
        let scaling = self.scaling()?;
        print_result(&scaling, &scaling.to_string(), self.json)
    }

    fn vocabulary(&self, plan: &Plan) -> Result<u32, RunError> {
        let base = self.plan.parent().unwrap_or(Path::new(""));
        match (self.vocab_size, plan.tokenizer().file()) {
            (Some(0), _) => Err(RunError::Refused("--vocab-size: 0; allowed: 1 and more".to_owned())),
            (Some(size), Some(_)) => Ok(size),
            (Some(_), None) => Err(RunError::Refused(
                "--vocab-size: the plan states the size of its vocabulary; leave the option out, or change tokenizer in the plan"
                    .to_owned(),
            )),
            (None, Some(file)) if !base.join(file).exists() => Err(RunError::Refused(format!(
                "{}: there is no such file, and the plan does not state the size of its vocabulary; give --vocab-size",
                base.join(file).display()
            ))),
            (None, _) => vocabulary::most_tokens(plan, base),
        }
    }

    fn scaling(&self) -> Result<Scaling, RunError> {
        let plan = read_uncertified(&self.plan)?;
        let cost = memory::cost(&plan, self.vocabulary(&plan)?)?;
        let of_machine = cost.speed_of(&MACHINES[self.machine as usize]);
        let network = self.gigabytes_per_second.map(|gigabytes| gigabytes * 1e9);
        let speed = RankSpeed {
            micro_batch_seconds: self.micro_batch_seconds.unwrap_or(of_machine.micro_batch_seconds),
            update_seconds: self.update_seconds,
            network: network.unwrap_or(of_machine.network),
            latency: self.latency_seconds.unwrap_or(of_machine.latency),
            workers: self.workers.unwrap_or(of_machine.workers),
        };
        let base = self.plan.parent().unwrap_or(Path::new(""));
        let bytes = self.text_gigabytes.map(|gigabytes| gigabytes * 1e9);
        let bytes = bytes.or_else(|| text_bytes(&plan, base).map(|bytes| bytes as f64));
        let reading = self.text_megabytes_per_second * 1e6;
        let records = self.records.unwrap_or(plan.data().units) as f64;
        let counts_words = plan.tokenizer().release().is_some() && !plan.is_public();
        for (option, value, allowed, is_allowed) in [
            ("--micro-batch-seconds", speed.micro_batch_seconds, "above 0", speed.micro_batch_seconds > 0.0),
            ("--update-seconds", speed.update_seconds, "from 0 on", speed.update_seconds >= 0.0),
            ("--gigabytes-per-second", speed.network / 1e9, "above 0", speed.network > 0.0),
            ("--latency-seconds", speed.latency, "from 0 on", speed.latency >= 0.0),
            ("--text-gigabytes", bytes.unwrap_or(0.0) / 1e9, "from 0 on", bytes.unwrap_or(0.0) >= 0.0),
            ("--text-megabytes-per-second", reading / 1e6, "above 0", reading > 0.0),
        ] {
            if !(is_allowed && value.is_finite()) {
                return Err(RunError::Refused(format!(
                    "{option}: {value}; allowed: a finite number {allowed}"
                )));
            }
        }
        if let Some(ranks) = self.ranks.iter().find(|ranks| !(1..=MAX_RANKS).contains(*ranks)) {
            return Err(RunError::Refused(format!("--ranks: {ranks}; allowed: 1 to {MAX_RANKS}")));
        }
        Ok(Scaling {
            steps: u64::try_from(cost.steps).unwrap_or(u64::MAX),
            micro_batches: cost.micro_batches,
            trained_parameters: u64::try_from(cost.trained).unwrap_or(u64::MAX),
            micro_batch_seconds: speed.micro_batch_seconds,
            update_seconds: speed.update_seconds,
            bytes_per_second: speed.network,
            latency_seconds: speed.latency,
            micro_batch_spread: cost.micro_batch_spread,
            parts_of_micro_batch: cost.parts_of_micro_batch,
            workers: speed.workers,
            text_bytes: bytes,
            ranks: self
                .ranks
                .iter()
                .map(|&ranks| Row {
                    start: bytes
                        .map(|bytes| TextSize { bytes, records, counts_words }.start_on(ranks, reading)),
                    ..Row::of(&cost, ranks, &speed)
                })
                .collect(),
        })
    }
}

/// Largest number of ranks, which exceeds any machine's.
const MAX_RANKS: u64 = 1 << 20;

/// The figures that are printed.
#[derive(Debug, Serialize)]
struct Scaling {
    steps: u64,
    micro_batches: f64,
    trained_parameters: u64,
    micro_batch_seconds: f64,
    update_seconds: f64,
    bytes_per_second: f64,
    latency_seconds: f64,
    /// Standard deviation of the number of micro-batches in a drawn batch.
    micro_batch_spread: f64,
    /// Number of parts of a micro-batch that are computed one after the other.
    parts_of_micro_batch: f64,
    workers: u32,
    text_bytes: Option<f64>,
    ranks: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    step: RankCost,
    hours: f64,
    /// Before the first step, if the size of the text is known.
    start: Option<RankStart>,
}

impl Row {
    fn of(cost: &Cost, ranks: u64, speed: &RankSpeed) -> Self {
        let step = cost.on_ranks(ranks, speed);
        Self { step, hours: step.step_seconds * cost.steps as f64 / 3600.0, start: None }
    }
}

impl Scaling {
    fn bytes_formula(&self) -> String {
        if self.trained_parameters <= u64::from(LARGEST_WHOLE_SUM) {
            return "12·T·(P − 1)/P".to_owned();
        }
        let exchanged = self.parts_of_micro_batch / f64::from(self.workers.max(1));
        format!("(8·r + 8/P + 4)·T·(P − 1)/P, r = E⌈{exchanged}·M/P⌉ exchanges of sums")
    }

    /// Returns what does not fall with the number of ranks, the first limit first.
    fn limits(&self) -> Vec<String> {
        let mut limits = Vec::new();
        if let Some(start) = self.most_ranks().and_then(|row| row.start)
            && start.gathering_seconds > start.seconds
        {
            limits.push(format!(
                "Before the first step, the first rank alone brings the word counts of all ranks together and releases words: about {:.1} h.",
                start.gathering_seconds / 3600.0
            ));
        }
        if self.ranks.iter().any(|row| row.step.idle > 0) {
            limits.push(format!(
                "Of more than {:.0} ranks, some have nothing to compute: a batch has as many micro-batches. Smaller ones give more ranks \
                 work (performance.physical_batch), and so does a larger batch.",
                self.micro_batches
            ));
        }
        if let Some(Row { step, .. }) = self.most_ranks().filter(|row| row.step.ranks > 1) {
            limits.push(format!(
                "On {} ranks, the exchange of sums and weights takes {:.3} of {:.3} s a step, and each rank holds all weights. \
                 This limits larger numbers of ranks.",
                step.ranks, step.exchange_seconds, step.step_seconds
            ));
        }
        limits
    }

    fn most_ranks(&self) -> Option<&Row> {
        self.ranks.iter().max_by_key(|row| row.step.ranks)
    }
}

impl fmt::Display for Scaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seconds a step = E⌈M/P⌉ · {:.3e} s + {:.3e} s / P + bytes / {:.3e} bytes/s + messages · ⌈log₂ P⌉ · {:.1e} s\n\
             bytes = {}\n\
             M = {:.0} ± {:.1} micro-batches, T = {} trained parameters, {} steps; an estimate, not a measurement\n",
            self.micro_batch_seconds,
            self.update_seconds,
            self.bytes_per_second,
            self.latency_seconds,
            self.bytes_formula(),
            self.micro_batches,
            self.micro_batch_spread,
            self.trained_parameters,
            self.steps
        )?;
        write!(
            f,
            "{:>8} {:>12} {:>12} {:>14} {:>12} {:>11} {:>9} {:>9}",
            "P", "s a step", "hours", "MB sent, step", "MB memory", "efficiency", "s start", "MB index"
        )?;
        for Row { step, hours, start } in &self.ranks {
            let start = start.as_ref().map_or_else(
                || format!("{:>9} {:>9}", "–", "–"),
                |start| {
                    format!("{:>9.1} {:>9.1}", start.seconds + start.gathering_seconds, start.index / 1e6)
                },
            );
            write!(
                f,
                "\n{:>8} {:>12.4} {:>12.2} {:>14.1} {:>12.1} {:>10.1}% {start}",
                step.ranks,
                step.step_seconds,
                hours,
                step.bytes_sent / 1e6,
                step.memory / 1e6,
                step.efficiency * 100.0
            )?;
        }
        for limit in self.limits() {
            write!(f, "\n{limit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        scaling: ScalingArgs,
    }

    fn scaling(options: &[&str]) -> Result<Scaling, String> {
        scaling_of("32128", options)
    }

    fn scaling_of(vocabulary: &str, options: &[&str]) -> Result<Scaling, String> {
        let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../plan/presets/ponomareva-2022-dp-t5.json");
        let begin = ["scaling", "--plan", plan, "--vocab-size", vocabulary];
        Alone::try_parse_from(begin.iter().chain(options))
            .unwrap()
            .scaling
            .scaling()
            .map_err(|error| error.to_string())
    }

    /// Oracle: by hand. 8,192 units in micro-batches of 64 are 128 of them, 100,000 times. The drawn number has a deviation of 1.4, so that
    /// one of 8 ranks has 17 of them at 6 of 16 quantiles.
    #[test]
    fn measured_times_take_the_place_of_the_data_sheets() {
        let measured = [
            "--micro-batch-seconds",
            "0.5",
            "--update-seconds",
            "2",
            "--gigabytes-per-second",
            "4",
            "--latency-seconds",
            "0",
            "--text-gigabytes",
            "10000",
            "--records",
            "10000000000",
            "--workers",
            "2",
        ];
        let options = [&measured[..], &["--ranks", "1,8,256"]].concat();
        let whole = scaling(&options).unwrap();
        assert_eq!(whole.trained_parameters, 60_506_624);
        assert_eq!(whole.ranks[1].step.bytes_sent, 12.0 * 60_506_624.0 * 7.0 / 8.0);
        assert!(whole.to_string().contains("12·T·(P − 1)/P"), "{whole}");
        // A larger table of tokens: so many parameters that sums are divided.
        let found = scaling_of("256000", &options).unwrap();
        assert_eq!(found.trained_parameters, 60_506_624 + (256_000 - 32_128) * 512);
        // Two micro-batches are computed at a time: 16 by 8 ranks.
        let want = [(1.0, 128.0, 64.0), (8.0, 16.375, 8.375), (256.0, 1.0, 1.0)].map(
            |(ranks, rounds, exchanges): (f64, f64, f64)| {
                let moved = (8.0 * exchanges + 8.0 / ranks + 4.0) * found.trained_parameters as f64;
                rounds * 0.5 + 2.0 / ranks + moved * (ranks - 1.0) / ranks / 4e9
            },
        );
        for (row, want) in found.ranks.iter().zip(want) {
            assert!((row.step.step_seconds / want - 1.0).abs() < 1e-12, "{row:?}, not {want}");
            assert!((row.hours / (want * 1e5 / 3600.0) - 1.0).abs() < 1e-12);
        }
        let shown = found.to_string();
        assert!(shown.contains("M = 128 ± 1.4 micro-batches"), "{shown}");
        assert!(shown.contains("r = E⌈0.5·M/P⌉"), "{shown}");
        assert!(shown.contains("Of more than 128 ranks, some have nothing to compute"), "{shown}");
        // 256 ranks: one exchange of sums, which takes 8 + 8/256 + 4 bytes a parameter.
        let exchange = 12.03125 * 255.0 / 256.0 * found.trained_parameters as f64 / 4e9;
        assert!((found.ranks[2].step.exchange_seconds / exchange - 1.0).abs() < 1e-12);
        let limit = format!("On 256 ranks, the exchange of sums and weights takes {exchange:.3} of");
        assert!(shown.contains(&limit), "{shown}");
        assert_eq!(found.ranks[0].step.exchange_seconds, 0.0);
        // 10 TB at 100 MB a second, and 8 bytes for each of 1e10 records, of one rank in 256.
        let start = found.ranks[2].start.unwrap();
        assert_eq!((start.bytes_read, start.index), (1e13 / 256.0, 8e10 / 256.0));
        assert_eq!(start.seconds, 1e13 / 256.0 / 1e8);
        assert_eq!(scaling(&[]).unwrap().ranks.len(), 11);
    }

    /// Oracle: by hand. Of 10 TB, each of 100 ranks reads 0.1 TB twice and counts for 2,200 s, and the first one releases for 150,000 s.
    #[test]
    fn the_release_of_a_vocabulary_is_the_limit_of_a_large_text_on_many_ranks() {
        let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../plan/presets/quickstart.json");
        let shown = |ranks: &str| {
            let options = ["scaling", "--plan", plan, "--text-gigabytes", "10000", "--ranks", ranks];
            Alone::try_parse_from(options).unwrap().scaling.scaling().unwrap().to_string()
        };
        let limit = "brings the word counts of all ranks together and releases words: about 41.7 h";
        assert!(shown("100").contains(limit) && shown("100").contains(" 154200.0 "), "{}", shown("100"));
        assert!(!shown("1").contains(limit), "{}", shown("1"));
    }

    #[test]
    fn figures_out_of_range_are_refused_by_the_name_of_their_option() {
        for (option, value, allowed) in [
            ("--micro-batch-seconds", "0", "a finite number above 0"),
            ("--update-seconds", "nan", "a finite number from 0 on"),
            ("--gigabytes-per-second", "inf", "a finite number above 0"),
            ("--ranks", "0", "1 to 1048576"),
            ("--latency-seconds", "-1", "a finite number from 0 on"),
            ("--text-megabytes-per-second", "0", "a finite number above 0"),
        ] {
            let refused = scaling(&[&format!("{option}={value}")]).unwrap_err();
            assert!(refused.starts_with(option) && refused.ends_with(allowed), "{refused}");
        }
    }
}
