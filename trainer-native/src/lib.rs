//! The command line of the trainer. The crate `training` carries out plans, and `evaluation` examines the results.

pub mod cli;
mod init;
mod rehearsal;
mod runs;
