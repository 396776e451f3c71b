//! How a server divides its slots among its queues.

use redis::AsyncCommands;
use windlass::task::RawTask;
use windlass::{Router, TaskContext};

use crate::support::{Call, LIMIT, Seen, Stage, puppet, seen, task};

const EACH: usize = 600;

/// A stage with this many tasks in each of two queues, a router that says where they come from, and
/// what it says.
async fn two_full_queues(name: &str) -> (Stage, Router, Seen<String>) {
    let stage = Stage::new(name).await;
    let client = stage.client().await;
    for queue in ["a", "b"] {
        let tasks = (0..EACH).map(|_| RawTask::new("kind", "x"));
        let tasks = tasks.map(|task| windlass::NewTask::from(task).queue(queue));
        assert!(client.enqueue_many(tasks).await.iter().all(Result::is_ok));
    }
    let (says, queues) = seen();
    let router = Router::new().raw("kind", move |_: RawTask, context: TaskContext| {
        let said = says.send(context.queue().to_owned());
        async move { said.map_err(|error| error.to_string()) }
    });
    (stage, router, queues)
}

#[tokio::test]
async fn queues_with_work_share_by_weight() {
    for concurrency in [1, 8] {
        let (stage, router, mut queues) = two_full_queues("weights").await;
        let settings = stage.server().concurrency(concurrency);
        let server = stage
            .serve_with(settings.queues([("a", 3), ("b", 1)]), router)
            .await;
        let first = queues.take(400).await;
        let of_a = first.iter().filter(|queue| *queue == "a").count();
        println!("concurrency {concurrency}: {of_a} of 400 by a weight of 3 to 1");
        // 300 expected; drawn one by one, 35 are four standard deviations.
        assert!((265..=335).contains(&of_a), "{of_a}");
        queues.take(2 * EACH - 400).await;
        server.stop().await;
    }
}

#[tokio::test]
async fn in_strict_order_a_later_queue_waits_for_the_earlier_ones() {
    let (stage, router, mut queues) = two_full_queues("strict").await;
    let settings = stage.server().concurrency(4).strict_order();
    let server = stage
        .serve_with(settings.queues([("b", 1), ("a", 9)]), router)
        .await;
    let queues = queues.take(2 * EACH).await;
    let last_b = queues.iter().rposition(|queue| queue == "b").unwrap();
    let first_a = queues.iter().position(|queue| queue == "a").unwrap();
    // The last claim of one queue goes on to the other.
    assert!(first_a + 4 > last_b, "{first_a} {last_b}");
    server.stop().await;
}

/// Not call by call, until theirs are filled by their own small share: in one.
#[tokio::test]
async fn an_empty_queue_leaves_its_share_to_the_others() {
    let stage = Stage::new("idle-share").await;
    let (router, mut calls) = puppet();
    for queue in ["a", "b"] {
        let tasks = (0..20).map(|_| task("x").queue(queue));
        stage.enqueue_many(tasks).await;
    }
    let settings = stage.server().concurrency(8);
    let settings = settings.queues([("empty", 1_000_000), ("a", 1), ("b", 1)]);
    let server = stage.serve_with(settings, router).await;
    let mut running = Vec::new();
    for _ in 0..8 {
        running.push(calls.next().await);
    }
    for queue in ["a", "b"] {
        // Those that are claimed together have the same lease number.
        let leases = stage.redis().hvals(stage.key_of(queue, "leases")).await;
        let leases: Vec<String> = leases.unwrap();
        let first = &leases[0];
        assert_eq!(leases.len(), 4, "half of the slots");
        assert!(leases.iter().all(|lease| lease == first), "{leases:?}");
    }
    running.into_iter().for_each(Call::complete);
    calls.complete_all();
    for queue in ["a", "b"] {
        stage.wait_until_drained(queue, LIMIT).await;
    }
    assert_eq!(server.stop().await.stats.completed, 40);
}
