//! The command line of the trainer. The crate `training` carries out plans, and `evaluation` examines what they made.

pub mod cli;
mod init;
mod rehearsal;
mod runs;
