//! The worker for vocabulary previews. The page loads it when it is first used.

fn main() {
    web::serve_previews();
}
