//! The expert view of the page: all settings, charts and previews. The page loads it when it is first opened.

fn main() {
    web::page::start_expert();
}
