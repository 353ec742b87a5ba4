//! The page's start view, and the workers for figures and curves. They are one module, so that the browser downloads shared code once.

fn main() {
    web::page::start();
}
