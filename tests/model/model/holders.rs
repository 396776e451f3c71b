use super::Model;
use crate::op::{Held, Id, Server, Settler, Which};

/// A lease as its holder remembers it.
#[derive(Clone, Debug)]
pub struct Holder {
    pub number: u64,
    pub server: Server,
    /// The claim's answer had a lock or a retention in it.
    pub has_end_effects: bool,
}

impl Holder {
    fn text(&self) -> String {
        format!("{}@{}", self.number, self.server)
    }
}

impl Model {
    /// Notes that somebody holds a lease from now on.
    pub(super) fn remember(&mut self, id: Id, holder: Holder) {
        self.history.entry(id).or_default().push(holder);
    }

    fn remembered(&self, held: Held) -> Option<&Holder> {
        let leases = self.history.get(held.id)?;
        let back = match held.lease {
            Which::Former(n) => n.min(leases.len() - 1),
            _ => 0,
        };
        leases.get(leases.len() - 1 - back)
    }

    /// The holder that is meant, as text, and whether its claim's answer told of end effects.
    pub(super) fn name(&mut self, held: Held) -> (String, bool) {
        let (holder, has_end_effects) = match self.remembered(held) {
            None => ("1@nobody".to_owned(), false),
            Some(holder) => {
                let text = match held.lease {
                    Which::OtherServer => format!("{}@other", holder.number),
                    Which::OtherNumber => format!("{}@{}", holder.number + 1, holder.server),
                    _ => holder.text(),
                };
                (text, holder.has_end_effects)
            }
        };
        let found = self.found.iter().find(|(id, _)| *id == held.id);
        let holder = match (held.lease, found) {
            (Which::Found, Some((_, found))) => found.clone(),
            _ => holder,
        };
        self.named.push(holder.clone());
        (holder, has_end_effects)
    }

    /// The skew, if it is a recoverer.
    pub(super) fn skew(by: Settler) -> Option<u64> {
        match by {
            Settler::Holder => None,
            Settler::Recoverer { skew } => Some(skew),
        }
    }
}
