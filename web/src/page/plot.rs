//! A scene as SVG, with a cursor for pointer and keyboard, the same values as a table, and all of it as files.

use chart::{Chart, HEIGHT, Line, Mark, Scene, WIDTH, label};
use leptos::prelude::*;
use web_sys::{KeyboardEvent, PointerEvent};

use super::desk::Desk;
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

/// A chart.
#[component]
pub fn Plot(
    /// Unique in the page; also the name of its files.
    id: &'static str,
    /// What to see in it.
    caption: &'static str,
    /// To which side values are rounded.
    shown: Shown,
    /// What to draw.
    #[prop(into)]
    chart: Signal<Chart>,
    /// Whether it belongs to an earlier plan.
    #[prop(into)]
    stale: Signal<bool>,
) -> impl IntoView {
    let chart = Memo::new(move |_| chart.get());
    let scene = Memo::new(move |_| chart.with(Scene::of));
    let cursor = Cursor { desk: expect_context(), chart, scene, at: RwSignal::new(None), shown };
    let node = NodeRef::<leptos::svg::Svg>::new();
    let on_pointer = move |event: PointerEvent| {
        let Some(svg) = node.get_untracked() else { return };
        let shown = svg.get_bounding_client_rect();
        let x = (f64::from(event.client_x()) - shown.left()) / shown.width().max(1.0) * WIDTH;
        cursor.put(scene.with_untracked(|scene| scene.as_ref().and_then(|scene| scene.nearest(x))));
    };
    let reading = move || match cursor.mark() {
        Some(mark) => chart.with(|chart| read(mark, chart, shown)),
        None => caption.to_owned(),
    };
    view! {
        <figure class="plot" id=id class:stale=move || stale.get()>
            <figcaption id=format!("{id}-title")>
                <strong>{move || chart.with(|chart| chart.title.clone())}</strong>
                <span class="reading">{reading}</span>
            </figcaption>
            <svg
                node_ref=node
                viewBox=format!("0 0 {WIDTH} {HEIGHT}")
                role="img"
                tabindex="0"
                aria-labelledby=format!("{id}-title")
                on:keydown=move |event| cursor.key(&event)
                on:pointermove=on_pointer
                on:pointerleave=move |_| cursor.put(None)
                on:blur=move |_| cursor.put(None)
            >
                {move || scene.get().map(|scene| chart.with_untracked(|chart| drawing(scene, chart)))}
                {move || cursor.mark().map(|mark| view! { <circle class="cursor" cx=mark.x cy=mark.y r="5"/> })}
            </svg>
            {move || scene.with(|scene| scene.as_ref().map(legend))}
            <Table id caption cursor/>
        </figure>
    }
}

/// The values, and the chart as files.
#[component]
fn Table(id: &'static str, caption: &'static str, cursor: Cursor) -> impl IntoView {
    let Cursor { chart, scene, shown, .. } = cursor;
    let svg = move || {
        chart.with_untracked(|chart| {
            scene.with_untracked(|scene| scene.as_ref().map(|scene| scene.svg(chart)))
        })
    };
    // A browser that refuses a download says so itself.
    let as_svg = move |_| {
        let _ = svg().and_then(|text| files::save(&format!("{id}.svg"), "image/svg+xml", &text));
    };
    let as_png = move |_| {
        let _ = svg().and_then(|text| files::save_png(&format!("{id}.png"), &text));
    };
    let as_csv = move |_| {
        let _ = files::save(&format!("{id}.csv"), "text/csv", &chart.with_untracked(Chart::csv));
    };
    let title = move || chart.with(|chart| format!("{}, as a table", chart.title));
    let under = move || cursor.mark().map(|mark| mark.values.0);
    let head = move || {
        chart.with(|chart| {
            let names =
                chart.series.iter().map(|series| view! { <th scope="col">{series.name.clone()}</th> });
            view! { <tr><th scope="col">{chart.across.clone()}</th>{names.collect_view()}</tr> }
        })
    };
    let rows = move || {
        let row = |(x, values): (f64, Vec<Option<f64>>)| {
            let cells = values.into_iter().map(|value| view! { <td>{value.map(|v| shown.digits(v))}</td> });
            let marked = move || under() == Some(x);
            view! { <tr class:under=marked><td>{label(x)}</td>{cells.collect_view()}</tr> }
        };
        chart.with(Chart::rows).into_iter().map(row).collect_view()
    };
    view! {
        <details>
            <summary>"Table and files"</summary>
            <div class="files">
                <button type="button" class="as-svg" on:click=as_svg>"SVG"</button>
                <button type="button" class="as-png" on:click=as_png>"PNG"</button>
                <button type="button" class="as-csv" on:click=as_csv>"CSV"</button>
            </div>
            <div class="scroll" tabindex="0" role="region" aria-label=title>
                <table><caption>{caption}</caption><thead>{head}</thead><tbody>{rows}</tbody></table>
            </div>
        </details>
    }
}

fn drawing(scene: Scene, chart: &Chart) -> impl IntoView + use<> {
    let [left, top, right, bottom] = scene.frame;
    let columns = scene.across.into_iter().map(|tick| {
        view! {
            <line class="grid" x1=tick.at x2=tick.at y1=top y2=bottom/>
            <text class="tick" x=tick.at y=bottom + 22.0 text-anchor="middle">{tick.text}</text>
        }
    });
    let rows = scene.upward.into_iter().map(|tick| {
        view! {
            <line class="grid" x1=left x2=right y1=tick.at y2=tick.at/>
            <text class="tick" x=left - 8.0 y=tick.at + 6.0 text-anchor="end">{tick.text}</text>
        }
    });
    let curves = scene.lines.into_iter().enumerate().map(|(at, line)| {
        let Line { path, .. } = line;
        view! { <path class=format!("curve c{at}") stroke-dasharray=Scene::dash(at) d=path/> }
    });
    let middle = top.midpoint(bottom);
    view! {
        {columns.collect_view()}
        {rows.collect_view()}
        {curves.collect_view()}
        {scene.here.map(|mark| view! { <circle class="here" cx=mark.x cy=mark.y r="6"/> })}
        <text class="axis" x=left.midpoint(right) y=HEIGHT - 6.0 text-anchor="middle">{chart.across.clone()}</text>
        <text class="axis" transform=format!("translate(16 {middle}) rotate(-90)") text-anchor="middle">
            {chart.upward.clone()}
        </text>
    }
}

/// Names of the curves beside a piece of their stroke, where there are several.
fn legend(scene: &Scene) -> impl IntoView + use<> {
    let names: Vec<String> = scene.lines.iter().map(|line| line.name.clone()).collect();
    (names.len() > 1).then(|| {
        let items = names.into_iter().enumerate().map(|(at, name)| {
            view! {
                <li>
                    <svg viewBox="0 0 36 8" aria-hidden="true">
                        <path class=format!("curve c{at}") stroke-dasharray=Scene::dash(at) d="M0 4h36"/>
                    </svg>
                    {name}
                </li>
            }
        });
        view! { <ul class="legend">{items.collect_view()}</ul> }
    })
}

fn read(mark: Mark, chart: &Chart, shown: Shown) -> String {
    let (x, y) = mark.values;
    format!("{} {} at {} {}", chart.upward, shown.digits(y), chart.across, label(x))
}
