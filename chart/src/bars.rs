//! Bar charts: named values in groups, drawn as a self-contained SVG file in light colours.

use std::fmt::Write;

use crate::label::tick_label;
use crate::scene::WIDTH;
use crate::svg::{INK, STROKES, escaped};

/// The heights in pixels of the title, of a group's name, of a bar with the space around it, and of a bar.
const HEAD: f64 = 38.0;
const GROUP: f64 = 28.0;
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;
/// The edge of the column of bars. Names stand left of it, and values right of each bar.
const LEFT: f64 = 250.0;
const RIGHT: f64 = WIDTH - 84.0;
/// The number of characters of a name that fit left of the bars.
const NAME: usize = 22;

/// A chart of horizontal bars. Each bar has its name and its value beside it, so that none is
/// distinguished by colour alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// Heading.
    pub title: String,
    /// Unit after each value, such as " %".
    pub unit: String,
    /// The value of a bar of full length; the largest value if absent.
    pub full: Option<f64>,
    /// The groups, from top to bottom.
    pub groups: Vec<Group>,
}

/// Bars under one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Name of the group.
    pub name: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Name; bars of one name have one colour.
    pub name: String,
    /// Value. A bar below zero has no length.
    pub value: f64,
}

impl Bars {
    /// Returns the text of the SVG file; `None` without a finite value.
    ///
    /// ```
    /// use chart::{Bar, Bars, Group};
    /// let bar = |name: &str, value| Bar { name: name.into(), value };
    /// let bars = vec![bar("certified", 4.0), bar("found", 0.7)];
    /// let chart = Bars { title: "ε".into(), groups: vec![Group { name: "one run".into(), bars }], ..Bars::default() };
    /// assert!(chart.svg().expect("there are values").starts_with("<svg xmlns"));
    /// assert_eq!(Bars::default().svg(), None);
    /// ```
    #[must_use]
    pub fn svg(&self) -> Option<String> {
        let values = || self.groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value);
        let largest = values().filter(|value| value.is_finite()).reduce(f64::max)?;
        let full = self.full.unwrap_or(0.0).max(largest);
        let rows = values().count() as f64;
        let height = HEAD + GROUP * self.groups.len() as f64 + ROW * rows + 10.0;
        let title = escaped(&self.title);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"{INK}\" role=\"img\">\
             <title>{title}</title><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\
             <text x=\"12\" y=\"22\" font-size=\"16\" font-weight=\"600\">{title}</text>"
        );
        let names = self.names();
        let mut y = HEAD;
        for group in &self.groups {
            // Writing to a string cannot fail.
            let name = escaped(&group.name);
            let _ = write!(text, "<text x=\"12\" y=\"{}\" font-weight=\"600\">{name}</text>", y + 18.0);
            y += GROUP;
            for bar in &group.bars {
                let colour = names.iter().position(|name| *name == bar.name).unwrap_or_default();
                self.bar(&mut text, bar, STROKES[colour % STROKES.len()].0, full, y);
                y += ROW;
            }
        }
        let _ = write!(text, "<path d=\"M{LEFT} {HEAD}V{}\" stroke=\"#d9dde5\"/></svg>", height - 8.0);
        Some(text)
    }

    fn bar(&self, text: &mut String, bar: &Bar, colour: &str, full: f64, y: f64) {
        let share = if full > 0.0 && bar.value > 0.0 { (bar.value / full).min(1.0) } else { 0.0 };
        let (length, middle) = (share * (RIGHT - LEFT), y + ROW / 2.0);
        let _ = write!(
            text,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}<title>{}</title></text>\
             <rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{length:.2}\" height=\"{BAR}\" fill=\"{colour}\"/>\
             <text x=\"{:.2}\" y=\"{:.1}\">{}{}</text>",
            LEFT - 8.0,
            middle + 4.5,
            escaped(&shortened(&bar.name)),
            escaped(&bar.name),
            middle - BAR / 2.0,
            LEFT + length + 6.0,
            middle + 4.5,
            escaped(&value_label(bar.value)),
            escaped(&self.unit),
        );
    }

    /// Returns the names of the bars, each once.
    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for bar in self.groups.iter().flat_map(|group| &group.bars) {
            if !names.contains(&bar.name.as_str()) {
                names.push(&bar.name);
            }
        }
        names
    }
}

/// Formats a value with three significant digits.
fn value_label(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9);
    let rounded: f64 = format!("{value:.*}", decimals as usize).parse().unwrap_or(value);
    tick_label(rounded)
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    name.chars().take(NAME - 1).chain(['…']).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn chart() -> Bars {
        let bar = |name: &str, value| Bar { name: name.to_owned(), value };
        let group = |name: &str, bars| Group { name: name.to_owned(), bars };
        Bars {
            title: "a < b".to_owned(),
            unit: " %".to_owned(),
            full: Some(100.0),
            groups: vec![
                group("one & two", vec![bar("with", 12.345), bar("without", 50.0)]),
                group("three", vec![bar("a name that does not fit beside a bar", -3.0), bar("without", 0.0)]),
            ],
        }
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_text_is_escaped() {
        let svg = chart().svg().unwrap();
        let length = |value: f64| format!("width=\"{:.2}\"", value / 100.0 * (RIGHT - LEFT));
        for value in [12.345, 50.0] {
            assert!(svg.contains(&length(value)), "{value}: {svg}");
        }
        assert_eq!(svg.matches(&length(0.0)).count(), 2, "neither 0 nor a negative value has a length");
        assert!(svg.contains("12.3 %") && svg.contains("-3 %"));
        assert!(svg.contains("a &lt; b") && svg.contains("one &amp; two") && !svg.contains("one & two"));
        assert!(
            svg.contains("…<title>a name that does not fit"),
            "a long name is shortened, and whole in its title"
        );
        let opened = svg.matches('<').count() - svg.matches("</").count() - svg.matches("/>").count();
        assert_eq!(opened, svg.matches("</").count(), "every element is closed");
    }

    #[test]
    fn bars_of_one_name_have_one_colour() {
        let svg = chart().svg().unwrap();
        assert_eq!(svg.matches(&format!("fill=\"{}\"", STROKES[1].0)).count(), 2);
    }

    #[test]
    fn a_value_above_the_full_length_stretches_the_scale() {
        let mut chart = chart();
        chart.groups[0].bars[0].value = 200.0;
        assert!(chart.svg().unwrap().contains(&format!("width=\"{:.2}\"", 0.25 * (RIGHT - LEFT))));
        chart.groups.clear();
        assert_eq!(chart.svg(), None);
    }
}
