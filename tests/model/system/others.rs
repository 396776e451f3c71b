//! One call of the crate's own functions for each other operation.

use super::System;
use super::call::{key, ms};
use super::enqueue::item;
use crate::answer::{self, Answer, Claimed, Hooks, Looked, Lost, Promoted, Swept, Ticked};
use crate::broker::operator::{self, EndRequest};
use crate::broker::{
    BrokerError, Claim, ClaimRequest, KeptBytes, LostLease, SweepRequest, TakenHook, TickRequest,
    Watched, adopt, announce, claim, end_hooks, enqueue, expire, lapse_hooks, promote, publish,
    register_hooks, retire, sweep, take_hooks, tick, wait,
};
use crate::defaults;
use crate::keys::shortened;
use crate::model::{Model, SERVER_LIVES};
use crate::op::Op;
use crate::shapes;

impl System {
    pub(super) async fn done_without_lease(
        &mut self,
        op: &Op,
        model: &Model,
    ) -> Result<Answer, BrokerError> {
        let (link, queue, keys) = (&self.link, &self.queue, &self.keys);
        let answer = match op {
            Op::Enqueue(tasks) => {
                let items: Vec<_> = tasks.iter().map(|task| item(task, model)).collect();
                Answer::Enqueued(enqueue(link, queue, items.iter()).await?)
            }
            Op::Claim {
                server,
                room,
                lease,
            } => {
                let request = ClaimRequest {
                    server,
                    room: *room,
                    lease: ms(*lease),
                    hooked_kind: None,
                    not_after: None,
                };
                let claim = claim(link, queue, request).await?;
                for task in &claim.tasks {
                    if task.record.as_ref().is_ok_and(|r| r.has_end_effects) {
                        self.end_effects.insert(key(&task.leased));
                    }
                }
                claimed(claim)
            }
            Op::Promote => {
                let promoted = promote(link, queue).await?;
                Answer::Promoted(Promoted {
                    moved: promoted.moved,
                    more: promoted.more,
                    deadlines_passed: promoted.deadlines_passed,
                    next_due: promoted.next_due.map(|due| due.as_millis() as u64),
                    malformed: promoted.malformed,
                })
            }
            Op::Expire => {
                let expired = expire(link, queue).await?;
                Answer::Expired {
                    archived: expired.archived,
                    malformed: expired.malformed,
                }
            }
            Op::Tick(request) => {
                let request = TickRequest {
                    harmless: ms(request.harmless),
                    vouched: ms(request.vouched),
                    grace: ms(request.grace),
                    skew: ms(request.skew),
                };
                let tick = tick(link, queue, request).await?;
                let found = tick.lost.iter().map(|lost| &lost.task);
                self.found = found
                    .map(|task| (task.id.to_string(), task.clone()))
                    .collect();
                Answer::Ticked(Ticked {
                    grace_left: tick.grace_left.as_millis() as u64,
                    hook_owed: tick.hook_owed,
                    malformed: tick.malformed,
                    lost: tick.lost.into_iter().map(lost).collect(),
                })
            }
            Op::Adopt(ids) => {
                let ids: Vec<_> = ids.iter().map(|&id| id.to_owned()).collect();
                Answer::Adopted(adopt(link, queue, defaults::LEASE, &ids).await?)
            }
            Op::Sweep(request) => {
                let request = SweepRequest {
                    archive_tasks: request.cap,
                    archive_age: ms(request.age),
                    keep_for_hooks: ms(request.keep_for_hooks),
                    pass_over: request.pass_over,
                    shed: KeptBytes {
                        completed: if request.sheds { u64::MAX } else { 0 },
                        archived: if request.sheds { u64::MAX } else { 0 },
                    },
                };
                let swept = sweep(link, queue, request).await?;
                Answer::Swept(Swept {
                    completed: swept.completed,
                    archived: swept.archived,
                    hooks_dropped: swept.hooks_dropped,
                    spared: swept.spared,
                    more: swept.more,
                    shed: swept.shed,
                })
            }
            Op::RegisterHooks { kinds, lasts } => {
                register_hooks(link, queue, ms(*lasts), kinds.iter().copied()).await?;
                Answer::Nothing
            }
            Op::LapseHooks(lasts) => {
                let mut lapsed = lapse_hooks(link, queue, ms(*lasts)).await?;
                lapsed.sort();
                Answer::Lapsed(lapsed)
            }
            Op::TakeHooks(take) => {
                let kinds = take.kinds.iter().copied();
                let hooks = take_hooks(link, queue, take.room, ms(take.hold), kinds).await?;
                Answer::Hooks(Hooks {
                    dropped: hooks.dropped,
                    more: hooks.more,
                    taken: hooks.hooks.into_iter().map(taken).collect(),
                })
            }
            Op::EndHooks(ends) => {
                let holds = model.named.iter();
                let ends = ends.iter().zip(holds);
                let ends = ends.map(|(end, not_before)| (end.id, &**not_before, end.end));
                end_hooks(link, queue, ends).await?;
                Answer::Nothing
            }
            Op::Wait { id, patience } => watched(wait(link, queue, id, ms(*patience)).await?),
            Op::Run(id) => Answer::ChangeOutcome(operator::run(link, queue, id).await?),
            Op::Edit { id, payload } => {
                let payload = shapes::bytes(payload);
                // Of the right kind: another one is refused, which tests elsewhere show.
                let kind = model.tasks.get(id).map_or("", |task| task.kind);
                Answer::ChangeOutcome(operator::edit(link, queue, id, kind, &payload).await?)
            }
            Op::End {
                id,
                wish,
                is_cancel,
            } => {
                let request = EndRequest {
                    id,
                    wish: *wish,
                    is_cancel: *is_cancel,
                };
                Answer::ChangeOutcome(operator::end(link, keys, queue, request).await?)
            }
            Op::Look(id) => Answer::Looked(operator::look(link, queue, id).await?.map(looked)),
            Op::Publish(server) => {
                let (field, value) = super::SERVER_FIELD;
                let fields = [(field, value.to_owned())];
                let lives = ms(SERVER_LIVES);
                publish(link, &keys.server(server), lives, &fields).await?;
                announce(link, keys, server, lives).await?;
                Answer::Nothing
            }
            Op::Retire(server) => {
                retire(link, keys, server).await?;
                Answer::Nothing
            }
            op => {
                self.deed(op, model).await;
                Answer::Nothing
            }
        };
        Ok(answer)
    }
}

fn claimed(claim: Claim) -> Answer {
    let tasks = claim.tasks.into_iter().map(|task| {
        let (id, holder) = key(&task.leased);
        (id, holder, task.record)
    });
    Answer::Claimed(Claimed {
        number: claim.number,
        now: claim.now,
        more: claim.more,
        next_due: claim.next_due.map(|due| due.as_millis() as u64),
        malformed: claim.malformed,
        expired: claim.expired,
        tasks: tasks.collect(),
    })
}

fn lost(lost: LostLease) -> Lost {
    let (id, holder) = key(&lost.task);
    Lost {
        id,
        holder,
        kind: lost.record.kind,
        retried: lost.record.retried,
        max_retry: lost.record.max_retry,
        lost_before: lost.lost_before,
        has_policy: lost.record.policy.is_some(),
    }
}

fn taken(hook: TakenHook) -> answer::TakenHook {
    answer::TakenHook {
        id: hook.id,
        not_before: hook.not_before,
        died_at: hook.died_at,
        reason: hook.reason,
        error: hook.error,
        failed: hook.failed,
        record: hook.record,
    }
}

fn watched(watched: Watched) -> Answer {
    let (mut result, mut reason, mut error) = Default::default();
    let state = match watched {
        Watched::Waiting => "waiting",
        Watched::Gone => "gone",
        Watched::Completed { result: bytes } => {
            result = String::from_utf8(bytes).expect("results are text");
            "completed"
        }
        Watched::Archived {
            reason: why,
            error: text,
        } => {
            (reason, error) = (why, text);
            "archived"
        }
    };
    Answer::Watched {
        state: state.to_owned(),
        result,
        reason,
        error,
    }
}

fn looked(look: operator::Look) -> Looked {
    let text = |bytes| shortened(String::from_utf8(bytes).expect("values are text"));
    let fields = look.fields.into_iter();
    let mut fields: Vec<_> = fields.map(|(field, value)| (field, text(value))).collect();
    fields.sort();
    Looked {
        state: look.state,
        score: look.score,
        lease: look.lease,
        fields,
    }
}
