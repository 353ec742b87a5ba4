//! The page's worker.

fn main() {
    web::worker::serve();
}
