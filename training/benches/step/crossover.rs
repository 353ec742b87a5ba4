//! Times both ways to the clipped sum of a matrix's gradients, whose choice [`network::nn::materialize_if_cheaper`] makes by sizes alone.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use network::nn::{GradRecord, Kernels, ParamId, materialize_if_cheaper};
use network::tensor::{FloatDType, Tensor, from_host};

use super::{Outcome, median};

/// Examples of a micro-batch.
const BATCH: usize = 8;

/// Times of which the median is taken.
const TIMES: usize = 9;

/// Prints, for each size, the milliseconds that an example's norm and sum take beyond those of a step without privacy, from Gram
/// matrices and from whole gradients.
pub fn print<B: Kernels>(device: &B::Device, out: &mut impl Write) -> Outcome {
    writeln!(
        out,
        "| tokens | matrix | from Gram matrices, ms | from whole gradients, ms | chosen | multiplications a pass at which both are equal |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for [d_in, d_out] in [[128, 512], [512, 512], [768, 768], [768, 3072], [2048, 2048]] {
        for tokens in [32, 64, 128, 192, 256, 384, 512, 1024] {
            let input = values::<B>([BATCH, tokens, d_in], device);
            let grad = values::<B>([BATCH, tokens, d_out], device);
            let factors = values::<B>([1, 1, BATCH], device).flatten::<1>(0, 2);
            let all = |values: &Tensor<B, 3>| values.clone().flatten::<2>(0, 1);
            let sum = || B::product(all(&input).transpose(), all(&grad));
            let from_gram = || {
                let squares = B::product_squares(input.clone(), grad.clone());
                (squares, B::scale_examples(input.clone(), factors.clone()), sum())
            };
            let from_whole = || {
                let whole = B::product(input.clone().transpose(), grad.clone()).flatten::<2>(1, 2);
                (B::dots(whole.clone(), whole.clone()), B::weighted_sum(whole, factors.clone()))
            };
            let plain = milliseconds::<B, _>(device, sum)?;
            let gram = (milliseconds::<B, _>(device, from_gram)? - plain) / BATCH as f64;
            let whole = (milliseconds::<B, _>(device, from_whole)? - plain) / BATCH as f64;
            let record = GradRecord::Product { param: ParamId(0), input: input.clone(), grad: grad.clone() };
            let chosen = match materialize_if_cheaper(vec![record])[..] {
                [GradRecord::Explicit { .. }] => "whole",
                _ => "Gram",
            };
            let products = (tokens * tokens * (d_in + d_out) / 2) as f64;
            let equal = products / gram * whole / (d_in * d_out) as f64;
            writeln!(
                out,
                "| {tokens} | {d_in} × {d_out} | {gram:.3} | {whole:.3} | {chosen} | {equal:.0} |"
            )?;
        }
    }
    Ok(())
}

fn values<B: Kernels>(shape: [usize; 3], device: &B::Device) -> Tensor<B, 3> {
    let values = (0..shape.iter().product()).map(|at: usize| (at * 7919 % 1999) as f32 / 1000.0 - 1.0);
    from_host(values.collect(), shape, FloatDType::F32, device)
}

fn milliseconds<B: Kernels, T>(device: &B::Device, work: impl Fn() -> T) -> Outcome<f64> {
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..=TIMES {
        let start = Instant::now();
        black_box(work());
        B::sync(device)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    // The first time includes new memory.
    times.remove(0);
    Ok(median(times))
}
