//! Tasks that are of no use after a time.

use crate::support::Stage;

mod operator;
mod running;
mod start_before;
mod waiting;

/// That one task of the stage was given up, once, at its deadline, and cost nothing.
async fn assert_expired_once(stage: &Stage, id: &str, deadline: u64) {
    assert_eq!(stage.wait_for_reason(id).await, "deadline_passed");
    let died = stage.score("archived", id).await.unwrap();
    assert!(died >= deadline, "{died} {deadline}");
    for (counter, count) in [
        ("expired", 1),
        ("archived", 1),
        ("archived_deadline_passed", 1),
    ] {
        assert_eq!(stage.total(counter).await, count, "{counter}");
    }
    stage.audit().await;
}
