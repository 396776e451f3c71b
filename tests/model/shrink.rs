//! Makes a failing run shorter than proptest leaves it: its shrinking passes over the operations once,
//! and simplifying a late one can make an early one needless.

use crate::op::Op;

/// Leaves out operations, and parts of them, for as long as what remains still fails.
pub fn shortest(mut ops: Vec<Op>, mut fails: impl FnMut(&[Op]) -> bool) -> Vec<Op> {
    loop {
        let candidate = shorter(&ops).find(|ops| fails(ops));
        match candidate {
            Some(shorter) => ops = shorter,
            None => return ops,
        }
    }
}

fn shorter(ops: &[Op]) -> impl Iterator<Item = Vec<Op>> {
    let without = (0..ops.len()).rev().map(|i| {
        let mut fewer = ops.to_vec();
        fewer.remove(i);
        fewer
    });
    let smaller = (0..ops.len()).flat_map(move |i| {
        smaller(&ops[i]).into_iter().map(move |op| {
            let mut fewer = ops.to_vec();
            fewer[i] = op;
            fewer
        })
    });
    without.chain(smaller)
}

/// The operation with one item less.
fn smaller(op: &Op) -> Vec<Op> {
    match op {
        Op::Enqueue(tasks) => fewer(tasks, Op::Enqueue),
        Op::Extend { lease, tasks } => fewer(tasks, |tasks| Op::Extend {
            lease: *lease,
            tasks,
        }),
        Op::Complete(tasks) => fewer(tasks, Op::Complete),
        Op::Revoke(tasks) => fewer(tasks, Op::Revoke),
        Op::Retry { by, tasks } => fewer(tasks, |tasks| Op::Retry { by: *by, tasks }),
        Op::Archive { by, tasks } => fewer(tasks, |tasks| Op::Archive { by: *by, tasks }),
        Op::Defer(tasks) => fewer(tasks, Op::Defer),
        Op::Release(tasks) => fewer(tasks, Op::Release),
        Op::Adopt(ids) => fewer(ids, Op::Adopt),
        Op::RegisterHooks { kinds, lasts } => fewer(kinds, |kinds| Op::RegisterHooks {
            kinds,
            lasts: *lasts,
        }),
        Op::EndHooks(ends) => fewer(ends, Op::EndHooks),
        _ => Vec::new(),
    }
}

fn fewer<T: Clone>(items: &[T], op: impl Fn(Vec<T>) -> Op) -> Vec<Op> {
    if items.len() < 2 {
        return Vec::new();
    }
    let without = (0..items.len()).map(|i| {
        let mut fewer = items.to_vec();
        fewer.remove(i);
        op(fewer)
    });
    without.collect()
}
