//! Announcements that come again. They are sealed, but whoever may write to the topic can write an old one again, without the key: it must
//! keep nobody busy. As in Kerberos (RFC 4120, 3.2.3): an announcement says when it was sent, what was sent long ago is dropped, and what
//! was not is remembered.

use std::collections::HashMap;
use std::time::Duration;

use super::wire::AnnouncementHead;
use bernstream_synopsis::clock::Timestamp;

/// The greatest age of an announcement, and how much the clocks of worker and absorber may differ.
pub(super) const FRESH: Duration = Duration::from_secs(300);
/// The most announcements that are remembered. A worker that catches up announces some of them a second.
const MOST_REMEMBERED: usize = 4_096;

/// The announcements of the last minutes.
#[derive(Debug)]
pub(super) struct ReplayFilter {
    known: HashMap<String, KnownAnnouncement>,
    /// The time until which all that was sent is dropped: of it not everything is remembered any more.
    forgotten: Timestamp,
}

#[derive(Debug)]
struct KnownAnnouncement {
    /// The time at which it was sent last: workers repeat announcements.
    sent: Timestamp,
    is_answered: bool,
}

impl Default for ReplayFilter {
    fn default() -> Self {
        ReplayFilter {
            known: HashMap::new(),
            forgotten: Timestamp::EARLIEST,
        }
    }
}

impl ReplayFilter {
    /// Returns whether a worker can have sent it just now. It costs nothing, so that a flood of old ones does not either: what else `head` says
    /// is not proved yet.
    pub fn could_be_new(&self, head: &AnnouncementHead, now: Timestamp) -> bool {
        is_fresh(head, now)
            && head.sent > self.forgotten
            && self
                .known
                .get(&head.id)
                .is_none_or(|known| head.sent > known.sent)
    }

    /// Remembers an announcement that is proved and [could be new](ReplayFilter::could_be_new); returns whether it is to be answered: it was
    /// not, and this one counts as answered then.
    pub fn take_announcement(&mut self, head: &AnnouncementHead, now: Timestamp) -> bool {
        if let Some(known) = self.known.get_mut(&head.id) {
            known.sent = head.sent;
            return !std::mem::replace(&mut known.is_answered, true);
        }
        if self.known.len() >= MOST_REMEMBERED {
            // What is no longer fresh is dropped by its time.
            self.known.retain(|_, known| known.sent > now.minus(FRESH));
        }
        if self.known.len() >= MOST_REMEMBERED
            && let Some((id, oldest)) = self.known.iter().min_by_key(|(_, known)| known.sent)
        {
            self.forgotten = oldest.sent.max(self.forgotten);
            let id = id.clone();
            self.known.remove(&id);
        }
        self.known.insert(
            head.id.clone(),
            KnownAnnouncement {
                sent: head.sent,
                is_answered: true,
            },
        );
        true
    }

    /// The next time that a worker repeats them, all of them are to be answered again.
    pub fn answer_again(&mut self) {
        self.known
            .values_mut()
            .for_each(|known| known.is_answered = false);
    }
}

/// Returns whether it was sent lately, by the clock of its worker.
pub(super) fn is_fresh(head: &AnnouncementHead, now: Timestamp) -> bool {
    now.since(head.sent).max(head.sent.since(now)) < FRESH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(id: usize, second: i64) -> AnnouncementHead {
        AnnouncementHead {
            id: id.to_string(),
            sent: at(second),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(1_000_000 * second)
    }

    /// What an absorber makes of a message: whether it opens it, and whether it answers.
    fn take(replays: &mut ReplayFilter, head: &AnnouncementHead, now: Timestamp) -> (bool, bool) {
        let opens = replays.could_be_new(head, now);
        (opens, opens && replays.take_announcement(head, now))
    }

    #[test]
    fn an_announcement_is_answered_once_and_repetitions_when_there_is_a_reason() {
        let mut replays = ReplayFilter::default();
        assert_eq!(take(&mut replays, &head(1, 0), at(0)), (true, true));
        assert_eq!(
            take(&mut replays, &head(1, 0), at(1)),
            (false, false),
            "the same bytes"
        );
        assert_eq!(
            take(&mut replays, &head(1, 1), at(1)),
            (true, false),
            "repeated by the worker"
        );
        replays.answer_again();
        assert_eq!(
            take(&mut replays, &head(1, 1), at(2)),
            (false, false),
            "the same bytes"
        );
        assert_eq!(take(&mut replays, &head(1, 2), at(2)), (true, true));
        assert_eq!(take(&mut replays, &head(1, 3), at(3)), (true, false));
    }

    #[test]
    fn what_was_sent_long_ago_is_dropped_and_clocks_may_differ_by_less() {
        let mut replays = ReplayFilter::default();
        for (id, (now, is_taken)) in [(300, false), (299, true), (-299, true), (-300, false)]
            .into_iter()
            .enumerate()
        {
            assert_eq!(
                take(&mut replays, &head(id, 0), at(now)),
                (is_taken, is_taken),
                "{now}"
            );
        }
    }

    /// However many there are, none is answered twice, and a new one always is.
    #[test]
    fn what_is_remembered_is_bounded_and_nothing_comes_twice() {
        let mut replays = ReplayFilter::default();
        let sent = |id: usize| head(id, id as i64 / 50);
        let all = 3 * MOST_REMEMBERED;
        for id in 0..all {
            let now = sent(id).sent;
            assert_eq!(take(&mut replays, &sent(id), now), (true, true), "{id}");
            if id % 512 == 0 {
                assert!(
                    (0..=id).all(|old| take(&mut replays, &sent(old), now) == (false, false)),
                    "{id}"
                );
            }
            assert!(replays.known.len() <= MOST_REMEMBERED);
        }
    }
}
