//! A chart on the page: an SVG with a cursor for pointer and keyboard, a table of its values, and downloads.

use chart::{Chart, Frame, HEIGHT, Mark, Scene, WIDTH, tick_label};
use sycamore_reactive::{ReadSignal, Signal, create_selector, create_signal, untrack};
use wasm_bindgen::JsCast;
use web_sys::{KeyboardEvent, PointerEvent};

use super::dom::{Content, El, button, el, scrollable, svg, table_row};
use super::downloads;
use super::state::PlannerState;
use crate::numbers::{rounded_down, rounded_up};

/// The safe side of a chart's values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Rounding of upper bounds and noise.
    Up,
    /// Rounding of lower bounds.
    Down,
}

impl Rounding {
    fn format(self, value: f64) -> String {
        match self {
            Self::Up => rounded_up(value, 4),
            Self::Down => rounded_down(value, 4),
        }
    }
}

/// The fixed properties of a chart.
#[derive(Clone, Copy)]
pub(crate) struct ChartView {
    /// Unique on the page, and the name of its downloads.
    pub(crate) id: &'static str,
    /// Description of the chart.
    pub(crate) caption: &'static str,
    pub(crate) rounding: Rounding,
    /// Action of a click or Enter on a point, given the point's x value.
    pub(crate) choose: Option<fn(PlannerState, f64)>,
}

/// A position on the first curve of a chart, and that chart.
#[derive(Clone, Copy)]
struct Cursor {
    state: PlannerState,
    view: ChartView,
    chart: ReadSignal<Chart>,
    scene: ReadSignal<Option<Scene>>,
    /// Index of a point.
    index: Signal<Option<usize>>,
}

impl Cursor {
    fn mark(&self) -> Option<Mark> {
        let index = self.index.get()?;
        self.scene.with(|scene| scene.as_ref()?.marks().get(index).copied())
    }

    fn move_to(&self, index: Option<usize>) {
        if self.index.get_untracked() != index {
            self.index.set(index);
            if let Some(mark) = untrack(|| self.mark()) {
                self.state.announce(self.chart.with_untracked(|chart| self.reading(mark, chart)));
            }
        }
    }

    /// Moves to the point nearest to the pointer.
    fn follow_pointer(&self, event: &PointerEvent) {
        let Some(drawing) = event.current_target().and_then(|it| it.dyn_into::<web_sys::Element>().ok())
        else {
            return;
        };
        let shown = drawing.get_bounding_client_rect();
        let x = (f64::from(event.client_x()) - shown.left()) / shown.width().max(1.0) * WIDTH;
        self.move_to(self.scene.with_untracked(|scene| scene.as_ref().and_then(|scene| scene.nearest(x))));
    }

    /// Applies the point under the cursor to the plan.
    fn choose(&self) {
        if let (Some(choose), Some(mark)) = (self.view.choose, untrack(|| self.mark())) {
            choose(self.state, mark.values.0);
        }
    }

    fn follow_key(&self, event: &KeyboardEvent) {
        let marks = self.scene.with_untracked(|scene| scene.as_ref().map_or(0, |scene| scene.marks().len()));
        let last = marks.saturating_sub(1);
        let index = self.index.get_untracked().unwrap_or(0).min(last);
        let moved = match event.key().as_str() {
            "ArrowLeft" => index.saturating_sub(1),
            "ArrowRight" => (index + 1).min(last),
            "Home" => 0,
            "End" => last,
            "Enter" if self.view.choose.is_some() => {
                event.prevent_default();
                return self.choose();
            }
            _ => return,
        };
        event.prevent_default();
        self.move_to(Some(moved));
    }

    /// Describes the values at a point in words.
    fn reading(&self, mark: Mark, chart: &Chart) -> String {
        let (x, y) = mark.values;
        format!("{} {} at {} {}", chart.y_label, self.view.rounding.format(y), chart.x_label, tick_label(x))
    }
}

/// Builds a chart with its caption, its table and its downloads. It is grey while `dimmed` holds.
pub(crate) fn chart_figure(
    state: PlannerState,
    view: ChartView,
    chart: ReadSignal<Chart>,
    dimmed: ReadSignal<bool>,
) -> El {
    let chart = create_selector(move || chart.get_clone());
    let scene = create_selector(move || chart.with(Scene::new));
    let cursor = Cursor { state, view, chart, scene, index: create_signal(None) };
    let reading = move || match cursor.mark() {
        Some(mark) => chart.with(|chart| cursor.reading(mark, chart)),
        None => view.caption.to_owned(),
    };
    let title = format!("{}-title", view.id);
    let caption = el("figcaption")
        .id(&title)
        .child(el("strong").dynamic_text(move || chart.with(|chart| chart.title.clone())))
        .child(el("span").class("reading").dynamic_text(reading));
    let drawing = svg("svg")
        .attr("viewBox", &format!("0 0 {WIDTH} {HEIGHT}"))
        .attr("role", "img")
        .attr("tabindex", "0")
        .attr("aria-labelledby", &title)
        .on("keydown", move |event| cursor.follow_key(event.unchecked_ref()))
        .on("pointermove", move |event| cursor.follow_pointer(event.unchecked_ref()))
        .on("click", move |_| cursor.choose())
        .on("pointerleave", move |_| cursor.move_to(None))
        .on("blur", move |_| cursor.move_to(None))
        .dynamic(move || {
            scene.with(|scene| chart.with(|chart| scene.as_ref().map(|scene| drawing(scene, chart))))
        })
        .dynamic(move || cursor.mark().map(|mark| circle("cursor", mark, 5.0)));
    el("figure")
        .class("plot")
        .toggle_class("movable", move || view.choose.is_some())
        .id(view.id)
        .toggle_class("stale", move || dimmed.get())
        .child(caption)
        .child(drawing)
        .dynamic(move || scene.with(|scene| scene.as_ref().and_then(legend)))
        .child(
            el("details")
                .child(el("summary").child("Table and downloads"))
                .child(download_buttons(cursor))
                .child(table(cursor)),
        )
}

fn download_buttons(cursor: Cursor) -> El {
    let Cursor { chart, scene, view: ChartView { id, .. }, .. } = cursor;
    let svg_text = move || {
        let chart = chart.get_clone_untracked();
        scene.with_untracked(|scene| scene.as_ref().map(|scene| scene.svg(&chart)))
    };
    // A browser that refuses a download reports it itself.
    let save_svg = move |_| {
        let _ = svg_text().and_then(|text| downloads::save(&format!("{id}.svg"), "image/svg+xml", &text));
    };
    let save_png = move |_| {
        let _ = svg_text().and_then(|text| downloads::save_png(&format!("{id}.png"), &text));
    };
    let save_csv = move |_| {
        let _ = downloads::save(&format!("{id}.csv"), "text/csv", &chart.with_untracked(Chart::csv));
    };
    let undrawn = move || scene.with(Option::is_none);
    el("div")
        .class("files")
        .child(button("SVG", save_svg).class("as-svg").dynamic_flag("disabled", undrawn))
        .child(button("PNG", save_png).class("as-png").dynamic_flag("disabled", undrawn))
        .child(button("CSV", save_csv).class("as-csv").dynamic_flag("disabled", undrawn))
}

fn table(cursor: Cursor) -> El {
    let Cursor { chart, view: ChartView { caption, rounding, .. }, .. } = cursor;
    let head = move || {
        chart.with(|chart| {
            let names = chart.series.iter().map(|series| &series.name);
            let cell = |name: &String| el("th").attr("scope", "col").child(name.clone());
            std::iter::once(&chart.x_label).chain(names).map(cell).fold(el("tr"), El::child)
        })
    };
    let rows = move || {
        let row = |(x, values): (f64, Vec<Option<f64>>)| {
            let cells = values.into_iter().map(|value| value.map(|value| rounding.format(value)).into());
            let at_cursor = move || cursor.mark().is_some_and(|mark| mark.values.0 == x);
            table_row(tick_label(x), cells).toggle_class("at-cursor", at_cursor)
        };
        chart.with(Chart::rows).into_iter().map(row).collect::<Vec<_>>()
    };
    let table = el("table").child(el("caption").child(caption));
    let table = table.child(el("thead").dynamic(head)).child(el("tbody").dynamic(rows));
    let label = move || Some(chart.with(|chart| format!("Table: {}", chart.title)));
    scrollable("", table).dynamic_attr("aria-label", label)
}

fn drawing(scene: &Scene, chart: &Chart) -> Content {
    let Frame { left, top, right, bottom } = scene.frame;
    let line = |from: [f64; 2], to: [f64; 2]| {
        let line = svg("line").class("grid").attr_f64("x1", from[0]).attr_f64("y1", from[1]);
        line.attr_f64("x2", to[0]).attr_f64("y2", to[1])
    };
    let text = |class: &str, at: [f64; 2], anchor: &str, text: String| {
        let place = svg("text").class(class).attr_f64("x", at[0]).attr_f64("y", at[1]);
        place.attr("text-anchor", anchor).child(text)
    };
    let mut all = Vec::new();
    for tick in &scene.x_ticks {
        all.push(line([tick.at, top], [tick.at, bottom]));
        all.push(text("tick", [tick.at, bottom + 22.0], "middle", tick.text.clone()));
    }
    for tick in &scene.y_ticks {
        all.push(line([left, tick.at], [right, tick.at]));
        all.push(text("tick", [left - 8.0, tick.at + 6.0], "end", tick.text.clone()));
    }
    all.extend(scene.lines.iter().enumerate().map(|(index, line)| curve(index, &line.path)));
    all.extend(scene.highlight.map(|mark| circle("highlight", mark, 6.0)));
    let [x_middle, y_middle] = [left.midpoint(right), top.midpoint(bottom)];
    all.push(text("axis", [x_middle, HEIGHT - 6.0], "middle", chart.x_label.clone()));
    let y_label = text("axis", [0.0, 0.0], "middle", chart.y_label.clone());
    all.push(y_label.attr("transform", &format!("translate(16 {y_middle}) rotate(-90)")));
    all.into()
}

fn curve(index: usize, path: &str) -> El {
    let line = svg("path").class(&format!("curve c{index}"));
    line.attr("stroke-dasharray", Scene::dash(index)).attr("d", path)
}

fn circle(class: &str, mark: Mark, radius: f64) -> El {
    svg("circle").class(class).attr_f64("cx", mark.x).attr_f64("cy", mark.y).attr_f64("r", radius)
}

/// Builds the names of the curves, each with a sample of its stroke, if there are several.
fn legend(scene: &Scene) -> Option<El> {
    let item = |(index, line): (usize, &chart::Line)| {
        let sample = svg("svg").attr("viewBox", "0 0 36 8").attr("aria-hidden", "true");
        el("li").child(sample.child(curve(index, "M0 4h36"))).child(line.name.clone())
    };
    let several = scene.lines.len() > 1;
    several.then(|| scene.lines.iter().enumerate().map(item).fold(el("ul").class("legend"), El::child))
}
