//! The values of a chart as a table and as CSV.

use crate::scene::Chart;

impl Chart {
    /// Returns one row for each horizontal value of any curve: that value, and the value of each
    /// curve there.
    ///
    /// # Shapes
    /// Each row has as many entries as the chart has series.
    #[must_use]
    pub fn rows(&self) -> Vec<(f64, Vec<Option<f64>>)> {
        let mut all_x: Vec<f64> = self.series.iter().flat_map(|series| &series.points).map(|p| p.0).collect();
        all_x.sort_by(f64::total_cmp);
        all_x.dedup();
        let at = |x: f64| {
            let value = |points: &[(f64, f64)]| points.iter().find(|point| point.0 == x).map(|point| point.1);
            (x, self.series.iter().map(|series| value(&series.points)).collect())
        };
        all_x.into_iter().map(at).collect()
    }

    /// Returns [`Chart::rows`] as comma-separated values (RFC 4180) with a header line. Numbers have the shortest
    /// digits that parse back to the same value.
    #[must_use]
    pub fn csv(&self) -> String {
        let names = std::iter::once(&self.x_label).chain(self.series.iter().map(|series| &series.name));
        let mut text = line(names.map(|name| quoted(name)));
        for (x, values) in self.rows() {
            let cells = values.into_iter().map(|value| value.map(|v| v.to_string()).unwrap_or_default());
            text.push_str(&line(std::iter::once(x.to_string()).chain(cells)));
        }
        text
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let mut text = cells.collect::<Vec<_>>().join(",");
    text.push('\n');
    text
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::scene::tests::chart;

    #[test]
    fn a_row_holds_the_value_of_every_curve_that_has_one_there() {
        let text = chart().csv();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "noise,own,none,\"other, less\"");
        assert_eq!(lines[1..], ["0,1,,", "1,8,,1", "2,inf,,", "4,2,,1"]);
    }
}
