//! Notes of the datagrams that pass a link.

use punctual_sim::LinkEnd;

use crate::common::{MS, Pair, SECS, latency, lossy, srt};

#[test]
fn each_datagram_is_noted_where_it_passes() {
    let mut pair = Pair::new(1, lossy(20, 0.1));
    let stream = pair.stream(srt(&latency(200)), 2, 3);
    pair.add(stream);
    pair.world.watch(pair.there);
    let mut notes = Vec::new();
    for _ in 0..40 {
        pair.world.run_for(MS(100));
        notes.extend(pair.world.take_passages());
    }
    assert!(notes.is_sorted_by_key(|note| note.at), "in order of time");
    assert!(notes.iter().all(|note| note.link == pair.there), "the other link is not watched");
    let count = |gate| notes.iter().filter(|note| note.gate == gate).count() as u64;
    let link = pair.world.link_statistics(pair.there);
    assert_eq!((count(LinkEnd::Entrance), count(LinkEnd::Exit)), (link.sent, link.delivered));
    assert!(link.lost > 20, "{link:?}");
    // A datagram that passed both ends did so 20 ms apart.
    let exit = notes.iter().find(|note| note.gate == LinkEnd::Exit).expect("some arrived");
    let same =
        notes.iter().find(|note| note.content == exit.content && note.at == exit.at - MS(20));
    assert!(same.is_some_and(|note| note.gate == LinkEnd::Entrance));
    pair.world.run_for(SECS(1));
    assert!(!pair.world.take_passages().is_empty() && pair.world.take_passages().is_empty());
}
