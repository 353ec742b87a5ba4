//! The worker for texts: it counts their records and previews their vocabularies. The page loads it when it is first used.

fn main() {
    web::serve_texts();
}
