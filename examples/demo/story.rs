//! The demo from beginning to end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use windlass::{Client, NewTask};

use crate::calibrate::{self, Effort};
use crate::fleet::Worker;
use crate::input::{self, Input};
use crate::ledger::{Death, Ledger};
use crate::screen::Screen;
use crate::settings::{self, KILL_AT, MIN_HELD, PATIENCE, POISON_RETRIES};
use crate::store::{self, Store};
use crate::work::{POISON, Pack, SLEEPER};
use crate::{proof, report};

/// Between two looks at the workers and at Redis.
const LOOK: Duration = Duration::from_millis(20);

/// What the command line asks for.
pub struct Plan {
    pub bar: bool,
    pub directory: Option<PathBuf>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            bar: true,
            directory: None,
        }
    }
}

pub async fn run(plan: Plan) -> anyhow::Result<()> {
    let start = Instant::now();
    let home = home()?;
    let input = spawn_blocking(|| input::find(plan.directory)).await??;
    println!(
        "input      {} files of {}, {}",
        input.files.len(),
        input.directory.display(),
        report::mib(input.bytes)
    );
    let (input, effort) = spawn_blocking(move || {
        let effort = calibrate::measure(&input);
        (input, effort)
    })
    .await?;
    println!(
        "task       hash a file, deflate it at level {}, {:.1} times: about {} of work for {} cores",
        effort.level,
        effort.rounds,
        settings::seconds(settings::WORK),
        settings::cores(),
    );
    let data = home.join("redis");
    let redis = spawn_blocking(move || store::start(&data)).await??;
    println!(
        "redis      a private one, with docker/redis.conf; to look in: redis-cli -p {}",
        redis.port()
    );
    println!("shortened  {}", settings::differences());
    let mut workers = Vec::new();
    for number in 1..=2 {
        workers.push(Worker::start(number, &redis.url(), &home)?);
    }
    println!(
        "workers    2 processes, {} handlers each; what they do and say goes to {}",
        settings::concurrency(),
        shown(&home).display()
    );
    let mut demo = Demo {
        workers,
        store: Store(redis.connection().await),
        ledger: Ledger::default(),
        death: None,
    };
    demo.wait_until_ready().await?;

    let total = input.files.len() + 2;
    let mut screen = Screen::new(plan.bar, total)?;
    let client = Client::connect(&redis.url()).await?;
    demo.enqueue(&client, tasks(&input, &effort, &home)?)
        .await?;
    screen.say(&format!("{total} tasks enqueued"));
    demo.watch(&mut screen, total).await?;
    drop(screen);

    let archived = demo.store.archived().await?;
    let sums = proof::sha256sums(&demo.ledger.completed_paths()).await?;
    fs::write(home.join("ledger.tsv"), demo.ledger.table())?;
    let poisoned = made(&home, "poisoned")?;
    let balance = demo.ledger.balance(&archived, &poisoned, &sums);
    report::print(&demo.ledger, demo.death.as_ref(), &balance)?;
    println!(
        "nothing is missing, after {:.0} s",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// An empty directory below target, for all that the demo writes.
fn home() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    // Cargo marks a target directory that it made itself; else it is where examples are put.
    let target = program
        .ancestors()
        .find(|path| path.join("CACHEDIR.TAG").exists())
        .or(program.ancestors().nth(3))
        .context("the demo must lie in a target directory")?;
    let home = target.join("demo");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    Ok(home)
}

/// The path as one would type it.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).to_owned()
}

/// One task for each file, after two that make trouble.
fn tasks(input: &Input, effort: &Effort, home: &Path) -> anyhow::Result<Vec<(String, NewTask)>> {
    let level = effort.level;
    let task = |path: String, rounds: u32| {
        let pack = Pack {
            path: path.clone(),
            level,
            rounds,
        };
        (path, NewTask::from(pack))
    };
    let (slow, poisoned) = (made(home, "slow")?, made(home, "poisoned")?);
    fs::write(&slow, SLEEPER)?;
    fs::write(&poisoned, POISON)?;
    let slow = task(slow, 1);
    let (path, poisoned) = task(poisoned, 1);
    // Its retries would otherwise wait behind all other files.
    let poisoned = poisoned.max_retry(POISON_RETRIES).priority(9);
    let mut tasks = vec![slow, (path, poisoned)];
    for (index, path) in input.files.iter().enumerate() {
        tasks.push(task(path.clone(), effort.rounds_of(index)));
    }
    Ok(tasks)
}

/// The path of a file that the demo makes itself.
fn made(home: &Path, name: &str) -> anyhow::Result<String> {
    let path = home.join(name);
    Ok(path.to_str().context("the path is not UTF-8")?.to_owned())
}

struct Demo {
    /// The first is the one that is killed.
    workers: Vec<Worker>,
    store: Store,
    ledger: Ledger,
    death: Option<Death>,
}

impl Demo {
    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.workers.iter().any(|worker| worker.server.is_none()) {
            ensure!(start.elapsed() < PATIENCE, "the workers do not start");
            self.read_news()?;
            sleep(LOOK).await;
        }
        Ok(())
    }

    async fn enqueue(
        &mut self,
        client: &Client,
        tasks: Vec<(String, NewTask)>,
    ) -> anyhow::Result<()> {
        let (paths, tasks): (Vec<String>, Vec<NewTask>) = tasks.into_iter().unzip();
        let results = client.enqueue_many(tasks).await;
        for (path, result) in paths.into_iter().zip(results) {
            self.ledger.enqueued(result?.require_new()?, path);
        }
        Ok(())
    }

    /// Until nothing is left to run; kills a server on the way.
    async fn watch(&mut self, screen: &mut Screen, total: usize) -> anyhow::Result<()> {
        let mut taken_back = false;
        loop {
            self.read_news()?;
            let counts = self.store.counts().await?;
            let done = self.ledger.completed() + counts.archived;
            screen.update(done, &counts);
            if let Some(death) = &self.death {
                let again = self.ledger.started_again(death).len();
                if !taken_back && again == death.held.len() {
                    taken_back = true;
                    let name = &self.workers[1].name;
                    screen.say(&format!("{name} has started all {again} of them again"));
                }
            } else if done * 100 >= total * KILL_AT {
                self.kill_when_busy(screen).await?;
            }
            if counts.open() == 0 {
                break;
            }
            sleep(LOOK).await;
        }
        for worker in &mut self.workers[usize::from(self.death.is_some())..] {
            worker.stop(PATIENCE).await?;
        }
        self.read_news()?;
        Ok(())
    }

    /// Kills the first worker if it runs enough tasks at this moment. It is frozen for the look,
    /// because a moment later it may run others.
    async fn kill_when_busy(&mut self, screen: &Screen) -> anyhow::Result<()> {
        if self.running(0).await?.len() < MIN_HELD {
            return Ok(());
        }
        self.workers[0].freeze()?;
        // The system stops its threads one after the other: until it has no more to say.
        while self.read_news()?.contains(&0) {
            sleep(LOOK).await;
        }
        let held = self.running(0).await?;
        let victim = &mut self.workers[0];
        if held.len() < MIN_HELD {
            return victim.thaw();
        }
        victim.kill()?;
        screen.say(&format!(
            "SIGKILL for {} (pid {}) in the middle of {} tasks",
            victim.name,
            victim.pid(),
            held.len()
        ));
        let at = SystemTime::now();
        self.death = Some(Death { at, held });
        Ok(())
    }

    /// The tasks whose leases a worker holds and whose handlers it has started.
    async fn running(&mut self, place: usize) -> anyhow::Result<Vec<String>> {
        let server = self.workers[place].server.as_ref();
        let server = server.context("a worker is not ready")?;
        let mut held = self.store.held_by(server).await?;
        held.retain(|task| self.ledger.runs(task));
        Ok(held)
    }

    /// Enters what the workers have written into the ledger; answers which of them have.
    fn read_news(&mut self) -> anyhow::Result<Vec<usize>> {
        let killed = usize::from(self.death.is_some());
        let mut wrote = Vec::new();
        for (place, worker) in self.workers.iter_mut().enumerate() {
            let news = worker.news()?;
            if !news.is_empty() {
                wrote.push(place);
            }
            for entry in news {
                self.ledger.note(entry);
            }
            if place >= killed
                && let Some(status) = worker.ended()?
                && !status.success()
            {
                bail!("{} ended with {status}; see its log", worker.name);
            }
        }
        Ok(wrote)
    }
}
