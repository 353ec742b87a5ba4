//! Files that the page makes, handed to the browser's own download.

use js_sys::{Array, encode_uri_component};
use leptos::prelude::document;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{
    Blob, BlobPropertyBag, CanvasRenderingContext2d, HtmlAnchorElement, HtmlCanvasElement, HtmlImageElement,
    Url,
};

/// Pixels of a PNG for each of the drawing's own.
const SHARPNESS: f64 = 2.0;

/// Offers `text` as the file `name`; `None` when the browser refuses.
pub fn save(name: &str, kind: &str, text: &str) -> Option<()> {
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&Array::of1(&text.into()), &options).ok()?;
    offer(name, &blob)
}

fn offer(name: &str, blob: &Blob) -> Option<()> {
    let address = Url::create_object_url_with_blob(blob).ok()?;
    let anchor: HtmlAnchorElement = document().create_element("a").ok()?.dyn_into().ok()?;
    anchor.set_href(&address);
    anchor.set_download(name);
    anchor.click();
    Url::revoke_object_url(&address).ok()
}

/// Offers an SVG's text as pixels. The drawing travels as a data address: the page's policy allows no other source.
pub fn save_png(name: &str, svg: &str) -> Option<()> {
    let image = HtmlImageElement::new().ok()?;
    let name = name.to_owned();
    let drawn = image.clone();
    let on_load = Closure::once_into_js(move || {
        // A browser without canvas has nothing to save; the SVG is there.
        let _ = paint(&drawn, name);
    });
    image.set_onload(Some(on_load.unchecked_ref()));
    image.set_src(&format!("data:image/svg+xml;charset=utf-8,{}", String::from(encode_uri_component(svg))));
    Some(())
}

fn paint(image: &HtmlImageElement, name: String) -> Option<()> {
    let canvas: HtmlCanvasElement = document().create_element("canvas").ok()?.dyn_into().ok()?;
    let (width, height) = (f64::from(image.width()) * SHARPNESS, f64::from(image.height()) * SHARPNESS);
    canvas.set_width(width as u32);
    canvas.set_height(height as u32);
    let context: CanvasRenderingContext2d = canvas.get_context("2d").ok()??.dyn_into().ok()?;
    context.draw_image_with_html_image_element_and_dw_and_dh(image, 0.0, 0.0, width, height).ok()?;
    let done =
        Closure::once_into_js(move |blob: Option<Blob>| blob.and_then(|blob| offer(&name, &blob)).is_some());
    canvas.to_blob(done.unchecked_ref()).ok()
}
