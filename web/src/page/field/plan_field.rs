//! Fields of the plan that an input edits, and macros for those at a fixed place of the plan.

use plan::PlanFile;

use crate::log_scale::LogScale;

/// The properties of every setting.
#[derive(Clone, Copy)]
pub(crate) struct PlanField {
    /// Id of the input, unique on the page.
    pub(crate) id: &'static str,
    pub(crate) label: &'static str,
    /// Explanation below the field.
    pub(crate) hint: &'static str,
    /// JSON path in the plan, as refusals name it.
    pub(crate) path: &'static str,
}

/// A number of the plan.
#[derive(Clone, Copy)]
pub(crate) struct Number {
    pub(crate) field: PlanField,
    pub(crate) integer: bool,
    /// Range of the slider, if the field has one.
    pub(crate) slider: Option<LogScale>,
    /// Reads the number. `None` if the plan does not have it.
    pub(crate) read: fn(&PlanFile) -> Option<f64>,
    /// Writes the number.
    pub(crate) write: fn(&mut PlanFile, f64),
}

/// A field of the plan with a few values.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub(crate) field: PlanField,
    /// Values and their labels.
    pub(crate) options: &'static [(&'static str, &'static str)],
    /// Reads the value.
    pub(crate) read: fn(&PlanFile) -> &'static str,
    /// Writes the value.
    pub(crate) write: fn(&mut PlanFile, &str),
}

/// A text of the plan.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    pub(crate) field: PlanField,
    /// Reads the text.
    pub(crate) read: fn(&PlanFile) -> String,
    /// Writes the text.
    pub(crate) write: fn(&mut PlanFile, String),
}

/// A type of numbers of the plan.
pub(crate) trait Numeric {
    const INTEGER: bool;
    fn to_f64(self) -> Option<f64>;
    fn from_f64(value: f64) -> Self;
}

impl Numeric for f64 {
    const INTEGER: bool = false;

    fn to_f64(self) -> Option<f64> {
        Some(self)
    }

    fn from_f64(value: f64) -> Self {
        value
    }
}

impl Numeric for u32 {
    const INTEGER: bool = true;

    fn to_f64(self) -> Option<f64> {
        Some(f64::from(self))
    }

    fn from_f64(value: f64) -> Self {
        value as Self
    }
}

impl Numeric for u64 {
    const INTEGER: bool = true;

    fn to_f64(self) -> Option<f64> {
        Some(self as f64)
    }

    fn from_f64(value: f64) -> Self {
        value as Self
    }
}

impl<T: Numeric> Numeric for Option<T> {
    const INTEGER: bool = T::INTEGER;

    fn to_f64(self) -> Option<f64> {
        self.and_then(T::to_f64)
    }

    fn from_f64(value: f64) -> Self {
        Some(T::from_f64(value))
    }
}

/// The path of a place in the plan, as text.
macro_rules! plan_path {
    ($first:ident $(. $rest:ident)*) => {
        concat!(stringify!($first) $(, ".", stringify!($rest))*)
    };
}
pub(crate) use plan_path;

/// Makes a [`Number`] at a place of the plan: id, label, hint; place and type, slider.
macro_rules! number {
    ($id:literal, $label:literal, $hint:literal; $($place:ident).+ as $type:ty, $slider:expr) => {{
        use $crate::page::field::plan_field::{Number, Numeric, PlanField, plan_path};
        Number {
            field: PlanField { id: $id, label: $label, hint: $hint, path: plan_path!($($place).+) },
            integer: <$type as Numeric>::INTEGER,
            slider: $slider,
            read: |plan| Numeric::to_f64(plan.$($place).+),
            write: |plan, value| plan.$($place).+ = <$type as Numeric>::from_f64(value),
        }
    }};
}
pub(crate) use number;

/// The pattern of an option of [`choice!`].
macro_rules! option_pattern {
    ($variant:path) => {
        $variant
    };
    ($pattern:pat, $start:expr) => {
        $pattern
    };
}
pub(crate) use option_pattern;

/// The value that an option of [`choice!`] sets.
macro_rules! option_value {
    ($variant:path) => {
        $variant
    };
    ($pattern:pat, $start:expr) => {
        $start
    };
}
pub(crate) use option_value;

/// Makes a [`Choice`] at a place of the plan. Each option has a value, a label, and a variant of the field's enum. A
/// variant with data needs a pattern, and the value that it starts with.
macro_rules! choice {
    ($id:literal, $label:literal, $hint:literal; $($place:ident).+;
        $($value:literal, $option:literal => ($($variant:tt)+);)+) => {{
        use $crate::page::field::plan_field::{Choice, PlanField, option_pattern, option_value, plan_path};
        Choice {
            field: PlanField { id: $id, label: $label, hint: $hint, path: plan_path!($($place).+) },
            options: &[$(($value, $option)),+],
            read: |plan| match plan.$($place).+ {
                $(option_pattern!($($variant)+) => $value),+
            },
            write: |plan, value| plan.$($place).+ = match value {
                $($value => option_value!($($variant)+),)+
                _ => return,
            },
        }
    }};
}
pub(crate) use choice;
