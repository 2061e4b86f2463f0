//! Ragdolls of nine boxes that fall into a pit on top of each other: how even the steps are, and how well the joints hold.
//!
//! `cargo run --release --example ragdolls [seconds]`

#[path = "support/ragdolls.rs"]
mod ragdolls;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(8.0);
    println!(
        "{:<10}{:>12}{:>12}{:>14}{:>16}{:>14}{:>12}{:>12}",
        "ragdolls",
        "median ms",
        "worst ms",
        "worst/median",
        "factorizations",
        "opening mm",
        "unsolved",
        "held"
    );
    for count in [10, 20, 40] {
        let fall = ragdolls::fall(count, seconds);
        println!(
            "{count:<10}{:>12.3}{:>12.3}{:>14.1}{:>16}{:>14.3}{:>12}{:>12}",
            fall.median_ms,
            fall.worst_ms,
            fall.worst_ms / fall.median_ms,
            fall.factorizations,
            1e3 * fall.opening,
            fall.unconverged,
            fall.held
        );
    }
}
