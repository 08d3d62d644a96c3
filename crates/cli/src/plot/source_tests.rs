use super::*;

fn source(text: &str) -> Source {
    let table = StatsTable::parse(text).unwrap();
    let rows = table.connections.into_iter().next().unwrap();
    let (period, counts_go_on) = (period(&rows), go_on(&rows));
    let (name, file, kind) = (String::new(), String::new(), table.kind);
    Source { name, slot: 0, file, kind, rows, offset: 0.0, period, counts_go_on }
}

fn table(start: &str, end: &str) -> StatsTable {
    StatsTable::parse(&format!("Timepoint,msRTT\n{start},1\n{end},1\n")).unwrap()
}

#[test]
fn counts_that_go_on_are_told_from_counts_of_a_row() {
    let fresh = source("Time,pktSent\n0,47\n100,48\n200,47\n300,48\n400,200\n500,47\n");
    assert_eq!((fresh.counts_go_on, fresh.total("pktSent")), (false, Some(437.0)));
    let total = source("Time,pktSent\n0,47\n100,95\n200,142\n300,190\n400,237\n500,285\n");
    assert_eq!((total.counts_go_on, total.total("pktSent")), (true, Some(285.0)));
    assert_eq!(total.counts("pktSent")[2], (0.2, 47.0));
}

#[test]
fn the_last_part_of_a_period_is_no_fall() {
    let rows = source("Time,pktSent\n0,100\n1000,100\n2000,100\n3000,100\n3250,25\n3260,1\n");
    let drawn = rows.counts_in_a_period("pktSent");
    assert_eq!(drawn.last(), Some(&(3.25, 100.0)), "{drawn:?}");
    assert!(drawn.iter().all(|(_, count)| *count == 100.0), "{drawn:?}");
    assert_eq!(rows.total("pktSent"), Some(426.0));
}

#[test]
fn a_capacity_that_was_not_measured_yet_is_not_drawn() {
    let rows = source("Time,mbpsBandwidth,pktSent\n0,0,0\n1000,0,0\n2000,4.5,9\n");
    assert_eq!(rows.points("mbpsBandwidth", 1.0), [(2.0, 4.5)]);
    assert_eq!(rows.points("pktSent", 1.0).len(), 3);
}

#[test]
fn links_of_a_group_are_named_by_their_addresses() {
    let rows = |id: u32, peer: &str| {
        let text = format!("Timepoint,SocketID,msRTT,peer\n2026-01-02T03:04:00Z,{id},1,{peer}\n");
        StatsTable::parse(&text).unwrap().connections.remove(0)
    };
    let mut sources: Vec<Source> = Vec::new();
    for (id, peer, expected) in [
        (1 << 30 | 5, "", "run group"),
        (2_018_481, "10.0.0.1:4200", "run 10.0.0.1:4200"),
        (2_018_482, "10.0.0.1:42001", "run 10.0.0.1:42001"),
        // It was called again.
        (2_018_483, "10.0.0.1:4200", "run 10.0.0.1:4200 (2)"),
        (2_018_484, "10.0.0.1:4200", "run 10.0.0.1:4200 (3)"),
        (7, "", "run #7"),
    ] {
        let name = name_of("run", &rows(id, peer), &sources);
        assert_eq!(name, expected);
        sources.push(Source { name, ..source("Time,msRTT\n0,1\n") });
    }
}

#[test]
fn overlapping_files_share_a_clock_and_others_begin_at_zero() {
    let files = [PathBuf::from("a.csv"), PathBuf::from("b.csv")];
    let one = table("2026-01-02T03:04:00Z", "2026-01-02T03:05:00Z");
    let during = table("2026-01-02T05:04:30+0200", "2026-01-02T05:06:00+0200");
    let later = table("2026-01-02T04:00:00Z", "2026-01-02T04:01:00Z");
    let chosen = |other: &StatsTable, wish| choose(&[one.clone(), other.clone()], &files, wish);
    assert_eq!(chosen(&during, None).unwrap(), TimeAlignment::Clock);
    assert_eq!(chosen(&later, None).unwrap(), TimeAlignment::Start);
    assert_eq!(chosen(&later, Some(TimeAlignment::Clock)).unwrap(), TimeAlignment::Clock);
    let without = StatsTable::parse("Time,msRTT\n0,1\n").unwrap();
    assert_eq!(chosen(&without, None).unwrap(), TimeAlignment::Start);
    let error = chosen(&without, Some(TimeAlignment::Clock)).unwrap_err();
    assert!(error.is_usage() && error.to_string().starts_with("b.csv: "), "{error}");
}

#[test]
fn files_of_one_name_are_told_apart_by_their_folder() {
    let files = ["one/stats.csv", "two/stats.csv", "other.csv"].map(PathBuf::from);
    assert_eq!(distinct_names(&files), ["one/stats.csv", "two/stats.csv", "other"]);
}
