//! How much memory archived and completed tasks may keep: what goes before its time.

use std::collections::HashMap;

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::broker::{BrokerError, Fault, KeptBytes, Memory, Query, Queue, memory, weigh};
use crate::defaults::NEARLY_FULL;
use crate::server::observe::health::HealthProblem;
use crate::server::observe::log_limit::log_limited;
use crate::server::shared::Shared;
use crate::server::shared::each_queue::QUEUES_AT_ONCE;

/// How full Redis must be to be a problem.
const ALARM: f64 = 0.95;

/// Looks how full Redis is, and returns what each of these queues is to shed.
///
/// # Errors
/// Redis cannot be reached.
pub(super) async fn to_shed<'a>(
    shared: &Shared,
    redis: &impl Query,
    queues: &[&'a Queue],
) -> Result<HashMap<&'a Queue, KeptBytes>, BrokerError> {
    let memory = allowed(shared, "", memory(redis).await)?.flatten();
    let is_nearly_full = |memory: &Memory| memory.used >= part(memory.limit, NEARLY_FULL);
    let Some(memory) = memory.filter(is_nearly_full) else {
        shared.vitals.memory_is(None);
        return Ok(HashMap::new());
    };
    let weigh = queues.iter().map(|&queue| async move {
        let has = allowed(shared, &queue.name, weigh(redis, queue).await)?;
        Ok(has.map_or(KeptBytes::default(), |has| has.kept))
    });
    let weigh: Vec<_> = weigh.collect();
    let kept = stream::iter(weigh).buffered(QUEUES_AT_ONCE);
    let kept: Vec<_> = kept.try_collect().await?;
    let is_worth_a_word = memory.used >= part(memory.limit, ALARM);
    shared
        .vitals
        .memory_is(is_worth_a_word.then(|| HealthProblem::RedisNearlyFull {
            used: memory.used,
            limit: memory.limit,
            kept: kept.iter().map(|kept| kept.completed + kept.archived).sum(),
        }));
    let shed = shed(memory, shared.config.kept_memory, &kept);
    Ok(queues.iter().copied().zip(shed).collect())
}

/// What Redis said; `None` where it refuses to. Then a queue keeps what it has.
///
/// # Errors
/// Redis cannot be reached.
fn allowed<T>(
    shared: &Shared,
    queue: &str,
    said: Result<T, BrokerError>,
) -> Result<Option<T>, BrokerError> {
    match said {
        Ok(said) => Ok(Some(said)),
        Err(error) if error.fault() == Fault::Reconnect => Err(error),
        Err(error) => {
            log_limited!(
                shared,
                queue,
                warn,
                "cannot see how much memory is used: archived and completed tasks are not bounded by it",
                error = &error as &dyn std::error::Error,
            );
            Ok(None)
        }
    }
}

fn part(whole: u64, part: f64) -> u64 {
    (whole as f64 * part) as u64
}

/// What each queue sheds so that Redis is no longer nearly full, or all together have no more than their
/// part. The largest are cut first, so that one that fills Redis costs the others nothing.
fn shed(memory: Memory, kept_part: f64, kept: &[KeptBytes]) -> Vec<KeptBytes> {
    let mut sizes: Vec<_> = kept
        .iter()
        .flat_map(|kept| [kept.completed, kept.archived])
        .collect();
    let total: u64 = sizes.iter().sum();
    let too_much = match kept_part {
        // All of it: others may have used more than there is.
        1.0 => 0,
        kept_part => total.saturating_sub(part(memory.limit, kept_part)),
    };
    let needed = memory.used.saturating_sub(part(memory.limit, NEARLY_FULL));
    let mut left = total - too_much.min(needed);
    // No one is to have more than this.
    let mut most = u64::MAX;
    sizes.sort_unstable();
    for (n, &size) in (1..=sizes.len() as u64).rev().zip(&sizes) {
        if size > left / n {
            most = left / n;
            break;
        }
        left -= size;
    }
    let cut = |kept: &KeptBytes| KeptBytes {
        completed: kept.completed.saturating_sub(most),
        archived: kept.archived.saturating_sub(most),
    };
    kept.iter().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shed_of(used: u64, kept_part: f64, kept: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let kept = kept.iter().map(|&(completed, archived)| KeptBytes {
            completed,
            archived,
        });
        let kept: Vec<_> = kept.collect();
        let shed = shed(Memory { used, limit: 1000 }, kept_part, &kept);
        shed.iter()
            .map(|shed| (shed.completed, shed.archived))
            .collect()
    }

    #[test]
    fn the_largest_are_cut_until_redis_has_room_or_they_have_their_part() {
        for (used, kept_part, kept, expected) in [
            // Nothing is needed.
            (750, 0.25, vec![(300, 300)], vec![(0, 0)]),
            // What is needed.
            (800, 0.25, vec![(0, 600)], vec![(0, 50)]),
            (1000, 0.25, vec![(0, 900)], vec![(0, 250)]),
            // No more than what is above their part: something else fills Redis.
            (1000, 0.25, vec![(0, 300)], vec![(0, 50)]),
            (1000, 0.25, vec![(100, 150)], vec![(0, 0)]),
            (2000, 1.0, vec![(0, 1900)], vec![(0, 0)]),
            (1000, 0.0, vec![(10, 20)], vec![(10, 20)]),
            // The largest first, then evenly.
            (850, 0.25, vec![(10, 600), (0, 100)], vec![(0, 100), (0, 0)]),
            (
                1000,
                0.25,
                vec![(300, 300), (0, 50)],
                vec![(125, 125), (0, 0)],
            ),
            (1000, 0.25, vec![], vec![]),
        ] {
            let shed = shed_of(used, kept_part, &kept);
            assert_eq!(shed, expected, "{used} {kept_part} {kept:?}");
        }
    }
}
