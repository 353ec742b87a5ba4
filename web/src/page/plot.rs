//! A scene as SVG, with a cursor for pointer and keyboard, the same values as a table, and all of it as files.

use chart::{Chart, Frame, HEIGHT, Mark, Scene, WIDTH, tick_label};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{KeyboardEvent, PointerEvent};

use super::desk::Desk;
use super::dom::{Content, El, button, el, row, scroll, svg};
use super::files;
use crate::numbers::{rounded_down, rounded_up};

/// The side to which a chart's values are rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Up: upper bounds and noise.
    AtMost,
    /// Down: lower bounds.
    AtLeast,
}

impl Shown {
    fn digits(self, value: f64) -> String {
        match self {
            Self::AtMost => rounded_up(value, 4),
            Self::AtLeast => rounded_down(value, 4),
        }
    }
}

/// Where the cursor is, and what it moves over.
#[derive(Clone, Copy)]
struct Cursor {
    desk: Desk,
    chart: Memo<Chart>,
    scene: Memo<Option<Scene>>,
    at: RwSignal<Option<usize>>,
    shown: Shown,
}

impl Cursor {
    fn mark(&self) -> Option<Mark> {
        let at = self.at.get()?;
        self.scene.with(|scene| scene.as_ref()?.marks().get(at).copied())
    }

    fn put(&self, at: Option<usize>) {
        if self.at.get_untracked() != at {
            self.at.set(at);
            if let Some(mark) = untrack(|| self.mark()) {
                self.desk.announce(self.chart.with_untracked(|chart| read(mark, chart, self.shown)));
            }
        }
    }

    /// To the point nearest to the pointer.
    fn point(&self, event: &PointerEvent) {
        let Some(drawing) = event.current_target().and_then(|it| it.dyn_into::<web_sys::Element>().ok())
        else {
            return;
        };
        let shown = drawing.get_bounding_client_rect();
        let x = (f64::from(event.client_x()) - shown.left()) / shown.width().max(1.0) * WIDTH;
        self.put(self.scene.with_untracked(|scene| scene.as_ref().and_then(|scene| scene.nearest(x))));
    }

    fn key(&self, event: &KeyboardEvent) {
        let marks = self.scene.with_untracked(|scene| scene.as_ref().map_or(0, |scene| scene.marks().len()));
        let last = marks.saturating_sub(1);
        let at = self.at.get_untracked().unwrap_or(0).min(last);
        let moved = match event.key().as_str() {
            "ArrowLeft" => at.saturating_sub(1),
            "ArrowRight" => (at + 1).min(last),
            "Home" => 0,
            "End" => last,
            _ => return,
        };
        event.prevent_default();
        self.put(Some(moved));
    }
}

/// What a chart is called and how it is read.
#[derive(Clone, Copy)]
pub struct Plot {
    /// Unique in the page; also the name of its files.
    pub id: &'static str,
    /// What to see in it.
    pub caption: &'static str,
    /// To which side values are rounded.
    pub shown: Shown,
}

/// A chart, `dim` where it belongs to an earlier plan.
pub fn plot(desk: Desk, of: Plot, chart: Signal<Chart>, dim: Signal<bool>) -> El {
    let Plot { id, caption, shown } = of;
    let chart = Memo::new(move |_| chart.get());
    let scene = Memo::new(move |_| chart.with(Scene::new));
    let cursor = Cursor { desk, chart, scene, at: RwSignal::new(None), shown };
    let reading = move || match cursor.mark() {
        Some(mark) => chart.with(|chart| read(mark, chart, shown)),
        None => caption.to_owned(),
    };
    let title = format!("{id}-title");
    let caption = el("figcaption")
        .id(&title)
        .add(el("strong").text(move || chart.with(|chart| chart.title.clone())))
        .add(el("span").class("reading").text(reading));
    let drawing = svg("svg")
        .attr("viewBox", &format!("0 0 {WIDTH} {HEIGHT}"))
        .attr("role", "img")
        .attr("tabindex", "0")
        .attr("aria-labelledby", &title)
        .on("keydown", move |event| cursor.key(event.unchecked_ref()))
        .on("pointermove", move |event| cursor.point(event.unchecked_ref()))
        .on("pointerleave", move |_| cursor.put(None))
        .on("blur", move |_| cursor.put(None))
        .live(move || {
            scene.with(|scene| chart.with(|chart| scene.as_ref().map(|scene| drawing(scene, chart))))
        })
        .live(move || cursor.mark().map(|mark| circle("cursor", mark, 5.0)));
    el("figure")
        .class("plot")
        .id(id)
        .marked("stale", move || dim.get())
        .add(caption)
        .add(drawing)
        .live(move || scene.with(|scene| scene.as_ref().and_then(legend)))
        .add(table(of, cursor))
}

/// The values, and the chart as files.
fn table(Plot { id, caption, shown }: Plot, cursor: Cursor) -> El {
    let Cursor { chart, scene, .. } = cursor;
    let drawn = move || {
        let chart = chart.read_untracked();
        scene.with_untracked(|scene| scene.as_ref().map(|scene| scene.svg(&chart)))
    };
    // A browser that refuses a download says so itself.
    let as_svg = move |_| {
        let _ = drawn().and_then(|text| files::save(&format!("{id}.svg"), "image/svg+xml", &text));
    };
    let as_png = move |_| {
        let _ = drawn().and_then(|text| files::save_png(&format!("{id}.png"), &text));
    };
    let as_csv = move |_| {
        let _ = files::save(&format!("{id}.csv"), "text/csv", &chart.with_untracked(Chart::csv));
    };
    let head = move || {
        chart.with(|chart| {
            let names = chart.series.iter().map(|series| &series.name);
            let head = |name: &String| el("th").attr("scope", "col").add(name.clone());
            std::iter::once(&chart.x_label).chain(names).map(head).fold(el("tr"), El::add)
        })
    };
    let values = move || {
        let line = |(x, values): (f64, Vec<Option<f64>>)| {
            let cells = values.into_iter().map(|value| value.map(|value| shown.digits(value)).into());
            row(tick_label(x), cells)
                .marked("under", move || cursor.mark().is_some_and(|mark| mark.values.0 == x))
        };
        chart.with(Chart::rows).into_iter().map(line).collect::<Vec<_>>()
    };
    let table = el("table").add(el("caption").add(caption));
    let table = table.add(el("thead").live(head)).add(el("tbody").live(values));
    let region = scroll("", table);
    let region = region
        .attr_of("aria-label", move || Some(chart.with(|chart| format!("{}, as a table", chart.title))));
    el("details")
        .add(el("summary").add("Table and files"))
        .add(
            el("div")
                .class("files")
                .add(button("SVG", as_svg).class("as-svg"))
                .add(button("PNG", as_png).class("as-png"))
                .add(button("CSV", as_csv).class("as-csv")),
        )
        .add(region)
}

fn drawing(scene: &Scene, chart: &Chart) -> Content {
    let Frame { left, top, right, bottom } = scene.frame;
    let line = |from: [f64; 2], to: [f64; 2]| {
        svg("line").class("grid").size("x1", from[0]).size("y1", from[1]).size("x2", to[0]).size("y2", to[1])
    };
    let text = |class: &str, at: [f64; 2], anchor: &str, text: String| {
        svg("text").class(class).size("x", at[0]).size("y", at[1]).attr("text-anchor", anchor).add(text)
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
    all.extend(scene.lines.iter().enumerate().map(|(at, line)| curve(at, &line.path)));
    all.extend(scene.highlight.map(|mark| circle("here", mark, 6.0)));
    let [middle, centre] = [left.midpoint(right), top.midpoint(bottom)];
    all.push(text("axis", [middle, HEIGHT - 6.0], "middle", chart.x_label.clone()));
    let upward = text("axis", [0.0, 0.0], "middle", chart.y_label.clone());
    all.push(upward.attr("transform", &format!("translate(16 {centre}) rotate(-90)")));
    all.into()
}

fn curve(at: usize, path: &str) -> El {
    svg("path").class(&format!("curve c{at}")).attr("stroke-dasharray", Scene::dash(at)).attr("d", path)
}

fn circle(class: &str, mark: Mark, radius: f64) -> El {
    svg("circle").class(class).size("cx", mark.x).size("cy", mark.y).size("r", radius)
}

/// Names of the curves beside a piece of their stroke, where there are several.
fn legend(scene: &Scene) -> Option<El> {
    let item = |(at, line): (usize, &chart::Line)| {
        let piece = svg("svg").attr("viewBox", "0 0 36 8").attr("aria-hidden", "true");
        el("li").add(piece.add(curve(at, "M0 4h36"))).add(line.name.clone())
    };
    let several = scene.lines.len() > 1;
    several.then(|| scene.lines.iter().enumerate().map(item).fold(el("ul").class("legend"), El::add))
}

fn read(mark: Mark, chart: &Chart, shown: Shown) -> String {
    let (x, y) = mark.values;
    format!("{} {} at {} {}", chart.y_label, shown.digits(y), chart.x_label, tick_label(x))
}
