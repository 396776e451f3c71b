//! What is done to Redis by others than the scripts.

use redis::cmd;

use super::view::EXTRA;
use super::{BASE, System};
use crate::model::Model;
use crate::op::{Damage, Op};
use crate::support::STATES;

impl System {
    pub(super) async fn deed(&mut self, op: &Op, model: &Model) {
        let meta = format!("{BASE}:meta");
        match op {
            Op::Pause => self.tell(cmd("HSET").arg(meta).arg("paused").arg(1)).await,
            Op::Resume => self.tell(cmd("HDEL").arg(meta).arg("paused")).await,
            Op::RegisterOldHook(kind) => {
                let field = format!("hook:{kind}");
                self.tell(cmd("HSET").arg(meta).arg(field).arg(1)).await;
            }
            Op::TakeToken => self.tell(cmd("LPOP").arg(format!("{BASE}:wake"))).await,
            Op::Clock(_) => self.keep_locks(model).await,
            Op::Spoil(id, damage) if model.named == [*id] => self.spoil(id, *damage).await,
            _ => {}
        }
    }

    /// Notes all that there is, and makes a key of the queue one of another type, by this command.
    pub async fn spoil_key(&mut self, key: &str, make: &[&str]) {
        const COPY: &str = "for _, key in ipairs(redis.call('KEYS', '*')) do \
            redis.call('COPY', key, key, 'DB', 1) end";
        self.tell(cmd("EVAL").arg(COPY).arg(0)).await;
        let key = format!("{BASE}:{key}");
        self.tell(cmd("DEL").arg(&key)).await;
        let words = make.iter().filter(|word| !word.is_empty());
        let mut spoil = redis::Cmd::new();
        for word in words {
            spoil.arg(if *word == "key" { &*key } else { *word });
        }
        self.tell(&spoil).await;
    }

    /// Back to what there was before a key was spoilt.
    pub async fn unspoil(&mut self) {
        self.tell(&cmd("FLUSHDB")).await;
        self.tell(cmd("SWAPDB").arg(0).arg(1)).await;
        self.heard();
    }

    async fn spoil(&mut self, id: &str, damage: Damage) {
        let record = format!("{BASE}:t:{id}");
        match damage {
            Damage::Unlisted => {
                for state in STATES {
                    let key = format!("{BASE}:{state}");
                    self.tell(cmd("ZREM").arg(key).arg(id)).await;
                }
            }
            Damage::NoRecord => self.tell(cmd("DEL").arg(record)).await,
            Damage::NoKind => self.tell(cmd("HDEL").arg(record).arg("kind")).await,
            Damage::NoHash => {
                self.tell(cmd("DEL").arg(&record)).await;
                self.tell(cmd("LPUSH").arg(record).arg("x")).await;
            }
        }
    }

    /// Ends the locks that the model's clock has ended, and moves the ends of the others: Redis' own
    /// clock must not end them.
    async fn keep_locks(&mut self, model: &Model) {
        let prefix = format!("{BASE}:unique:");
        for name in std::mem::take(&mut self.ending_locks) {
            let lock = model.locks.get(&name[prefix.len()..]);
            match lock.and_then(|lock| lock.expires) {
                None => self.tell(cmd("DEL").arg(name)).await,
                Some(expires) => {
                    let left = (expires - model.elapsed).div_ceil(1000);
                    self.tell(cmd("PEXPIRE").arg(name).arg(left + EXTRA)).await;
                }
            }
        }
    }
}
