//! How a step grows with the length of texts, the lot, and the width and depth of the model. Each point is a line of JSON, which the example
//! `curves` of `trainer-native` draws.

use std::io::Write;

use network::nn::Kernels;
use serde_json::json;

use super::request::Request;
use super::settings::Setting;
use super::{Outcome, measure, peak, peers};

/// Tokens of a step where the length of texts varies, and of a micro-batch.
const TOKENS: usize = 4096;
const AT_ONCE: usize = 1024;

/// What varies, its values, and the setting that a value makes.
type Axis = (&'static str, &'static [usize], fn(&mut Setting, usize));

const AXES: [Axis; 4] = [
    ("context", &[128, 256, 512, 1024, 2048, 4096], |setting, tokens| {
        setting.context = tokens;
        setting.lot = TOKENS / tokens;
        setting.physical_batch = AT_ONCE.div_ceil(tokens);
    }),
    ("lot", &[16, 64, 256, 1024, 4096], |setting, lot| {
        *setting =
            Setting { d_model: 256, heads: 4, context: 64, lot, physical_batch: 16, ..setting.clone() };
    }),
    ("width", &[128, 256, 512, 1024, 2048], |setting, width| {
        setting.d_model = width as u32;
        setting.heads = (width / 64) as u32;
    }),
    ("layers", &[1, 2, 4, 8, 16], |setting, layers| setting.layers = layers as u32),
];

/// Measures the points of every curve whose axis is among `names`, or of all without names. `base` is the setting of which one size varies.
pub fn print<B: Kernels>(
    names: &[String],
    base: &Setting,
    request: &Request,
    device: &B::Device,
    out: &mut impl Write,
) -> Outcome {
    let known = AXES.map(|axis| axis.0);
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("there is no curve \"{unknown}\"; allowed: {}", known.join(", ")).into());
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for (axis, values, vary) in
        AXES.into_iter().filter(|axis| names.is_empty() || names.iter().any(|name| name == axis.0))
    {
        for &value in values {
            let mut setting = base.clone();
            vary(&mut setting, value);
            let figures = measure::<B>(&setting, device)?;
            let gib = ["plain", "fast", "exact"].map(|kind| peak(request, &setting, kind));
            let [plain_gib, fast_gib, exact_gib] = gib;
            let others = peers::times(&setting, request.device_name(), threads)?;
            let point = json!({
                "axis": axis, "value": value, "peers": others, "plain": figures.plain, "fast": figures.private, "exact": figures.exact,
                "plain GiB": plain_gib?, "fast GiB": fast_gib?, "exact GiB": exact_gib?,
            });
            writeln!(out, "{point}")?;
            out.flush()?;
        }
    }
    Ok(())
}
