//! What a finished run is worth, what it leaks, and what is made of it: audits, exposure, memorization, quality, synthesis, reports and
//! exports. What trains here, an audit or a measurement of exposure, does so through [`training::run`]; nothing else charges a ledger.

pub mod audit;
pub mod export;
pub mod exposure;
mod membership;
pub mod memorization;
pub mod quality;
pub mod report;
pub mod synthesis;
