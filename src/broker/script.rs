use redis::{Cmd, FromRedisValue, ToRedisArgs, Value};

use crate::broker::connection::{BrokerError, Query};
use crate::broker::{clock, lua};

/// A Lua script: one transition.
pub(super) struct Script {
    pub(super) name: &'static str,
    source: String,
    sha: String,
}

impl Script {
    pub(super) fn new(name: &'static str, text: &str) -> Self {
        let source = lua::assemble(text);
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Self { name, source, sha }
    }

    /// The start of a call on a queue's base key.
    pub(super) fn on(&self, key: &str) -> Call<'_> {
        let mut command = Cmd::new();
        command
            .arg("EVALSHA")
            .arg(&self.sha)
            .arg(1)
            .arg(key)
            .arg(clock::time());
        Call {
            script: self,
            command,
        }
    }

    pub(super) fn unexpected(&self) -> BrokerError {
        BrokerError::Reply { script: self.name }
    }
}

/// A script call whose arguments are being added.
pub(super) struct Call<'a> {
    script: &'a Script,
    command: Cmd,
}

impl Call<'_> {
    pub(super) fn arg(&mut self, value: impl ToRedisArgs) -> &mut Self {
        self.command.arg(value);
        self
    }

    /// Runs it. Redis forgets scripts at a restart, a failover and a SCRIPT FLUSH: then the call goes
    /// again with the script's text, in one command, so that nothing can forget it in between. That
    /// is safe because the first call did nothing.
    pub(super) async fn run(&self, redis: &impl Query) -> Result<Value, BrokerError> {
        match redis.query(&self.command).await {
            Err(error) if is_no_script(&error) => redis.query(&self.with_text()).await,
            reply => reply,
        }
    }

    /// Runs it and reads its reply.
    pub(super) async fn read<T: FromRedisValue>(
        &self,
        redis: &impl Query,
    ) -> Result<T, BrokerError> {
        let reply = self.run(redis).await?;
        T::from_redis_value(reply).map_err(|_| self.script.unexpected())
    }

    /// Runs it and reads its reply: one `T` for each of `count` tasks.
    pub(super) async fn read_each<T: FromRedisValue>(
        &self,
        redis: &impl Query,
        count: usize,
    ) -> Result<Vec<T>, BrokerError> {
        let replies: Vec<T> = self.read(redis).await?;
        match replies.len() == count {
            true => Ok(replies),
            false => Err(self.script.unexpected()),
        }
    }

    fn with_text(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(&self.script.source);
        for argument in self.command.args_iter().skip(2) {
            if let redis::Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }
}

fn is_no_script(error: &BrokerError) -> bool {
    match error {
        BrokerError::Refused(source) => source
            .downcast_ref::<redis::RedisError>()
            .is_some_and(|e| e.code() == Some("NOSCRIPT")),
        _ => false,
    }
}
