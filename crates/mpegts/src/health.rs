use std::time::Duration;

/// The faults of a stream that ETSI TR 101 290 counts at first and second priority, as far as they
/// show to a receiver that decodes nothing.
///
/// Intervals are those of arrival, as the report defines them, so that a stall on the way counts
/// as a fault of the stream that left it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Fault {
    /// Packets do not follow each other, and the next ones had to be searched (1.1).
    SyncLoss,
    /// A packet does not begin with the sync byte; the next one does (1.2).
    SyncByte,
    /// No PAT for 0.5 s, a scrambled one, or another table on its PID (1.3).
    Pat,
    /// A continuity counter that does not follow, unannounced (1.4).
    Continuity,
    /// No map of a program for 0.5 s, or a scrambled one (1.5).
    Pmt,
    /// No packet of a stream of video or sound, which the map lists, for 5 s (1.6).
    Pid,
    /// A packet with the transport error indicator (2.1).
    Transport,
    /// A section of a table with a wrong checksum (2.2).
    Crc,
    /// More than 100 ms between two program clock references, by their own time and by that of
    /// arrival (2.3a).
    PcrRepetition,
    /// A program clock reference more than 100 ms after the one before, or before it, unannounced
    /// (2.3b).
    PcrDiscontinuity,
    /// A program clock reference over 500 ns off its place in a stream of constant rate (2.4). In
    /// a stream of another rate nothing can be said, and nothing is counted.
    PcrAccuracy,
    /// No presentation time of a stream of video or sound for 700 ms (2.5).
    Pts,
    /// Scrambled packets, and no conditional access table for 10 s or another table on its PID
    /// (2.6).
    Cat,
    /// More than 40 ms between two program clock references: a note, since only DVB recommends it
    /// (ETSI TS 101 154 section 4.1.5.3).
    PcrInterval,
}

impl Fault {
    /// All, in the order of the report.
    pub const ALL: [Self; 14] = [
        Self::SyncLoss,
        Self::SyncByte,
        Self::Pat,
        Self::Continuity,
        Self::Pmt,
        Self::Pid,
        Self::Transport,
        Self::Crc,
        Self::PcrRepetition,
        Self::PcrDiscontinuity,
        Self::PcrAccuracy,
        Self::Pts,
        Self::Cat,
        Self::PcrInterval,
    ];

    /// The number of the indicator in the report; `None` for a note.
    pub fn indicator(self) -> Option<&'static str> {
        let all = [
            "1.1", "1.2", "1.3.a", "1.4", "1.5.a", "1.6", "2.1", "2.2", "2.3a", "2.3b", "2.4",
            "2.5", "2.6",
        ];
        all.get(self as usize).copied()
    }

    /// A name for programs, in lower case, such as `pcr_repetition`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SyncLoss => "sync_loss",
            Self::SyncByte => "sync_byte",
            Self::Pat => "pat",
            Self::Continuity => "continuity",
            Self::Pmt => "pmt",
            Self::Pid => "pid",
            Self::Transport => "transport",
            Self::Crc => "crc",
            Self::PcrRepetition => "pcr_repetition",
            Self::PcrDiscontinuity => "pcr_discontinuity",
            Self::PcrAccuracy => "pcr_accuracy",
            Self::Pts => "pts",
            Self::Cat => "cat",
            Self::PcrInterval => "pcr_interval",
        }
    }
}

/// The number of times that a fault occurred, and when it last did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Occurrences {
    /// Times since the start.
    pub count: u64,
    /// The arrival of the packet that showed it last.
    pub last: Option<Duration>,
}

/// The faults of a stream so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Health {
    faults: [Occurrences; Fault::ALL.len()],
}

impl Health {
    /// The occurrences of one fault.
    pub fn of(&self, fault: Fault) -> Occurrences {
        self.faults[fault as usize]
    }

    /// All faults that occurred.
    pub fn faults(&self) -> impl Iterator<Item = (Fault, Occurrences)> {
        let all = Fault::ALL.into_iter().map(|fault| (fault, self.of(fault)));
        all.filter(|(_, it)| it.count > 0)
    }

    pub(crate) fn count(&mut self, fault: Fault, times: u64, at: Duration) {
        if times > 0 {
            let it = &mut self.faults[fault as usize];
            it.count += times;
            it.last = Some(at);
        }
    }
}

/// The time within which something has to come again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableInterval {
    since: Duration,
    longest: Duration,
}

impl TableInterval {
    pub(crate) fn new(now: Duration, longest: Duration) -> Self {
        Self { since: now, longest }
    }

    /// It came again. Says whether it came too late, if that was not said before.
    pub(crate) fn met(&mut self, now: Duration) -> bool {
        let is_late = now.saturating_sub(self.since) > self.longest;
        self.since = now;
        is_late
    }

    /// Whether it is missing, once for each time that it should have come.
    pub(crate) fn is_overdue(&mut self, now: Duration) -> bool {
        now.saturating_sub(self.since) > self.longest && self.met(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_stand_at_their_place() {
        for (place, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place);
        }
        assert_eq!(Fault::Cat.indicator(), Some("2.6"));
        assert_eq!(Fault::PcrInterval.indicator(), None);
    }

    #[test]
    fn a_missing_thing_is_counted_once_for_each_interval() {
        let ms = Duration::from_millis;
        let mut interval = TableInterval::new(ms(0), ms(500));
        assert!(!interval.met(ms(500)));
        assert!(!interval.is_overdue(ms(900)));
        assert!(interval.is_overdue(ms(1_001)));
        assert!(!interval.is_overdue(ms(1_002)));
        assert!(interval.met(ms(1_600)));
    }
}
