//! The program: simulate scenes, check them, compare solvers, solve problems from files.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
