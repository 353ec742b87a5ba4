//! The page, and its workers for figures and curves: one module, so that what they share is loaded once.

fn main() {
    web::page::start();
}
