//! The page's worker that looks at text; loaded when it is first asked.

fn main() {
    web::vocabulary_worker::serve();
}
