//! What was sent against what was shown, counted from outside.

use std::collections::BTreeMap;

/// What the owners of one checkpoint showed of the messages `message 1` to `message SENT`.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    sent: u64,
    /// How often each number was shown, by whomever.
    shown: BTreeMap<u64, u64>,
    /// Whom, and how many rows.
    by: Vec<(String, u64)>,
}

impl Verdict {
    pub(crate) fn of(sent: u64) -> Self {
        Self {
            sent,
            ..Self::default()
        }
    }

    /// Counts the rows in an owner's stdout.
    pub(crate) fn count(&mut self, owner: &str, out: &[String]) {
        let mut rows = 0;
        for number in out.iter().filter_map(|line| number(line)) {
            *self.shown.entry(number).or_default() += 1;
            rows += 1;
        }
        self.by.push((owner.to_owned(), rows));
    }

    /// Messages shown more than once.
    pub(crate) fn twice(&self) -> usize {
        self.shown.values().filter(|count| **count > 1).count()
    }

    /// Messages not shown.
    pub(crate) fn missing(&self) -> usize {
        (1..=self.sent)
            .filter(|number| !self.shown.contains_key(number))
            .count()
    }

    /// Whether everything was shown once, and each owner had a part in it.
    pub(crate) fn is_good(&self) -> bool {
        self.sent > 0
            && self.twice() == 0
            && self.missing() == 0
            && self.shown.keys().all(|number| *number <= self.sent)
            && self.by.iter().all(|(_, rows)| *rows > 0)
    }

    /// Names and numbers, in order.
    pub(crate) fn lines(&self) -> Vec<(String, u64)> {
        let mut lines = vec![("sent".to_owned(), self.sent)];
        lines.extend(
            self.by
                .iter()
                .map(|(owner, rows)| (format!("shown by {owner}"), *rows)),
        );
        lines.push(("shown twice".to_owned(), self.twice() as u64));
        lines.push(("missing".to_owned(), self.missing() as u64));
        lines
    }
}

/// The number in a row of the console, `|0 |17 |message 52 |`.
pub(crate) fn number(line: &str) -> Option<u64> {
    let row = line.strip_prefix('|')?;
    row.split('|')
        .find_map(|cell| cell.trim().strip_prefix("message ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(numbers: &[u64]) -> Vec<String> {
        let head = ["+---+", "|partition|message  |"].map(str::to_owned);
        let rows = numbers.iter().map(|n| format!("|0        |message {n}|"));
        head.into_iter().chain(rows).collect()
    }

    fn check(sent: u64, v1: &[u64], v2: &[u64], twice_missing_good: (usize, usize, bool)) {
        let mut verdict = Verdict::of(sent);
        verdict.count("v1", &rows(v1));
        verdict.count("v2", &rows(v2));
        let found = (verdict.twice(), verdict.missing(), verdict.is_good());
        assert_eq!(found, twice_missing_good, "{verdict:?}");
    }

    #[test]
    fn each_message_shown_once_is_good() {
        check(4, &[2, 1], &[4, 3], (0, 0, true));
    }

    #[test]
    fn a_gap_and_a_repetition_at_the_hand_over_are_seen() {
        check(4, &[1, 2], &[4], (0, 1, false));
        check(4, &[1, 2, 3], &[3, 4], (1, 0, false));
    }

    #[test]
    fn a_message_that_nobody_sent_and_an_owner_without_a_part_are_seen() {
        check(2, &[1], &[2, 3], (0, 0, false));
        check(2, &[1, 2], &[], (0, 0, false));
    }
}
