use redis::{Cmd, ToRedisArgs, Value};

use super::{BrokerError, Query, clock, lua};

/// A Lua script: one transition.
pub(super) struct Script {
    pub(super) name: &'static str,
    source: String,
    sha: String,
}

impl Script {
    pub(super) fn new(name: &'static str, text: &str) -> Self {
        let source = lua::link(text);
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

#[cfg(test)]
mod tests {
    use crate::broker::lua::link;

    #[test]
    fn a_script_has_what_it_uses_and_nothing_else() {
        let linked = link("#!lua flags=allow-oom\n-- count() in a comment\nreturn after(1)\n");
        let lines: Vec<_> = linked.lines().collect();
        assert_eq!(lines[0], "#!lua flags=allow-oom");
        assert!(linked.contains("local function after(ms)"), "{linked}");
        // What `after` uses in turn, with all that sets it.
        assert!(
            linked.contains("local now_us\nif ARGV[1] == ''"),
            "{linked}"
        );
        for unused in [
            "function count",
            "META",
            "function day",
            "local now =",
            "--",
        ] {
            assert!(!linked.contains(unused), "{unused} in {linked}");
        }
        assert_eq!(lines.last(), Some(&"return after(1)"));
    }

    #[test]
    fn what_only_a_seldom_called_function_uses_is_created_within_it() {
        let text =
            "#!lua\nlocal function late() -- seldom\n  return after(now)\nend\nreturn int(now)\n";
        let linked = link(text);
        let place = |line: &str| linked.find(line).expect(line);
        let late = place("local function late()");
        assert!(place("local function int(n)") < late, "{linked}");
        assert!(place("local now =") < late, "{linked}");
        assert!(place("local function after(ms)") > late, "{linked}");
        assert!(
            linked.ends_with("  return after(now)\nend\nreturn int(now)"),
            "{linked}"
        );
        assert_eq!(linked.matches("local now =").count(), 1);
    }

    #[test]
    fn no_script_has_a_name_twice() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/lua");
        for folder in [folder.to_owned(), format!("{folder}/operator")] {
            for entry in std::fs::read_dir(folder).expect("the folder is there") {
                let path = entry.expect("it can be read").path();
                if path.is_dir() {
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("it is text");
                let linked = link(&text);
                // Those of the shared Lua and of the script itself; others are indented.
                let mut defined: Vec<_> = linked
                    .lines()
                    .filter_map(|line| line.strip_prefix("local "))
                    .map(|line| line.strip_prefix("function ").unwrap_or(line))
                    .flat_map(|line| line.split(['=', '(']).next())
                    .flat_map(|names| names.split(','))
                    .map(str::trim)
                    .collect();
                defined.sort_unstable();
                let twice = defined.windows(2).find(|pair| pair[0] == pair[1]);
                assert_eq!(twice, None, "{}", path.display());
            }
        }
    }
}
