//! Who did what: every task that was enqueued, each of its starts and its ends.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use crate::journal::{Entry, Packed};

#[derive(Default)]
pub struct Ledger {
    tasks: BTreeMap<String, Account>,
    completed: usize,
}

#[derive(Default)]
struct Account {
    /// Its file, if it was enqueued.
    path: Option<String>,
    starts: Vec<SystemTime>,
    ends: Vec<Packed>,
}

/// A server that was killed, and the tasks that it was running.
pub struct Death {
    pub at: SystemTime,
    pub held: Vec<String>,
}

/// The sums.
pub struct Balance {
    pub enqueued: usize,
    pub completed: usize,
    pub archived: usize,
    /// How often the poisoned task was started, if it alone is archived.
    pub poison_tries: Option<usize>,
    /// Neither completed nor archived.
    pub lost: usize,
    /// Started more than once, not counting what was archived.
    pub run_twice: usize,
    /// Ended more than once: the killed server could not tell Redis of the first end any more.
    pub ended_twice: usize,
    /// Completed, with a hash that is not the file's.
    pub wrong: usize,
    pub bytes: u64,
    pub packed_bytes: u64,
}

impl Ledger {
    pub fn enqueued(&mut self, task: String, path: String) {
        self.tasks.entry(task).or_default().path = Some(path);
    }

    pub fn note(&mut self, entry: Entry) {
        match entry {
            Entry::Opened(_) => {}
            Entry::Started(task, at) => self.tasks.entry(task).or_default().starts.push(at),
            Entry::Ended(task, packed) => {
                let account = self.tasks.entry(task).or_default();
                self.completed += usize::from(account.ends.is_empty());
                account.ends.push(packed);
            }
        }
    }

    /// The file of a task, and how often its handler was started.
    fn account(&self, task: &str) -> Option<(&str, usize)> {
        let account = self.tasks.get(task)?;
        Some((account.path.as_deref()?, account.starts.len()))
    }

    /// Whether its handler was started and has not ended.
    pub fn runs(&self, task: &str) -> bool {
        let account = self.tasks.get(task);
        account.is_some_and(|task| !task.starts.is_empty() && task.ends.is_empty())
    }

    /// How many tasks have ended at least once.
    pub fn completed(&self) -> usize {
        self.completed
    }

    /// The files of tasks that have ended.
    pub fn completed_paths(&self) -> Vec<&str> {
        let ended = self.tasks.values().filter(|task| !task.ends.is_empty());
        ended.filter_map(|task| task.path.as_deref()).collect()
    }

    /// How long after a server's death each task that it held was started again.
    pub fn started_again(&self, death: &Death) -> Vec<Duration> {
        let accounts = death.held.iter().filter_map(|task| self.tasks.get(task));
        let starts =
            accounts.filter_map(|task| task.starts.iter().find(|start| **start > death.at));
        starts
            .filter_map(|start| start.duration_since(death.at).ok())
            .collect()
    }

    pub fn balance(
        &self,
        archived: &[String],
        poisoned: &str,
        sums: &HashMap<String, String>,
    ) -> Balance {
        let poison_tries = match archived {
            [task] => self.account(task).filter(|(path, _)| *path == poisoned),
            _ => None,
        };
        let mut balance = Balance {
            enqueued: 0,
            completed: 0,
            archived: archived.len(),
            poison_tries: poison_tries.map(|(_, starts)| starts),
            lost: 0,
            run_twice: 0,
            ended_twice: 0,
            wrong: 0,
            bytes: 0,
            packed_bytes: 0,
        };
        for (id, task) in &self.tasks {
            let Some(path) = &task.path else { continue };
            balance.enqueued += 1;
            if archived.contains(id) {
                continue;
            }
            balance.run_twice += usize::from(task.starts.len() > 1);
            balance.ended_twice += usize::from(task.ends.len() > 1);
            match task.ends.first() {
                None => balance.lost += 1,
                Some(packed) => {
                    balance.completed += 1;
                    balance.bytes += packed.bytes;
                    balance.packed_bytes += packed.packed_bytes;
                }
            }
            let right = |packed: &Packed| sums.get(path) == Some(&packed.sha256);
            balance.wrong += usize::from(!task.ends.iter().all(right));
        }
        balance
    }

    /// The whole ledger as text: a line for each task.
    pub fn table(&self) -> String {
        let mut text = "task\tstarts\tends\tsha256\tfile\n".to_owned();
        for (id, task) in &self.tasks {
            let hash = task.ends.first().map_or("-", |packed| &packed.sha256);
            let path = task.path.as_deref().unwrap_or("-");
            let (starts, ends) = (task.starts.len(), task.ends.len());
            text.push_str(&format!("{id}\t{starts}\t{ends}\t{hash}\t{path}\n"));
        }
        text
    }

    /// Tasks that ran and that nobody enqueued.
    pub fn strangers(&self) -> usize {
        self.tasks.values().filter(|t| t.path.is_none()).count()
    }
}
