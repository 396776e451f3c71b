//! States that a test makes by hand.

use redis::AsyncCommands;

use super::{HOUR, Stage, task};

impl Stage {
    /// Nothing of the queue `default` is claimed until it goes on.
    pub async fn pause(&self) {
        let _: () = self
            .redis()
            .hset(self.key("meta"), "paused", 1)
            .await
            .unwrap();
    }

    pub async fn resume(&self) {
        let _: () = self.redis().hdel(self.key("meta"), "paused").await.unwrap();
    }

    /// Writes a field of a task's record by hand.
    pub async fn set(&self, id: &str, field: &str, value: u64) {
        let _: () = self
            .redis()
            .hset(self.record_key(id), field, value)
            .await
            .unwrap();
    }

    /// Gives a task a score in a sorted set by hand.
    pub async fn place(&self, set: &str, id: &str, score: u64) {
        let _: () = self.redis().zadd(self.key(set), id, score).await.unwrap();
    }

    /// Gives a task's lease to another server, which is alive, by hand.
    pub async fn give_away(&self, id: &str) {
        let lease = "99999999999999999@another 1 1";
        let leases = self.key("leases");
        let _: () = self.redis().hset(leases, id, lease).await.unwrap();
    }

    /// Enqueues a task that nobody claims for now.
    pub async fn enqueue_for_later(&self, id: impl Into<String>) {
        let enqueue = self.client().await.enqueue(task("x")).id(id).delay(HOUR);
        assert!(enqueue.await.unwrap().is_new());
    }

    /// Removes a key of the queue `default` by hand.
    pub async fn remove(&self, name: &str) {
        let _: () = self.redis().del(self.key(name)).await.unwrap();
    }

    /// Makes a waiting task one that a server died with: leased, and past its expiry.
    pub async fn lose(&self, id: &str) {
        let state = self.state(id).await;
        let mut pipeline = redis::pipe();
        pipeline
            .atomic()
            .zrem(self.key(state), id)
            .zrem(self.key("deadlines"), id)
            .hset(
                self.key("leases"),
                id,
                format!("1@{} 1 1", "dead".repeat(20)),
            )
            .zadd(self.key("active"), id, 0);
        let _: () = pipeline.query_async(&mut self.redis()).await.unwrap();
    }
}

/// Writes `count` tasks of the kind `kind` straight into a state, each with a score.
pub async fn write_tasks(stage: &Stage, count: u64, state: &str, score: impl Fn(u64) -> u64) {
    let mut redis = stage.redis();
    for first in (0..count).step_by(1000) {
        let mut pipeline = redis::pipe();
        for n in first..count.min(first + 1000) {
            let id = format!("{state}-{n}");
            let fields = [("kind", "kind"), ("payload", "x")];
            pipeline.hset_multiple(stage.record_key(&id), &fields);
            pipeline.zadd(stage.key(state), &id, score(n));
            if state == "active" {
                let lease = format!("1@{} 1 1", "dead".repeat(20));
                pipeline.hset(stage.key("leases"), &id, lease);
            }
        }
        let _: () = pipeline
            .query_async(&mut redis)
            .await
            .expect("Redis takes it");
    }
}
