/** A certified interval: the true value is never below `lower` nor above `upper`. Spend `upper`. */
export interface Bounds { lower: number; upper: number }

/** Which pairs of data sets must be hard to tell apart; `add_or_remove_one` unless given. */
export type Relation = "add_or_remove_one" | "replace_one" | "zero_out";

/** The law of the number of trials of a private selection. */
export type Trials =
  | { distribution: "truncated_negative_binomial"; shape: number; stop: number }
  | { distribution: "poisson"; mean: number }
  | { distribution: "fixed"; count: number | bigint };

/** One use of the private data. `noise_multiplier` is noise over what adding or removing one unit changes. */
export type DpEvent =
  | { type: "gaussian"; noise_multiplier: number }
  | { type: "poisson_sampled_gaussian"; sampling_probability: number; noise_multiplier: number }
  | { type: "cyclic_poisson_sampled_gaussian"; sampling_probability: number; noise_multiplier: number }
  | { type: "poisson_sampled_examples_gaussian"; sampling_probability: number; noise_multiplier: number; examples_per_unit: number }
  | { type: "truncated_poisson_sampled_gaussian"; sampling_probability: number; noise_multiplier: number; units: number | bigint; largest_batch: number | bigint }
  | { type: "shuffled_gaussian"; noise_multiplier: number; batches: number | bigint; epochs: number | bigint }
  | { type: "fixed_size_sampled_gaussian"; sample_size: number | bigint; population: number | bigint; noise_multiplier: number }
  | { type: "balls_in_bins_gaussian"; noise_multiplier: number; batches: number | bigint; epochs: number | bigint }
  | { type: "thresholded_histogram"; noise_multiplier: number; threshold_delta: number }
  | { type: "laplace"; noise_multiplier: number }
  | { type: "poisson_sampled_laplace"; sampling_probability: number; noise_multiplier: number }
  | { type: "randomized_response"; noise_parameter: number; buckets: number }
  | { type: "epsilon_delta"; epsilon: number; delta: number }
  | { type: "discrete_gaussian"; standard_deviation: number; sensitivity: number | bigint }
  | { type: "zero_concentrated"; rho: number }
  | { type: "private_selection"; event: DpEvent; trials: Trials }
  | { type: "composed"; events: DpEvent[] }
  | { type: "self_composed"; event: DpEvent; count: number | bigint };

/** One event, or a list of events on the same data. */
export type Events = DpEvent | DpEvent[];

/** ε to nearly all digits, inside certified bounds; `certified` where the figure is the upper bound. */
export interface Estimate { bounds: Bounds; point: number; source: "inversion" | "certified" }

/** How Rényi divergences become ε. */
export type Conversion = "classic" | "improved";

/** What a run may spend besides privacy: steps, or examples in all. */
export type Compute = { steps: number } | { examples: number };

/** A batch with the noise that its privacy needs; `ratio` is the noise on the mean gradient in clip norms. */
export interface NoiseBatch { expected_batch_size: number; steps: number; noise_multiplier: number; ratio: number }

/** What each stage of a pipeline gets. */
export interface Split { noise_multipliers: number[]; alone: Bounds[]; together: Bounds }
