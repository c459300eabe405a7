//! The `gateweave` command.

fn main() -> std::process::ExitCode {
    gateweave::cli::main()
}
