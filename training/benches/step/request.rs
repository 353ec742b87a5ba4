//! The request of the command line.

use plan::{Device, Precision};

use super::Outcome;
use super::settings::{SETTINGS, Setting};

/// The settings to measure, and the device.
pub struct Request {
    pub settings: Vec<Setting>,
    pub device: Device,
    /// The kind of step of which this process takes several to report its peak memory.
    pub memory_of: Option<String>,
    /// The curves to print in place of a table: all if none is named.
    pub curves: Option<Vec<String>>,
    /// Whether to time both ways to the sum of a matrix's gradients instead.
    pub crossover: bool,
}

impl Request {
    /// Reads the request from the command line.
    ///
    /// # Errors
    /// For flags and settings that do not exist, with those that do.
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut arguments = arguments.peekable();
        let (mut names, mut device, mut memory_of, mut curves) = (Vec::new(), "cpu".to_owned(), None, false);
        let mut crossover = false;
        let mut precision = "f32".to_owned();
        let [mut context, mut lot, mut physical_batch, mut pairs, mut width, mut layers] = [None; 6];
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                // Cargo adds this flag.
                "--bench" => {}
                "--device" => device = value()?,
                "--context" => context = Some(value()?.parse()?),
                "--pairs" => pairs = Some(value()?.parse()?),
                "--lot" => lot = Some(value()?.parse()?),
                "--physical-batch" => physical_batch = Some(value()?.parse()?),
                "--width" => width = Some(value()?.parse()?),
                "--layers" => layers = Some(value()?.parse()?),
                "--memory-of" => memory_of = Some(value()?),
                "--precision" => precision = value()?,
                "--curves" => curves = true,
                "--crossover" => crossover = true,
                flag if flag.starts_with("--") => {
                    let allowed = "--device, --context, --lot, --physical-batch, --pairs, --width, --layers, --precision, --curves, --crossover";
                    return Err(format!("{flag} is no flag; allowed: {allowed}").into());
                }
                name => names.push(name.to_owned()),
            }
        }
        let device: Device = serde_json::from_value(device.into())?;
        let precision: Precision = serde_json::from_value(precision.into())?;
        let curves = curves.then(|| std::mem::take(&mut names));
        let mut settings =
            if curves.is_some() { chosen(&["gpt2-small".to_owned()])? } else { chosen(&names)? };
        for setting in &mut settings {
            setting.device = device;
            setting.precision = precision;
            setting.context = context.unwrap_or(setting.context);
            setting.pairs = pairs.map_or(setting.pairs, |pairs: usize| pairs as u64);
            setting.lot = lot.unwrap_or(setting.lot);
            setting.physical_batch = physical_batch.unwrap_or(setting.physical_batch);
            setting.layers = layers.map_or(setting.layers, |layers: usize| layers as u32);
            if let Some(width) = width {
                setting.d_model = width as u32;
                setting.heads = (width / 64).max(1) as u32;
            }
        }
        Ok(Self { settings, device, memory_of, curves, crossover })
    }

    pub fn device_name(&self) -> &'static str {
        match self.device {
            Device::Cpu => "cpu",
            Device::Wgpu => "wgpu",
            Device::Cuda => "cuda",
        }
    }

    /// Returns the arguments of a process that reports its peak memory after steps of this kind.
    pub fn memory_arguments(&self, setting: &Setting, kind: &str) -> Vec<String> {
        let flags = [
            ("--memory-of", kind.to_owned()),
            ("--device", self.device_name().to_owned()),
            ("--context", setting.context.to_string()),
            ("--lot", setting.lot.to_string()),
            ("--physical-batch", setting.physical_batch.to_string()),
            ("--layers", setting.layers.to_string()),
            ("--precision", if setting.precision == Precision::Bf16 { "bf16" } else { "f32" }.to_owned()),
        ];
        // A width decides the number of heads, which some settings have otherwise.
        let width = self.curves.as_ref().map(|_| ("--width", setting.d_model.to_string()));
        let given = flags.into_iter().chain(width).map(|(flag, value)| [flag.to_owned(), value]);
        std::iter::once(setting.name.to_owned()).chain(given.flatten()).collect()
    }
}

/// Returns the settings of these names, or all without names.
fn chosen(names: &[String]) -> Outcome<Vec<Setting>> {
    if names.is_empty() {
        return Ok(SETTINGS.to_vec());
    }
    let find = |name: &String| {
        let allowed = || SETTINGS.map(|setting| format!("\"{}\"", setting.name)).join(", ");
        let found = SETTINGS.iter().find(|setting| setting.name == name);
        Ok(found.ok_or_else(|| format!("there is no setting \"{name}\"; allowed: {}", allowed()))?.clone())
    };
    names.iter().map(find).collect()
}
