//! Builds DOM elements that follow Sycamore's signals.
//!
//! Frameworks encode the markup of a view in its type, so each view of the page would have its own machine code. That code
//! was most of the download. Here a few functions build every element.

use std::borrow::Cow;

use sycamore_reactive::{create_effect, create_selector, untrack};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Element, Event, EventTarget, HtmlInputElement, Node};

use super::browser::{document, handle};

/// An element.
#[derive(Clone)]
pub(crate) struct El(pub(crate) Element);

/// Children of an element.
pub(crate) enum Content {
    /// Nothing.
    Nothing,
    /// A text node.
    Text(Cow<'static, str>),
    /// An element.
    One(El),
    /// Several children, in order.
    Many(Vec<Content>),
}

/// Creates an HTML element.
pub(crate) fn el(tag: &str) -> El {
    #[expect(clippy::expect_used, reason = "the tags are literals of this crate")]
    let element = document().create_element(tag).expect("an HTML tag");
    El(element)
}

/// Creates an SVG element.
pub(crate) fn svg(tag: &str) -> El {
    #[expect(clippy::expect_used, reason = "the tags are literals of this crate")]
    let element = document().create_element_ns(Some("http://www.w3.org/2000/svg"), tag).expect("an SVG tag");
    El(element)
}

/// Builds a row of a table: its header, then its cells.
pub(crate) fn table_row(head: impl Into<Content>, cells: impl IntoIterator<Item = Content>) -> El {
    let row = el("tr").child(el("th").attr("scope", "row").child(head));
    cells.into_iter().fold(row, |row, cell| row.child(el("td").child(cell)))
}

/// Builds the header row of a table. An empty name gives a cell that is no header.
pub(crate) fn table_head(names: &[&'static str]) -> El {
    let head = |name: &&'static str| match *name {
        "" => el("td"),
        name => el("th").attr("scope", "col").child(name),
    };
    el("thead").child(names.iter().map(head).fold(el("tr"), El::child))
}

/// Builds a button that calls `on_click`.
pub(crate) fn button(label: impl Into<Content>, on_click: impl FnMut(Event) + 'static) -> El {
    el("button").attr("type", "button").child(label).on("click", on_click)
}

/// Builds a section with a heading.
pub(crate) fn section(class: &str, title_id: &'static str, title: &'static str) -> El {
    let named = el("section").class(class).attr("aria-labelledby", title_id);
    named.child(el("h2").id(title_id).child(title))
}

/// Builds a region that scrolls when its content is wider than the page. The keyboard reaches it.
pub(crate) fn scrollable(label: &str, content: El) -> El {
    let region = el("div").class("scroll").attr("tabindex", "0").attr("role", "region");
    region.attr("aria-label", label).child(content)
}

/// Calls `handler` on every `event` of `target`, for as long as `target` lives.
pub(crate) fn listen(target: &EventTarget, event: &str, mut handler: Box<dyn FnMut(Event)>) {
    let handler = Closure::<dyn FnMut(Event)>::new(move |event| handle(|| handler(event))).into_js_value();
    // Event names are literals of this crate, so this cannot fail.
    let _ = target.add_event_listener_with_callback(event, handler.unchecked_ref());
}

/// Runs `update` now, and again whenever a signal that it read changes, until its owner is removed
/// from the page.
fn run_on_change(update: Box<dyn FnMut()>) {
    create_effect(update);
}

impl El {
    /// Sets an attribute.
    pub(crate) fn attr(self, name: &str, value: &str) -> Self {
        // Attribute names are literals of this crate, so this cannot fail.
        let _ = self.0.set_attribute(name, value);
        self
    }

    /// Sets a numeric attribute.
    pub(crate) fn attr_f64(self, name: &str, value: f64) -> Self {
        self.attr(name, &value.to_string())
    }

    pub(crate) fn id(self, id: &str) -> Self {
        self.attr("id", id)
    }

    pub(crate) fn class(self, class: &str) -> Self {
        self.attr("class", class)
    }

    /// Keeps an attribute equal to `value()`; `None` removes it.
    pub(crate) fn dynamic_attr(
        self,
        name: &'static str,
        value: impl Fn() -> Option<String> + 'static,
    ) -> Self {
        self.attr_on_change(name, Box::new(value))
    }

    fn attr_on_change(self, name: &'static str, value: Box<dyn Fn() -> Option<String>>) -> Self {
        let (element, mut shown) = (self.0.clone(), None);
        run_on_change(Box::new(move || {
            let value = value();
            if value != shown {
                let _ = match &value {
                    Some(value) => element.set_attribute(name, value),
                    None => element.remove_attribute(name),
                };
                shown = value;
            }
        }));
        self
    }

    /// Keeps a boolean attribute equal to `on()`.
    pub(crate) fn dynamic_flag(self, name: &'static str, on: impl Fn() -> bool + 'static) -> Self {
        self.attr_on_change(name, Box::new(move || on().then(String::new)))
    }

    /// Has `class` while `on()` holds.
    pub(crate) fn toggle_class(self, class: &'static str, on: impl Fn() -> bool + 'static) -> Self {
        let list = self.0.class_list();
        let on: Box<dyn Fn() -> bool> = Box::new(on);
        run_on_change(Box::new(move || {
            let _ = list.toggle_with_force(class, on());
        }));
        self
    }

    /// Keeps a property, such as the value of an input, equal to `value()`.
    pub(crate) fn prop(self, name: &'static str, value: impl Fn() -> JsValue + 'static) -> Self {
        let element = self.0.clone();
        let value: Box<dyn Fn() -> JsValue> = Box::new(value);
        run_on_change(Box::new(move || {
            let _ = js_sys::Reflect::set(&element, &name.into(), &value());
        }));
        self
    }

    /// Calls `handler` on every `event`.
    pub(crate) fn on(self, event: &str, handler: impl FnMut(Event) + 'static) -> Self {
        listen(&self.0, event, Box::new(handler));
        self
    }

    /// Calls `handler` with the value of the input on every `event`.
    pub(crate) fn on_value(self, event: &str, mut handler: impl FnMut(String) + 'static) -> Self {
        self.on(event, move |event| {
            let target = event.target().map(JsValue::from).unwrap_or_default();
            let value = js_sys::Reflect::get(&target, &"value".into());
            handler(value.ok().and_then(|value| value.as_string()).unwrap_or_default());
        })
    }

    /// Appends children.
    pub(crate) fn child(self, content: impl Into<Content>) -> Self {
        self.append(content.into());
        self
    }

    fn append(&self, content: Content) {
        content.insert(&self.0, None, &mut Vec::new());
    }

    /// Appends a text node that stays equal to `text()`.
    pub(crate) fn dynamic_text(self, text: impl Fn() -> String + 'static) -> Self {
        let node = document().create_text_node("");
        let _ = self.0.append_child(&node);
        let (text, mut shown): (Box<dyn Fn() -> String>, _) = (Box::new(text), String::new());
        run_on_change(Box::new(move || {
            let text = text();
            // Setting the same text would trigger a new layout.
            if text != shown {
                node.set_data(&text);
                shown = text;
            }
        }));
        self
    }

    /// Appends children that are rebuilt whenever a signal that `make` read changes.
    pub(crate) fn dynamic<C: Into<Content>>(self, make: impl Fn() -> C + 'static) -> Self {
        self.region(Box::new(move || make().into()))
    }

    /// Appends children that exist while `condition` holds. Signals that `make` reads do not rebuild them.
    pub(crate) fn show_when<C: Into<Content>>(
        self,
        condition: impl Fn() -> bool + 'static,
        make: impl Fn() -> C + 'static,
    ) -> Self {
        let condition = create_selector(condition);
        self.region(Box::new(
            move || if condition.get() { untrack(|| make().into()) } else { Content::Nothing },
        ))
    }

    fn region(self, make: Box<dyn Fn() -> Content>) -> Self {
        let parent = self.0.clone();
        let end: Node = document().create_text_node("").into();
        let _ = parent.append_child(&end);
        let mut shown = Vec::new();
        run_on_change(Box::new(move || {
            let content = make();
            for node in shown.drain(..) {
                let _ = parent.remove_child(&node);
            }
            content.insert(&parent, Some(&end), &mut shown);
        }));
        self
    }
}

impl Content {
    /// Inserts itself into `parent` before `end`, and adds every inserted node to `shown`.
    fn insert(self, parent: &Element, end: Option<&Node>, shown: &mut Vec<Node>) {
        let node: Node = match self {
            Self::Nothing => return,
            Self::Text(text) => document().create_text_node(&text).into(),
            Self::One(element) => element.0.into(),
            Self::Many(all) => return all.into_iter().for_each(|one| one.insert(parent, end, shown)),
        };
        // `end` is a child of `parent`, so this cannot fail.
        let _ = parent.insert_before(&node, end);
        shown.push(node);
    }
}

impl From<&'static str> for Content {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<El> for Content {
    fn from(element: El) -> Self {
        Self::One(element)
    }
}

impl<C: Into<Content>> From<Option<C>> for Content {
    fn from(content: Option<C>) -> Self {
        content.map_or(Self::Nothing, Into::into)
    }
}

impl<C: Into<Content>> From<Vec<C>> for Content {
    fn from(all: Vec<C>) -> Self {
        Self::Many(all.into_iter().map(Into::into).collect())
    }
}

/// Returns the input that an event was fired on.
pub(crate) fn input_of(event: &Event) -> Option<HtmlInputElement> {
    event.target()?.dyn_into().ok()
}
