//! Downloads of files that the page creates.

use js_sys::{Array, encode_uri_component};
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;

use super::browser::document;
use web_sys::{
    Blob, BlobPropertyBag, CanvasRenderingContext2d, HtmlAnchorElement, HtmlCanvasElement, HtmlImageElement,
    Url,
};

/// Pixels of a PNG per pixel of the drawing.
const PNG_SCALE: f64 = 2.0;

/// Downloads `text` as the file `name`. `None` if the browser refuses.
pub(crate) fn save(name: &str, kind: &str, text: &str) -> Option<()> {
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&Array::of1(&text.into()), &options).ok()?;
    download(name, &blob)
}

fn download(name: &str, blob: &Blob) -> Option<()> {
    let address = Url::create_object_url_with_blob(blob).ok()?;
    let anchor: HtmlAnchorElement = document().create_element("a").ok()?.dyn_into().ok()?;
    anchor.set_href(&address);
    anchor.set_download(name);
    anchor.click();
    Url::revoke_object_url(&address).ok()
}

/// Downloads an SVG as a PNG. The image is loaded from a data URL, the only source that the page's security policy allows.
pub(crate) fn save_png(name: &str, svg: &str) -> Option<()> {
    let image = HtmlImageElement::new().ok()?;
    let name = name.to_owned();
    let loaded = image.clone();
    let on_load = Closure::once_into_js(move || {
        // Without a canvas there is no PNG; the SVG can still be saved.
        let _ = rasterize(&loaded, name);
    });
    image.set_onload(Some(on_load.unchecked_ref()));
    image.set_src(&format!("data:image/svg+xml;charset=utf-8,{}", String::from(encode_uri_component(svg))));
    Some(())
}

fn rasterize(image: &HtmlImageElement, name: String) -> Option<()> {
    let canvas: HtmlCanvasElement = document().create_element("canvas").ok()?.dyn_into().ok()?;
    let (width, height) = (f64::from(image.width()) * PNG_SCALE, f64::from(image.height()) * PNG_SCALE);
    canvas.set_width(width as u32);
    canvas.set_height(height as u32);
    let context: CanvasRenderingContext2d = canvas.get_context("2d").ok()??.dyn_into().ok()?;
    context.draw_image_with_html_image_element_and_dw_and_dh(image, 0.0, 0.0, width, height).ok()?;
    let done = Closure::once_into_js(move |blob: Option<Blob>| {
        blob.and_then(|blob| download(&name, &blob)).is_some()
    });
    canvas.to_blob(done.unchecked_ref()).ok()
}
