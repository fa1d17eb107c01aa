//! Arguments in, exit code out.

fn main() -> std::process::ExitCode {
    bernstream::cli::main()
}
