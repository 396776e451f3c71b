/// What this process does when a signal comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// What the system does; mostly, the process ends.
    Default,
    /// Nothing.
    Ignored,
    /// Some function in this process is called.
    Caught,
}

impl Disposition {
    /// Of this process; `None` where the system does not say. Linux does in a file; to ask it directly
    /// would need unsafe code.
    pub(crate) fn of(signal: i32) -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        Self::read(&status, signal)
    }

    fn read(status: &str, signal: i32) -> Option<Self> {
        let has = |name: &str| {
            let mut lines = status.lines();
            let mask = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))?;
            let mask = u64::from_str_radix(mask, 16).ok()?;
            Some(mask & (1 << (signal - 1)) != 0)
        };
        Some(match (has("SigIgn")?, has("SigCgt")?) {
            (true, _) => Self::Ignored,
            (_, true) => Self::Caught,
            (false, false) => Self::Default,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_from_linux_masks() {
        let status = "Name:\tx\nSigBlk:\t0000000000004001\nSigIgn:\t0000000000000001\n\
                      SigCgt:\t0000000000004002\n";
        for (signal, disposition) in [
            (libc::SIGHUP, Disposition::Ignored),
            (libc::SIGINT, Disposition::Caught),
            (libc::SIGQUIT, Disposition::Default),
            (libc::SIGTERM, Disposition::Caught),
        ] {
            assert_eq!(Disposition::read(status, signal), Some(disposition));
        }
        assert_eq!(Disposition::read("Name:\tx\n", 1), None);
    }
}
