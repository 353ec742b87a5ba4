//! The worker for tables in parquet. The page loads it when it is first used: no other text needs it.

fn main() {
    web::serve_tables();
}
