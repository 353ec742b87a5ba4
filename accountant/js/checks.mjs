// What the package answers, checked the same way in Node and in a browser.

const ADD = 'add_or_remove_one'
const SWAP = 'replace_one'
const EMPTY = 'zero_out'
const gaussian = { type: 'gaussian', noise_multiplier: 1 }

/** `count` steps with Poisson sampling. */
export const sampled = (sampling_probability, noise_multiplier, count) => ({
  type: 'self_composed',
  event: { type: 'poisson_sampled_gaussian', sampling_probability, noise_multiplier },
  count,
})

/** Queries A to F with their exact ε by contour inversion. */
export const QUERIES = [
  { name: 'A', q: 1e-2, sigma: 1, steps: 1e3, delta: 1e-5, exact: 1.828237 },
  { name: 'B', q: 256 / 60000, sigma: 1.1, steps: 14062, delta: 1e-5, exact: 2.381597 },
  { name: 'C', q: 1e-3, sigma: 0.6, steps: 1e5, delta: 1e-8, exact: 8.584754 },
  { name: 'D', q: 1e-4, sigma: 1, steps: 1e6, delta: 1e-8, exact: 0.658114 },
  { name: 'E', q: 8192 / 5240387307, sigma: 0.3, steps: 1e5, delta: 1.9e-10, exact: 11.576781 },
  { name: 'F', q: 0.23, sigma: 3, steps: 109, delta: 1e-8, exact: 4.93767 },
]

/** Every scheme, with a relation it has a bound for, and an interval that holds its ε at δ = 1e-5. */
const SCHEMES = [
  // Balle & Wang 2018.
  [gaussian, ADD, 4.3771, 4.3772],
  [sampled(0.01, 1, 1000), ADD, 1.8282, 1.8283],
  // The reference table of truncated sampling: 1.83046566 above; untruncated from below.
  [
    {
      type: 'self_composed',
      event: { type: 'truncated_poisson_sampled_gaussian', sampling_probability: 0.01, noise_multiplier: 1, units: 10000, largest_batch: 150 },
      count: 1000,
    },
    EMPTY,
    1.828,
    1.8342,
  ],
  // One epoch costs at most the plain Gaussian.
  [{ type: 'shuffled_gaussian', noise_multiplier: 1, batches: 100, epochs: 1 }, ADD, 0, 4.3772],
  // dp_accounting's PLD of displacement 2, to its grid.
  [{ type: 'fixed_size_sampled_gaussian', sample_size: 9, population: 9, noise_multiplier: 1 }, SWAP, 4.3771, 10],
  // Between the Poisson figure's neighbourhood and full participation.
  [{ type: 'balls_in_bins_gaussian', noise_multiplier: 1, batches: 1000, epochs: 1 }, ADD, 0.1387, 0.1391],
  [{ type: 'thresholded_histogram', noise_multiplier: 1, threshold_delta: 1e-6 }, ADD, 4.3772, 4.42],
  // Pure ε = 1/scale.
  [{ type: 'laplace', noise_multiplier: 2 }, ADD, 0.49, 0.5 + 1e-9],
  [{ type: 'discrete_gaussian', standard_deviation: 10, sensitivity: 10 }, ADD, 4.3, 4.45],
  // Known by its moments alone: no lower bound.
  [{ type: 'zero_concentrated', rho: 0.03125 }, ADD, 0, 1.05],
  [{ type: 'private_selection', event: { type: 'gaussian', noise_multiplier: 4 }, trials: { distribution: 'poisson', mean: 4 } }, ADD, 0.9, 3],
  [{ type: 'private_selection', event: gaussian, trials: { distribution: 'fixed', count: 1 } }, ADD, 4.3771, 4.3772],
  [
    {
      type: 'private_selection',
      event: { type: 'gaussian', noise_multiplier: 4 },
      trials: { distribution: 'truncated_negative_binomial', shape: 1, stop: 0.1 },
    },
    ADD,
    0.9,
    3.5,
  ],
  // Two Gaussians with σ = √2 are one with σ = 1.
  [{ type: 'composed', events: [{ type: 'gaussian', noise_multiplier: Math.SQRT2 }, { type: 'gaussian', noise_multiplier: Math.SQRT2 }] }, ADD, 4.3771, 4.3772],
]

const circle = { type: 'self_composed', count: 2 }
circle.event = circle
const deep = Array.from({ length: 1e5 }).reduce((inner) => [inner], 1)

/** What throws, a word of the message, and the kind of error: a TypeError unless given. */
const REFUSED = [
  ['a name that is no event', (a) => a.epsilon({ type: 'gausian', noise_multiplier: 1 }, 1e-5), 'poisson_sampled_gaussian'],
  ['a field that is none', (a) => a.epsilon({ ...gaussian, sigma: 2 }, 1e-5), 'sigma'],
  ['a field that is missing', (a) => a.epsilon({ type: 'gaussian' }, 1e-5), 'noise_multiplier'],
  ['nothing', (a) => a.epsilon(undefined, 1e-5), 'allowed: one event such as'],
  ['a noise multiplier of text', (a) => a.epsilon({ type: 'gaussian', noise_multiplier: '1' }, 1e-5), 'string'],
  ['noise that is NaN', (a) => a.epsilon({ type: 'gaussian', noise_multiplier: NaN }, 1e-5), 'noise_multiplier', 'RangeError'],
  ['half a step', (a) => a.epsilon(sampled(0.01, 1, 0.5), 1e-5), '0.5'],
  ['steps below none', (a) => a.epsilon(sampled(0.01, 1, -1), 1e-5), '-1'],
  ['a probability above 1', (a) => a.epsilon(sampled(2, 1, 1), 1e-5), 'sampling_probability', 'RangeError'],
  ['an object that holds itself', (a) => a.epsilon(circle, 1e-5), 'nested', 'RangeError'],
  ['a number that is such an object', (a) => a.epsilon({ type: 'gaussian', noise_multiplier: circle }, 1e-5), 'nested', 'RangeError'],
  ['a number that is lists in lists', (a) => a.epsilon({ type: 'gaussian', noise_multiplier: deep }, 1e-5), 'nested', 'RangeError'],
  ['a number that is maps in maps', (a) => a.epsilon({ type: 'gaussian', noise_multiplier: new Map([['a', deep]]) }, 1e-5), 'nested', 'RangeError'],
  ['a delta above 1', (a) => a.epsilon(gaussian, 2), '0 < delta < 1', 'RangeError'],
  ['no delta', (a) => a.epsilon(gaussian), 'delta must be a number'],
  ['a delta of text', (a) => a.epsilon(gaussian, '1e-5'), 'delta must be a number; got string'],
  ['an epsilon that is null', (a) => a.delta(gaussian, null), 'epsilon must be a number'],
  ['a group of text', (a) => a.epsilon(gaussian, 1e-5, ADD, '2'), 'group must be a number'],
  ['a unit that is a number', (a) => a.statement(gaussian, 1e-5, ADD, 7), 'unit must be a string'],
  ['steps of text', (a) => a.steps(1, 1e-5, '10', () => gaussian), 'most must be a number'],
  ['shares of text', (a) => a.splitBudget(1, 1e-5, ['1'], () => gaussian), 'shares'],
  ['an epsilon below 0', (a) => a.delta(gaussian, -1), 'a finite number from 0', 'RangeError'],
  ['an unknown relation', (a) => a.epsilon(gaussian, 1e-5, 'sometimes'), 'replace_one'],
  ['half a group', (a) => a.epsilon(gaussian, 1e-5, ADD, 1.5), 'group = 1.5', 'RangeError'],
  ['an empty group', (a) => a.epsilon(gaussian, 1e-5, ADD, 0), 'group', 'RangeError'],
  ['a group that no bound covers', (a) => a.epsilon({ type: 'balls_in_bins_gaussian', noise_multiplier: 1, batches: 4, epochs: 1 }, 1e-5, ADD, 2), 'balls_in_bins', 'Error'],
  [
    'truncation where the number of units is secret',
    (a) => a.epsilon({ type: 'truncated_poisson_sampled_gaussian', sampling_probability: 0.1, noise_multiplier: 1, units: 99, largest_batch: 50 }, 1e-5),
    'add_or_remove_one',
    'Error',
  ],
  ['an order of 1', (a) => a.renyiDivergence(gaussian, 1), 'above 1', 'RangeError'],
  ['an unknown conversion', (a) => a.renyiEpsilon(gaussian, 1e-5, ADD, 'best'), 'classic'],
  ['rho of sampling', (a) => a.zcdp(sampled(0.01, 1, 10)), 'zCDP', 'Error'],
  ['a rate of 0', (a) => a.truePositiveRate(gaussian, 0), 'strictly between 0 and 1', 'RangeError'],
  ['a target of 0', (a) => a.noiseMultiplier(0, 1e-5, () => gaussian), 'target epsilon', 'RangeError'],
  ['no function', (a) => a.noiseMultiplier(1, 1e-5), 'eventFor'],
  ['a function that answers with no event', (a) => a.noiseMultiplier(1, 1e-5, () => 7), 'event'],
  ['a function that throws', (a) => a.steps(1, 1e-5, 10, () => { throw new Error('my own') }), 'my own', 'Error'],
  ['steps and examples', (a) => a.noiseBatchRatio(1, 1e-5, 10, { steps: 1, examples: 1 }, 0, () => gaussian), 'one of them'],
  ['shares below 0', (a) => a.splitBudget(1, 1e-5, [-1, 2], () => gaussian), 'share', 'RangeError'],
  ['more right guesses than guesses', (a) => a.auditedEpsilon(10, 5, 6, 1e-6, 0.95), 'correct', 'RangeError'],
  ['a promise that says nothing', (a) => a.epsilonOfRates(0.5, 0.1, 1e-6), 'true positive rate', 'RangeError'],
]

/** The failures of `accountant`, a module of the package, as lines; empty when all is right. */
export function check(accountant) {
  const wrong = []
  const ok = (right, what) => right || wrong.push(what)
  const holds = (bounds, value, slack, what) =>
    ok(
      bounds.lower <= value * (1 + 1e-6) && bounds.upper >= value * (1 - 1e-6) && bounds.upper - bounds.lower <= slack * bounds.upper,
      `${what}: ${JSON.stringify(bounds)} should hold ${value}`,
    )
  const near = (found, value, slack, what) => ok(Math.abs(found - value) <= slack, `${what}: ${found} should be ${value}`)

  for (const { name, q, sigma, steps, delta, exact } of QUERIES) {
    holds(accountant.epsilon(sampled(q, sigma, steps), delta), exact, 1e-3, name)
  }
  for (const [event, relation, low, high] of SCHEMES) {
    const { lower, upper } = accountant.epsilon(event, 1e-5, relation)
    ok(lower <= upper && upper >= low && upper <= high, `${JSON.stringify(event)}: ${lower} to ${upper}, upper end not in [${low}, ${high}]`)
  }
  // Big integers and lists of events are taken too.
  holds(accountant.epsilon([sampled(0.01, 1, 500n), sampled(0.01, 1, 500)], 1e-5), 1.828237, 1e-3, 'a list of two halves')

  // Balle & Wang 2018: Φ(−1/2) − e·Φ(−3/2).
  near(accountant.delta(gaussian, 1).upper, 0.1269367375072, 1e-12, 'delta')
  // A group of two of a Gaussian is a Gaussian with half the noise.
  const half = { ...gaussian, noise_multiplier: 0.5 }
  for (const [name, of_two, alone] of [
    ['epsilon', accountant.epsilon(gaussian, 1e-5, EMPTY, 2), accountant.epsilon(half, 1e-5, EMPTY)],
    ['delta', accountant.delta(gaussian, 1, EMPTY, 2), accountant.delta(half, 1, EMPTY)],
    ['odds', accountant.odds(gaussian, EMPTY, 2), accountant.odds(half, EMPTY)],
    ['true positive rate', accountant.truePositiveRate(gaussian, 0.01, EMPTY, 2), accountant.truePositiveRate(half, 0.01, EMPTY)],
  ]) ok(of_two.upper === alone.upper, `${name} of a group of two`)
  // DP-T5 at σ = 0.3 by contour inversion.
  const t5 = sampled(8192 / 5240387307, 0.3, 1e5)
  const exact = accountant.exactEpsilon(t5, 1 / 5240387307)
  ok(exact.source === 'inversion' && exact.point >= exact.bounds.lower && exact.point <= exact.bounds.upper, JSON.stringify(exact))
  near(exact.point, 11.5743163547, 1e-8, 'exactEpsilon')
  // Published: 13.4586238.
  near(accountant.renyiEpsilon(t5, 1 / 5240387307), 13.4586238, 1e-6, 'renyiEpsilon')
  ok(accountant.renyiEpsilon(t5, 1 / 5240387307, ADD, 'classic') > 13.4587, 'the classic conversion is looser')
  near(accountant.renyiDivergence(gaussian, 8, EMPTY), 4, 1e-12, 'renyiDivergence')
  near(accountant.zcdp({ type: 'gaussian', noise_multiplier: 2 }, SWAP), 0.5, 1e-12, 'zcdp')
  holds(accountant.gaussianEquivalent(gaussian, 1e-6), 1, 1e-9, 'gaussianEquivalent')
  // Φ(1/2), and Φ(Φ⁻¹(0.01) + 1).
  holds(accountant.odds(gaussian), 0.691462461274, 1e-9, 'odds')
  holds(accountant.truePositiveRate(gaussian, 0.01), 0.0923569, 5e-2, 'truePositiveRate')
  ok(accountant.statement(gaussian, 1e-5, ADD, 'letter').includes('ε ≤ 4.3772 at δ = 1e-5'), 'statement')
  near(accountant.epsilonOfMu(1, 1e-5), 4.377178, 1e-5, 'epsilonOfMu')
  near(accountant.epsilonOfRates(0.01, 0.1, 1e-6), 2.302575092988546, 1e-9, 'epsilonOfRates')
  near(accountant.auditedEpsilon(1000, 100, 100, 1e-9, 0.95), 3.493, 1e-3, 'auditedEpsilon')

  // Igamberdiev et al. 2024, WMT16 at ε = 5 and δ = 1e-8.
  const wmt = 0.23040289128628225
  near(accountant.noiseMultiplier(5, 1e-8, (noise) => sampled(wmt, noise, 109)), 2.973748, 1e-4, 'noiseMultiplier')
  ok(accountant.steps(1.8283, 1e-5, 1e6, (steps) => sampled(0.01, 1, steps)) === 1000, 'steps')
  const batch = accountant.batchSize(1.83, 1e-5, 1e5, (size) => sampled(size / 1e5, 1, 1000))
  ok(batch >= 1000 && batch < 1005, `batchSize: ${batch}`)
  const least = accountant.smallestBatchSize(3, 1e-5, 60000, (size) => sampled(size / 60000, size * 0.01, 500))
  ok(least > 1 && least < 60000 && accountant.epsilon(sampled(least / 60000, least * 0.01, 500), 1e-5).upper <= 3, `smallestBatchSize: ${least}`)
  const ratio = accountant.noiseBatchRatio(3, 1e-5, 60000, { steps: 500 }, 0.1, (size, steps, noise) => sampled(size / 60000, noise, steps))
  // All units at once: μ = √500/σ, and ε = 3 takes μ = 0.719117 (Balle & Wang 2018).
  ok(ratio.expected_batch_size < 60000 && ratio.ratio <= (1.1001 * Math.sqrt(500)) / 0.719117 / 60000, JSON.stringify(ratio))
  const split = accountant.splitBudget(4, 1e-6, [0.2, 0.8], (stage, noise_multiplier) =>
    stage === 0 ? { type: 'thresholded_histogram', noise_multiplier, threshold_delta: 1e-7 } : sampled(0.01, noise_multiplier, 1000),
  )
  ok(split.together.upper <= 4 && split.alone[0].upper + split.alone[1].upper > 5 && split.noise_multipliers.length === 2, JSON.stringify(split))

  for (const [what, ask, word, kind = 'TypeError'] of REFUSED) {
    try {
      wrong.push(`${what} is answered: ${JSON.stringify(ask(accountant))}`)
    } catch (thrown) {
      ok(thrown instanceof Error && thrown.name === kind && thrown.message.includes(word), `${what}: ${thrown} should be a ${kind} and say "${word}"`)
    }
  }
  // A refusal leaves the module whole.
  holds(accountant.epsilon(gaussian, 1e-5), 4.377178, 1e-6, 'after the refusals')
  return wrong
}

/** Median milliseconds of ε with both bounds for each query, and the bounds. */
export function measure(accountant) {
  return QUERIES.map(({ name, q, sigma, steps, delta }) => {
    const times = []
    let bounds
    for (let round = 0; round < 9; round += 1) {
      const start = performance.now()
      bounds = accountant.epsilon(sampled(q, sigma, steps), delta)
      times.push(performance.now() - start)
    }
    times.sort((a, b) => a - b)
    return { name, ms: times[4], ...bounds }
  })
}
