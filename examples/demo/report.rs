//! The ledger on the screen, and what is wrong with it.

use anyhow::ensure;

use crate::ledger::{Balance, Death, Ledger};
use crate::settings::MIN_HELD;

/// Prints the ledger; an error names all that is wrong with it.
pub fn print(ledger: &Ledger, death: Option<&Death>, balance: &Balance) -> anyhow::Result<()> {
    let held = death.map_or(0, |death| death.held.len());
    let again = death.map_or(Vec::new(), |death| ledger.started_again(death));
    let longest = again.iter().max().copied().unwrap_or_default();
    println!();
    println!("enqueued   {:>6}", balance.enqueued);
    println!(
        "completed  {:>6}  every hash compared with sha256sum: {} differ; {} became {}",
        balance.completed,
        balance.wrong,
        mib(balance.bytes),
        mib(balance.packed_bytes)
    );
    println!(
        "archived   {:>6}  the poisoned one, after {} tries",
        balance.archived,
        balance.poison_tries.unwrap_or(0)
    );
    println!("lost       {:>6}", balance.lost);
    println!(
        "run twice  {:>6}  after the kill; {} of them to the end: Redis had not been told of the first",
        balance.run_twice, balance.ended_twice
    );
    println!(
        "killed server: it was running {held}; {} were started again elsewhere, after at most {:.1} s",
        again.len(),
        longest.as_secs_f64()
    );
    let checks = [
        (balance.lost == 0, "tasks were lost"),
        (balance.wrong == 0, "hashes differ"),
        (
            balance.poison_tries.is_some(),
            "not exactly the poisoned task is archived",
        ),
        (ledger.strangers() == 0, "tasks ran that nobody enqueued"),
        (
            held >= MIN_HELD,
            "no server was killed with enough tasks in hand",
        ),
    ];
    let wrong = checks.iter().filter(|(right, _)| !right);
    let wrong: Vec<&str> = wrong.map(|(_, what)| *what).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

pub fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0)
}
