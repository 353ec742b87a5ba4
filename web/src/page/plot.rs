//! A scene as SVG, with a cursor for pointer and keyboard and the same values as a table.

use leptos::prelude::*;
use web_sys::{KeyboardEvent, PointerEvent};

use crate::chart::{HEIGHT, Mark, Scene, Spec, WIDTH};
use crate::numbers::rounded_up;

/// A chart of ε.
#[component]
pub fn Plot(
    /// Unique in the page.
    id: &'static str,
    /// What it shows.
    title: &'static str,
    /// What to see in it.
    caption: &'static str,
    /// What the horizontal axis is.
    across: &'static str,
    /// The curve.
    #[prop(into)]
    spec: Signal<Spec>,
) -> impl IntoView {
    let scene = Memo::new(move |_| Scene::of(&spec.get()));
    let cursor = RwSignal::new(None::<usize>);
    let under_cursor = move || {
        let at = cursor.get()?;
        scene.with(|scene| scene.as_ref()?.marks.get(at).copied())
    };
    let node = NodeRef::<leptos::svg::Svg>::new();
    let on_pointer = move |event: PointerEvent| {
        let Some(svg) = node.get_untracked() else { return };
        let shown = svg.get_bounding_client_rect();
        let x = (f64::from(event.client_x()) - shown.left()) / shown.width().max(1.0) * WIDTH;
        cursor.set(scene.with_untracked(|scene| scene.as_ref().and_then(|scene| scene.nearest(x))));
    };
    let reading = move || under_cursor().map_or_else(|| caption.to_owned(), |mark| read(mark, across));
    view! {
        <figure class="plot">
            <figcaption id=format!("{id}-title")>
                <strong>{title}</strong>
                <span class="reading" aria-live="polite">{reading}</span>
            </figcaption>
            <svg
                node_ref=node
                viewBox=format!("0 0 {WIDTH} {HEIGHT}")
                role="img"
                tabindex="0"
                aria-labelledby=format!("{id}-title")
                on:keydown=move |event| move_cursor(&event, scene, cursor)
                on:pointermove=on_pointer
                on:pointerleave=move |_| cursor.set(None)
                on:blur=move |_| cursor.set(None)
            >
                {move || scene.get().map(|scene| drawing(scene, across))}
                {move || under_cursor().map(|mark| view! { <circle class="cursor" cx=mark.x cy=mark.y r="5"/> })}
            </svg>
            <details>
                <summary>"As a table"</summary>
                <div class="scroll" tabindex="0" role="region" aria-label=format!("{title}, as a table")>
                    <table>
                        <thead><tr><th scope="col">{across}</th><th scope="col">"ε at most"</th></tr></thead>
                        <tbody>{move || scene.get().map(|scene| scene.marks.into_iter().map(row).collect_view())}</tbody>
                    </table>
                </div>
            </details>
        </figure>
    }
}

fn move_cursor(event: &KeyboardEvent, scene: Memo<Option<Scene>>, cursor: RwSignal<Option<usize>>) {
    let marks = scene.with_untracked(|scene| scene.as_ref().map_or(0, |scene| scene.marks.len()));
    let last = marks.saturating_sub(1);
    let at = cursor.get_untracked().unwrap_or(0).min(last);
    let moved = match event.key().as_str() {
        "ArrowLeft" => at.saturating_sub(1),
        "ArrowRight" => (at + 1).min(last),
        "Home" => 0,
        "End" => last,
        _ => return,
    };
    event.prevent_default();
    cursor.set(Some(moved));
}

fn drawing(scene: Scene, across: &'static str) -> impl IntoView {
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
    view! {
        {columns.collect_view()}
        {rows.collect_view()}
        <path class="curve" d=scene.path/>
        {scene.here.map(|mark| view! { <circle class="here" cx=mark.x cy=mark.y r="6"/> })}
        <text class="axis" x=left.midpoint(right) y=HEIGHT - 6.0 text-anchor="middle">{across}</text>
        <text class="axis" x="14" y=top.midpoint(bottom) text-anchor="middle">"ε"</text>
    }
}

fn row(mark: Mark) -> impl IntoView {
    let (x, y) = mark.values;
    view! { <tr><td>{rounded_up(x, 4)}</td><td>{rounded_up(y, 4)}</td></tr> }
}

fn read(mark: Mark, across: &str) -> String {
    let (x, y) = mark.values;
    format!("ε ≤ {} at {across} {}", rounded_up(y, 4), rounded_up(x, 4))
}
