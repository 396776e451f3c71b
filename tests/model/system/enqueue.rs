//! Tasks to enqueue, as a client would check them.

use std::time::{SystemTime, UNIX_EPOCH};

use super::call::ms;
use crate::broker::EnqueueItem;
use crate::model::Model;
use crate::op::{Due, Mode, New, Unique};
use crate::shapes;
use crate::task::{self, TaskOptions, Timeout};

pub fn item(new: &New, model: &Model) -> EnqueueItem {
    let time = |from_now: i64| UNIX_EPOCH + ms(model.at(from_now));
    let payload = shapes::bytes(new.payload);
    let name = |unique| self::unique(unique).lock_name(new.kind, &payload);
    EnqueueItem {
        id: new.id.to_owned(),
        kind: new.kind.to_owned(),
        lock: new.unique.map(name),
        payload,
        options: TaskOptions {
            queue: None,
            id: new.own_id.then(|| new.id.to_owned()),
            due: due(new.due, time),
            priority: new.priority,
            max_retry: new.max_retry,
            timeout: new.timeout.map(|timeout| match timeout {
                0 => Timeout::Never,
                timeout => Timeout::After(ms(timeout)),
            }),
            policy: new
                .policy
                .then(|| shapes::POLICY.parse().expect("the policy is valid")),
            deadline: new.deadline.map(time),
            start_before: new.start_before.map(time),
            retention: ms(new.retention),
            unique: new.unique.map(unique),
            headers: new
                .header
                .then(|| ("trace".to_owned(), "t1".to_owned()))
                .into_iter()
                .collect(),
        },
    }
}

fn due(due: Due, time: impl Fn(i64) -> SystemTime) -> task::Due {
    match due {
        Due::Now => task::Due::Now,
        Due::After(delay) => task::Due::After(ms(delay)),
        Due::At(from_now) => task::Due::At(time(from_now)),
    }
}

fn unique(unique: Unique) -> task::Unique {
    let lasts = unique.lasts.map(ms);
    let lock = match unique.mode {
        Mode::Done => task::Unique::until_done(),
        Mode::Started => task::Unique::until_started(),
        Mode::Time => task::Unique::for_time(lasts.expect("it is for a time")),
        Mode::Replace => task::Unique::replace(),
    };
    let lock = lasts.into_iter().fold(lock, task::Unique::at_most);
    let wait = unique.max_wait.map(ms);
    let lock = wait.into_iter().fold(lock, task::Unique::max_wait);
    let lock = unique.key.into_iter().fold(lock, task::Unique::key);
    match unique.across_kinds {
        true => lock.across_kinds(),
        false => lock,
    }
}
