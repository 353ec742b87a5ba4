//! Examines finished runs, and makes things of them: audits, exposure, memorization, quality, synthesis, reports and
//! exports. An audit or a measurement of exposure trains through [`training::run`]; nothing else here charges a ledger.

pub mod audit;
pub mod export;
pub mod exposure;
mod membership;
pub mod memorization;
pub mod quality;
pub mod report;
pub mod synthesis;
