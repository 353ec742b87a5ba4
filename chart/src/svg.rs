//! A scene as a self-contained SVG file in light colours, with title, axes and legend.

use std::fmt::Write;

use crate::scene::{Chart, Frame, HEIGHT, Line, Scene, WIDTH};

/// Colours that colour-blind readers can distinguish (Okabe & Ito 2008), and grey. Each has its own dash, so
/// that no curve is distinguished by colour alone. Further curves have the next dash in the same colours.
pub(crate) const STROKES: [(&str, &str); 8] = [
    ("#0072b2", ""),
    ("#d55e00", "8 4"),
    ("#009e73", "2 4"),
    ("#cc79a7", "10 3 2 3"),
    ("#56b4e9", "5 5"),
    ("#000000", "1 3"),
    ("#e69f00", "14 4"),
    ("#6b7280", "6 2 2 2 2 2"),
];
const HEAD: f64 = 34.0;
const LEGEND_LINE: f64 = 22.0;
pub(crate) const INK: &str = "#171b24";

impl Scene {
    /// Returns the `stroke-dasharray` of the curve at `index`.
    #[must_use]
    pub fn dash(index: usize) -> &'static str {
        STROKES[(index + index / STROKES.len()) % STROKES.len()].1
    }

    /// Returns the text of the SVG file. `chart` is the chart that was laid out.
    #[must_use]
    pub fn svg(&self, chart: &Chart) -> String {
        let legend_height = if self.lines.len() > 1 { LEGEND_LINE * self.lines.len() as f64 } else { 0.0 };
        let height = HEIGHT + HEAD + legend_height;
        let title = escaped(&chart.title);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"{INK}\" role=\"img\">\
             <title>{title}</title><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\
             <text x=\"12\" y=\"22\" font-size=\"16\" font-weight=\"600\">{title}</text>\
             <g transform=\"translate(0 {HEAD})\">"
        );
        self.axes(chart, &mut text);
        for (index, line) in self.lines.iter().enumerate() {
            stroke(&mut text, index, &line.path);
        }
        if let Some(highlight) = self.highlight {
            push(
                &mut text,
                format_args!(
                    "<circle cx=\"{:.2}\" cy=\"{:.2}\" r=\"5\" fill=\"#ffffff\" stroke=\"{INK}\" stroke-width=\"2\"/>",
                    highlight.x, highlight.y
                ),
            );
        }
        if legend_height > 0.0 {
            legend(&self.lines, self.frame.left, &mut text);
        }
        text.push_str("</g></svg>");
        text
    }

    fn axes(&self, chart: &Chart, text: &mut String) {
        let Frame { left, top, right, bottom } = self.frame;
        for tick in &self.x_ticks {
            let (x, baseline, name) = (tick.at, bottom + 18.0, escaped(&tick.text));
            push(
                text,
                format_args!(
                    "<path d=\"M{x:.2} {top}V{bottom}\" stroke=\"#d9dde5\"/>\
                     <text x=\"{x:.2}\" y=\"{baseline}\" text-anchor=\"middle\">{name}</text>"
                ),
            );
        }
        for tick in &self.y_ticks {
            let (y, end, baseline, name) = (tick.at, left - 8.0, tick.at + 4.0, escaped(&tick.text));
            push(
                text,
                format_args!(
                    "<path d=\"M{left} {y:.2}H{right}\" stroke=\"#d9dde5\"/>\
                     <text x=\"{end}\" y=\"{baseline:.2}\" text-anchor=\"end\">{name}</text>"
                ),
            );
        }
        let (x_middle, baseline, y_middle) = (left.midpoint(right), HEIGHT - 14.0, top.midpoint(bottom));
        push(
            text,
            format_args!(
                "<text x=\"{x_middle}\" y=\"{baseline}\" text-anchor=\"middle\">{}</text>\
                 <text transform=\"translate(16 {y_middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
                escaped(&chart.x_label),
                escaped(&chart.y_label)
            ),
        );
    }
}

/// Draws one line of the legend for each curve.
fn legend(lines: &[Line], left: f64, text: &mut String) {
    for (index, line) in lines.iter().enumerate() {
        let y = HEIGHT + LEGEND_LINE * index as f64 + 6.0;
        stroke(text, index, &format!("M{left} {y}h36"));
        let name = escaped(&line.name);
        push(text, format_args!("<text x=\"{}\" y=\"{}\">{name}</text>", left + 46.0, y + 4.0));
    }
}

fn stroke(text: &mut String, index: usize, path: &str) {
    let (colour, dash) = (STROKES[index % STROKES.len()].0, Scene::dash(index));
    push(
        text,
        format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>"
        ),
    );
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(part);
}

/// Escapes text for XML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use crate::scene::tests::chart;
    use crate::{Scene, Series};

    #[test]
    fn every_element_is_closed_text_is_escaped_and_each_curve_has_its_own_dash() {
        let mut chart = chart();
        chart.series[1] = Series { name: "third".into(), points: vec![(1.0, 3.0), (4.0, 3.0)] };
        let svg = Scene::new(&chart).unwrap().svg(&chart);
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && !svg.contains("a < b"));
        let opened = svg.matches('<').count() - svg.matches("</").count() - svg.matches("/>").count();
        assert_eq!(opened, svg.matches("</").count(), "every element is closed");
        for dash in ["stroke-dasharray=\"\"", "stroke-dasharray=\"8 4\"", "stroke-dasharray=\"2 4\""] {
            assert_eq!(svg.matches(dash).count(), 2, "curve and legend have {dash}");
        }
    }

    #[test]
    fn many_curves_differ_in_colour_or_dash() {
        let mut chart = chart();
        let curve =
            |at: u32| Series { name: at.to_string(), points: vec![(1.0, 3.0), (4.0, f64::from(at + 3))] };
        chart.series = (0..20).map(curve).collect();
        let svg = Scene::new(&chart).unwrap().svg(&chart);
        let strokes =
            svg.split("<path ").filter_map(|path| path.split_once("fill=\"none\"")).map(|(_, rest)| rest);
        let mut strokes: Vec<&str> =
            strokes.filter_map(|rest| rest.split_once("/>")).map(|(stroke, _)| stroke).collect();
        assert_eq!(strokes.len(), 40, "curves and legend");
        strokes.sort_unstable();
        strokes.dedup();
        assert_eq!(strokes.len(), 20);
    }

    #[test]
    fn one_curve_needs_no_legend() {
        let mut chart = chart();
        chart.series.truncate(1);
        let svg = Scene::new(&chart).unwrap().svg(&chart);
        assert!(!svg.contains(">own<"));
    }
}
