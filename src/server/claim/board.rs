use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::broker::Queue;
use crate::server::claim::weights::divide;
use crate::server::shared::queues::ServedQueue;

/// While handlers run, nobody hears wake tokens: so often the claimer looks at the queues that it does
/// not ask for work.
const LOOK: Duration = Duration::from_millis(20);
/// A queue that has pending tasks but gives none (it is paused, or others are faster) is asked again
/// after such a pause, which doubles up to the second one. Its wake token ends the pause.
const DENIED: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(16)];

/// What the claimer knows of its queues, by their places in the list of those that are served.
pub(super) struct Board {
    queues: Arc<[ServedQueue]>,
    /// Those that may have work: they woke the claimer, gave something when they were last asked, or
    /// were seen to have pending tasks.
    with_work: BTreeSet<usize>,
    /// Those of them that were seen to have pending tasks, and not asked since.
    seen: BTreeSet<usize>,
    denied: HashMap<usize, Denied>,
    /// Its token was taken and it was not asked yet.
    woken: Option<usize>,
    looked: Option<Instant>,
}

struct Denied {
    until: Instant,
    pause: Duration,
}

impl Board {
    pub(super) fn new(queues: Arc<[ServedQueue]>) -> Self {
        Self {
            queues,
            with_work: BTreeSet::new(),
            seen: BTreeSet::new(),
            denied: HashMap::new(),
            woken: None,
            looked: None,
        }
    }

    /// Goes on with the queues that are served now. Of a new list nothing is known but whose token was
    /// taken.
    pub(super) fn renew(&mut self, queues: Arc<[ServedQueue]>) {
        if Arc::ptr_eq(&self.queues, &queues) {
            return;
        }
        let woken = self.woken.map(|place| self.queues[place].queue.clone());
        *self = Self::new(queues);
        let place = |queue: Queue| self.queues.iter().position(|it| it.queue == queue);
        if let Some(place) = woken.and_then(place) {
            self.wake(place);
        }
    }

    pub(super) fn queues(&self) -> &Arc<[ServedQueue]> {
        &self.queues
    }

    pub(super) fn queue(&self, place: usize) -> &Queue {
        &self.queues[place].queue
    }

    /// Whether nothing is known of the other queues for too long.
    pub(super) fn look_is_due(&self) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() >= LOOK)
    }

    /// Those that a look should look at.
    pub(super) fn unknown(&self) -> Vec<usize> {
        let now = Instant::now();
        let is_denied = |place: &usize| self.denied.get(place).is_some_and(|it| it.until > now);
        (0..self.queues.len())
            .filter(|place| !self.with_work.contains(place) && !is_denied(place))
            .collect()
    }

    /// Notes which of the unknown queues have pending tasks.
    pub(super) fn saw(&mut self, pending: impl IntoIterator<Item = usize>) {
        self.looked = Some(Instant::now());
        self.seen.extend(pending);
        self.with_work.extend(&self.seen);
    }

    /// Has every queue asked, instead of looking at it.
    pub(super) fn suspect_all(&mut self) {
        self.looked = Some(Instant::now());
        self.with_work.extend(0..self.queues.len());
    }

    /// Notes that all were asked just now.
    pub(super) fn asked_all(&mut self) {
        self.looked = Some(Instant::now());
    }

    /// Notes that a queue's token was taken.
    pub(super) fn wake(&mut self, place: usize) {
        self.denied.remove(&place);
        self.with_work.insert(place);
        self.woken = Some(place);
    }

    /// The queue whose token was taken, if it was not asked since.
    pub(super) fn woken(&self) -> Option<usize> {
        self.woken
    }

    /// Notes what a queue gave that was asked.
    pub(super) fn asked(&mut self, place: usize, got: usize, more: bool) {
        self.woken.take_if(|woken| *woken == place);
        let was_seen = self.seen.remove(&place);
        if got > 0 || more {
            self.denied.remove(&place);
            self.with_work.insert(place);
            return;
        }
        self.with_work.remove(&place);
        if was_seen {
            let denied = self.denied.entry(place);
            let denied = denied.and_modify(|it| it.pause = (it.pause * 2).min(DENIED[1]));
            let denied = denied.or_insert(Denied {
                until: Instant::now(),
                pause: DENIED[0],
            });
            denied.until = Instant::now() + denied.pause;
        }
    }

    /// Notes that Redis refused to answer for a queue.
    pub(super) fn refused(&mut self, place: usize) {
        self.with_work.remove(&place);
        self.seen.remove(&place);
    }

    pub(super) fn with_work(&self) -> &BTreeSet<usize> {
        &self.with_work
    }

    /// How many tasks to ask of each of these queues: by weight, but one of the queue that woke us.
    pub(super) fn rooms(&self, places: &BTreeSet<usize>, slots: usize) -> Vec<(usize, usize)> {
        let woken = self.woken.filter(|woken| places.contains(woken));
        let sure = usize::from(woken.is_some() && slots > 0);
        let weights: Vec<u32> = places.iter().map(|&it| self.queues[it].weight).collect();
        let shares = divide(slots - sure, &weights);
        let rooms = places.iter().zip(shares).map(|(&place, share)| {
            let first = if Some(place) == woken { sure } else { 0 };
            (place, share + first)
        });
        rooms
            .filter(|&(place, room)| room > 0 || Some(place) == woken)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::Keys;

    fn board(weights: &[u32]) -> Board {
        let keys = Keys::new("t");
        let queues = weights
            .iter()
            .enumerate()
            .map(|(place, &weight)| ServedQueue {
                queue: keys.queue(&place.to_string()),
                weight,
            });
        Board::new(queues.collect())
    }

    #[test]
    fn only_queues_with_work_share_the_slots() {
        let mut board = board(&[1, 6, 3]);
        assert_eq!(board.unknown(), [0, 1, 2]);
        board.saw([1, 2]);
        assert_eq!(board.rooms(board.with_work(), 9), [(1, 6), (2, 3)]);
        assert_eq!(board.unknown(), [0]);
        board.asked(1, 0, false);
        assert_eq!(board.rooms(board.with_work(), 9), [(2, 9)]);
    }

    #[test]
    fn the_queue_that_woke_us_is_asked_whatever_its_weight() {
        for slots in [0, 1] {
            let mut board = board(&[1_000_000, 1]);
            board.saw([0]);
            board.wake(1);
            let rooms = board.rooms(board.with_work(), slots);
            assert_eq!(rooms, [(1, slots)]);
            board.asked(1, slots, false);
            assert_eq!(board.woken(), None);
        }
    }

    #[test]
    fn a_queue_that_gives_nothing_although_it_has_tasks_is_left_alone_until_its_token_comes() {
        let mut board = board(&[1]);
        board.suspect_all();
        board.asked(0, 0, false);
        assert_eq!(board.unknown(), [0]);
        board.saw([0]);
        board.asked(0, 0, false);
        assert!(board.unknown().is_empty() && board.with_work().is_empty());
        board.wake(0);
        assert_eq!(board.rooms(board.with_work(), 2), [(0, 2)]);
    }

    #[test]
    fn a_new_list_keeps_the_token_that_was_taken() {
        let mut board = board(&[1, 1]);
        board.saw([0, 1]);
        board.wake(1);
        let mut queues = board.queues().to_vec();
        queues.remove(0);
        board.renew(queues.into());
        assert_eq!(board.woken(), Some(0));
        assert_eq!(board.with_work().iter().collect::<Vec<_>>(), [&0]);
    }
}
