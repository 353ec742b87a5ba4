/* tslint:disable */
/* eslint-disable */

/**
 * The ε that an audit refutes: `correct` of `guesses` right about which of `canaries` were trained on.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function auditedEpsilon(canaries: number, guesses: number, correct: number, delta: number, confidence: number): number;

/**
 * The largest expected batch, up to `units`, whose certified ε at `delta` is at most `epsilon`.
 *
 * # Errors
 * A refused argument, with what is allowed; whatever `eventFor` throws.
 */
export function batchSize(epsilon: number, delta: number, units: number, eventFor: (batch: number) => Events, relation?: Relation): number;

/**
 * Bounds on δ at `epsilon`, of one unit or of a group of `group` units.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function delta(event: Events, epsilon: number, relation?: Relation, group?: number): Bounds;

/**
 * Bounds on ε at `delta`, of one unit or of a group of `group` units such as the records of one user.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function epsilon(event: Events, delta: number, relation?: Relation, group?: number): Bounds;

/**
 * The largest ε at `delta` that promises no more than one Gaussian mechanism of this μ does.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function epsilonOfMu(mu: number, delta: number): number;

/**
 * The largest ε at `delta` that keeps every membership test of this false positive rate to this true positive rate.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function epsilonOfRates(falsePositiveRate: number, truePositiveRate: number, delta: number): number;

/**
 * ε at `delta` to nearly all digits, inside certified bounds.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function exactEpsilon(event: Events, delta: number, relation?: Relation): Estimate;

/**
 * Bounds on the μ at which one Gaussian mechanism costs the same ε at `delta`.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function gaussianEquivalent(event: Events, delta: number, relation?: Relation): Bounds;

/**
 * The method of certified bounds, as certificates name it.
 */
export function method(): string;

/**
 * The batch of the least noise-batch ratio for the target, or the cheapest within `slack` of it.
 *
 * # Errors
 * A refused argument, with what is allowed; whatever `eventFor` throws.
 */
export function noiseBatchRatio(epsilon: number, delta: number, units: number, compute: Compute, slack: number, eventFor: (batch: number, steps: number, noiseMultiplier: number) => Events, relation?: Relation): NoiseBatch;

/**
 * The smallest noise multiplier whose certified ε at `delta` is at most `epsilon`.
 *
 * # Errors
 * A refused argument, with what is allowed; whatever `eventFor` throws.
 */
export function noiseMultiplier(epsilon: number, delta: number, eventFor: (noiseMultiplier: number) => Events, relation?: Relation): number;

/**
 * Bounds on the chance that an attacker who starts from fifty to fifty says rightly whether one unit, or a group of
 * `group` units, was there.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function odds(event: Events, relation?: Relation, group?: number): Bounds;

/**
 * Rényi divergence of an order above 1, the worse direction.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function renyiDivergence(event: Events, order: number, relation?: Relation): number;

/**
 * The looser ε by way of Rényi divergences, as most papers report it; `improved` conversion unless given.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function renyiEpsilon(event: Events, delta: number, relation?: Relation, conversion?: Conversion): number;

/**
 * The smallest expected batch, up to `units`, whose certified ε is at most `epsilon` where ε falls with the batch.
 *
 * # Errors
 * A refused argument, with what is allowed; whatever `eventFor` throws.
 */
export function smallestBatchSize(epsilon: number, delta: number, units: number, eventFor: (batch: number) => Events, relation?: Relation): number;

/**
 * Noise for stages that share a budget: `shares` of the squared μ, and together at most `epsilon` at `delta`.
 *
 * # Errors
 * A refused argument, with what is allowed; whatever `eventFor` throws.
 */
export function splitBudget(epsilon: number, delta: number, shares: number[], eventFor: (stage: number, noiseMultiplier: number) => DpEvent, relation?: Relation): Split;

/**
 * A privacy statement in words; `unit` is what a unit is called, `record` unless given.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function statement(event: Events, delta: number, relation?: Relation, unit?: string): string;

/**
 * The largest number of steps, up to `most`, whose certified ε at `delta` is at most `epsilon`.
 *
 * # Errors
 * A refused argument, with what is allowed; whatever `eventFor` throws.
 */
export function steps(epsilon: number, delta: number, most: number, eventFor: (steps: number) => Events, relation?: Relation): number;

/**
 * Bounds on the best true positive rate of a membership test with the given false positive rate, of one unit or of a
 * group of `group` units.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function truePositiveRate(event: Events, falsePositiveRate: number, relation?: Relation, group?: number): Bounds;

/**
 * The accountant's version, as certificates name it.
 */
export function version(): string;

/**
 * ρ of zero-concentrated differential privacy, for events of plain Gaussian mechanisms.
 *
 * # Errors
 * A refused argument, with what is allowed.
 */
export function zcdp(event: Events, relation?: Relation): number;
