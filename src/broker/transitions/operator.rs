use std::sync::LazyLock;

use crate::broker::connection::{BrokerError, Query};
use crate::broker::keys::{Keys, Queue};
use crate::broker::reply::Text;
use crate::broker::script::{Call, Script};

static RUN: LazyLock<Script> =
    LazyLock::new(|| Script::new("run", include_str!("../../../lua/operator/run.lua")));
static END: LazyLock<Script> =
    LazyLock::new(|| Script::new("end", include_str!("../../../lua/operator/end.lua")));
static EDIT: LazyLock<Script> =
    LazyLock::new(|| Script::new("edit", include_str!("../../../lua/operator/edit.lua")));
static LOOK: LazyLock<Script> =
    LazyLock::new(|| Script::new("look", include_str!("../../../lua/operator/look.lua")));

/// What became of an operator's wish for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Missing,
    /// It is active, which rules this out.
    Active,
    /// It is completed, which rules this out.
    Completed,
    /// It is where it was to go.
    Already,
    /// It is of another kind than was said.
    OtherKind {
        kind: String,
    },
    /// Another task has its lock.
    Duplicate {
        holder: String,
    },
    /// A newer task has taken its place, and it was dropped.
    Superseded,
    /// It runs, and its server was told. The server's id.
    Requested {
        server: String,
    },
}

/// What is to become of a task that is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndWish {
    Decide,
    Archive,
    Delete,
}

/// A wish to end one task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndRequest<'a> {
    pub(crate) id: &'a str,
    pub(crate) wish: EndWish,
    /// A cancel owes the task's hook; an operator's archive does not.
    pub(crate) is_cancel: bool,
}

/// scheduled, retry, archived → pending.
pub(crate) async fn run(
    redis: &impl Query,
    queue: &Queue,
    id: &str,
) -> Result<Answer, BrokerError> {
    let mut call = RUN.on(&queue.base);
    call.arg(id);
    answer(&RUN, &call, redis).await
}

/// Gives a task that is not active another payload.
pub(crate) async fn edit(
    redis: &impl Query,
    queue: &Queue,
    id: &str,
    kind: &str,
    payload: &[u8],
) -> Result<Answer, BrokerError> {
    let mut call = EDIT.on(&queue.base);
    call.arg(id).arg(kind).arg(payload);
    answer(&EDIT, &call, redis).await
}

/// any → archived or gone. A task whose server is dead is taken over: that its server has no record
/// any more is looked up here, because it stands in another slot.
pub(crate) async fn end(
    redis: &impl Query,
    keys: &Keys,
    queue: &Queue,
    request: EndRequest<'_>,
) -> Result<Answer, BrokerError> {
    let mut dead_holder = String::new();
    loop {
        let mut call = END.on(&queue.base);
        call.arg(request.id)
            .arg(match request.wish {
                EndWish::Decide => "decide",
                EndWish::Archive => "archive",
                EndWish::Delete => "delete",
            })
            .arg(u8::from(request.is_cancel))
            .arg(keys.control(""))
            .arg(&dead_holder);
        let (word, holder) = words(&call, redis).await?;
        let server = holder.split_once('@').map_or("", |(_, server)| server);
        // Once is enough: if it was claimed again meanwhile, that server will hear of it.
        let taken_over = !dead_holder.is_empty();
        if word != "requested" || taken_over || is_alive(redis, keys, server).await? {
            return to_answer(&word, server).ok_or_else(|| END.unexpected());
        }
        dead_holder = holder;
    }
}

async fn is_alive(redis: &impl Query, keys: &Keys, server: &str) -> Result<bool, BrokerError> {
    let reply = redis
        .query(redis::cmd("EXISTS").arg(keys.server(server)))
        .await?;
    Ok(reply == redis::Value::Int(1))
}

/// One task, as it is.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) state: String,
    pub(crate) score: i64,
    pub(crate) lease: String,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
}

/// Reads one task; `None` when there is no such task.
pub(crate) async fn look(
    redis: &impl Query,
    queue: &Queue,
    id: &str,
) -> Result<Option<Look>, BrokerError> {
    let mut call = LOOK.on(&queue.base);
    call.arg(id);
    let reply: (Text, Text, Text, Vec<(Text, Vec<u8>)>) = call.read(redis).await?;
    let (Text(state), Text(score), Text(lease), fields) = reply;
    let fields = fields
        .into_iter()
        .map(|(Text(field), value)| (field, value));
    let look = (!state.is_empty()).then(|| Look {
        state,
        score: score.parse().unwrap_or_default(),
        lease,
        fields: fields.collect(),
    });
    Ok(look)
}

async fn answer(
    script: &Script,
    call: &Call<'_>,
    redis: &impl Query,
) -> Result<Answer, BrokerError> {
    let (word, detail) = words(call, redis).await?;
    to_answer(&word, &detail).ok_or_else(|| script.unexpected())
}

async fn words(call: &Call<'_>, redis: &impl Query) -> Result<(String, String), BrokerError> {
    let (Text(word), Text(detail)) = call.read(redis).await?;
    Ok((word, detail))
}

fn to_answer(word: &str, detail: &str) -> Option<Answer> {
    Some(match word {
        "done" => Answer::Done,
        "missing" => Answer::Missing,
        "active" => Answer::Active,
        "completed" => Answer::Completed,
        "already" => Answer::Already,
        "superseded" => Answer::Superseded,
        "kind" => Answer::OtherKind {
            kind: detail.to_owned(),
        },
        "duplicate" => Answer::Duplicate {
            holder: detail.to_owned(),
        },
        "requested" => Answer::Requested {
            server: detail.to_owned(),
        },
        _ => return None,
    })
}
