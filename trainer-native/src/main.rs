//! The command line of the trainer; what it does is in the library.

fn main() -> std::process::ExitCode {
    trainer_native::cli::main()
}
