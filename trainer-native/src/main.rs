//! The command line of the trainer. Its functions are in the library.

fn main() -> std::process::ExitCode {
    trainer_native::cli::main()
}
