import { epsilon, noiseMultiplier, statement } from 'accountant'

// A thousand steps, each on a random 1 % of the records.
const run = (noise_multiplier) => ({
  type: 'self_composed',
  event: { type: 'poisson_sampled_gaussian', sampling_probability: 0.01, noise_multiplier },
  count: 1000,
})
console.log(epsilon(run(1), 1e-5)) // { lower: 1.8282365523148494, upper: 1.8282367799220538 }
console.log(noiseMultiplier(1, 1e-5, run)) // 1.414619697875139
console.log(statement(run(1), 1e-5, 'add_or_remove_one', 'clinical note'))
