use std::fs;
use std::io;

/// The TCP segments of a network namespace.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// How often a retransmission timer ended.
    pub timeouts: u64,
}

impl Counters {
    /// Those of the namespace of this thread, since it was made.
    ///
    /// # Errors
    ///
    /// The kernel does not tell them.
    pub fn of_this_thread() -> io::Result<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        let (basic, more) = (read("snmp")?, read("netstat")?);
        let of = |text: &str, table: &str, name: &str| {
            let message = format!("the kernel does not count `{name}`");
            counter(text, table, name).ok_or_else(|| io::Error::other(message))
        };
        Ok(Self {
            // Retransmissions are counted apart.
            sent: of(&basic, "Tcp:", "OutSegs")? + of(&basic, "Tcp:", "RetransSegs")?,
            retransmitted: of(&basic, "Tcp:", "RetransSegs")?,
            timeouts: of(&more, "TcpExt:", "TCPTimeouts")?,
        })
    }
}

/// A counter of a table, which is a line of names and a line of values.
fn counter(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|known| known == name)?;
    values.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: A OutSegs C\nTcp: -1 34 5\n";
        assert_eq!(counter(text, "Tcp:", "OutSegs"), Some(34));
        assert_eq!((counter(text, "Tcp:", "B"), counter(text, "Udp:", "A")), (None, None));
        // A negative one is no count.
        assert_eq!(counter(text, "Tcp:", "A"), None);
    }

    #[test]
    fn the_kernel_counts_segments_of_tcp() {
        let counters = Counters::of_this_thread().expect("Linux does");
        assert!(counters.retransmitted <= counters.sent);
    }
}
