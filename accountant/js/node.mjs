// Uses the package for Node as a program does. `cargo xtask web package` sets PACKAGE; NATIVE, if set, is a JSON file of
// native milliseconds for queries A to F, against which those in WASM are held.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const { PACKAGE, NATIVE } = process.env
const accountant = createRequire(import.meta.url)(join(PACKAGE, 'accountant.js'))

const run = (sampling_probability, noise_multiplier, count) => ({
  type: 'self_composed',
  event: { type: 'poisson_sampled_gaussian', sampling_probability, noise_multiplier },
  count,
})
// Exact figures: contour inversion, as in the design's table of queries.
const QUERIES = [
  ['A', 1e-2, 1, 1e3, 1e-5, 1.828237],
  ['B', 256 / 60000, 1.1, 14062, 1e-5, 2.381597],
  ['C', 1e-3, 0.6, 1e5, 1e-8, 8.584754],
  ['D', 1e-4, 1, 1e6, 1e-8, 0.658114],
  ['E', 8192 / 5240387307, 0.3, 1e5, 1.9e-10, 11.576781],
  ['F', 0.23, 3, 109, 1e-8, 4.93767],
]

const native = NATIVE ? JSON.parse(readFileSync(NATIVE, 'utf8')) : {}
for (const [name, q, sigma, steps, delta, exact] of QUERIES) {
  const ask = () => accountant.epsilon(run(q, sigma, steps), delta, 'add_or_remove_one')
  const bounds = ask()
  assert.ok(bounds.lower <= exact + 1e-6 && bounds.upper >= exact - 1e-6, `${name}: ${JSON.stringify(bounds)}`)
  assert.ok(bounds.upper - bounds.lower <= 1e-3 * bounds.upper, `${name}: ${JSON.stringify(bounds)}`)
  const times = []
  for (let round = 0; round < 9; round += 1) {
    const start = process.hrtime.bigint()
    ask()
    times.push(Number(process.hrtime.bigint() - start) / 1e6)
  }
  const best = Math.min(...times)
  const ratio = native[name] === undefined ? '' : `, ${(best / native[name]).toFixed(2)} times native`
  console.log(`${name}: ${bounds.lower.toFixed(6)} to ${bounds.upper.toFixed(6)}, ${best.toFixed(2)} ms${ratio}`)
}

const gaussian = { type: 'gaussian', noise_multiplier: 1 }
// Balle & Wang 2018: Φ(−1/2) − e·Φ(−3/2).
assert.ok(Math.abs(accountant.delta(gaussian, 1, 'add_or_remove_one').upper - 0.1269367375072) < 1e-12)
assert.ok(Math.abs(accountant.renyiDivergence(gaussian, 8, 'zero_out') - 4) < 1e-12)
// Φ(Φ⁻¹(0.01) + 1).
assert.ok(Math.abs(accountant.truePositiveRate(gaussian, 0.01, 'add_or_remove_one').upper - 0.0924) < 1e-3)
assert.ok(accountant.groupEpsilon(gaussian, 2, 1e-6, 'add_or_remove_one').lower > accountant.epsilon(gaussian, 1e-6, 'add_or_remove_one').upper)
assert.match(accountant.statement(gaussian, 1e-5, 'add_or_remove_one', 'user'), /ε ≤ 4\.3772.*user/s)
// Igamberdiev et al. 2024, WMT16 at ε = 5.
assert.ok(Math.abs(accountant.noiseMultiplier(5, 1e-8, 0.23040289128628225, 109, 'add_or_remove_one') - 2.973748) < 1e-5)
const bins = { type: 'balls_in_bins_gaussian', noise_multiplier: 1, batches: 20, epochs: 2 }
assert.ok(accountant.epsilon(bins, 1e-6, 'add_or_remove_one').upper > 1)
assert.throws(() => accountant.epsilon({ type: 'gausian' }, 1e-5, 'add_or_remove_one'), /gaussian/)
assert.throws(() => accountant.epsilon(gaussian, 2, 'add_or_remove_one'), /0 < delta < 1/)
assert.throws(() => accountant.epsilon(gaussian, 1e-5, 'sometimes'), /add_or_remove_one/)
assert.match(readFileSync(join(PACKAGE, 'accountant.d.ts'), 'utf8'), /epsilon\(event: Event, delta: number, relation: Relation\): Bounds/)
console.log('node: ok')
