use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use punctual_mpegts::{Checker, PACKET_LEN};

/// Checks that the stream arrived, whatever came after it.
///
/// # Panics
///
/// If it did not.
pub fn assert_arrived_whole(received: &Path, sent: &[u8]) {
    let bytes = fs::read(received).expect("something was received");
    let same = common_start(&bytes, sent);
    let (got, all) = (bytes.len(), sent.len());
    assert!(same == all, "{same} bytes as sent, then not; {got} received, {all} sent");
    assert_continuous(&bytes[..all]);
}

/// Checks that the stream arrived up to its last part. A peer that ends at the end of its stream
/// loses the data that is still under way: the peers stop sending and retransmitting at once. All
/// data before that must be there.
///
/// # Panics
///
/// If they are not.
pub fn assert_arrived_up_to_the_end(received: &Path, sent: &[u8]) {
    let bytes = fs::read(received).expect("something was received");
    let same = common_start(&bytes, sent);
    let (got, all) = (bytes.len(), sent.len());
    assert!(same + TAIL >= all, "{same} bytes as sent, then not; {got} received, {all} sent");
    assert_continuous(&bytes[..same / PACKET_LEN * PACKET_LEN]);
}

/// The length of the common beginning.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn assert_continuous(stream: &[u8]) {
    let mut checker = Checker::default();
    checker.push(stream);
    checker.finish();
    let report = checker.report();
    let total = report.total();
    assert!(total.packets > 1_000, "this is not the stream: {report:?}");
    assert_eq!((report.sync_losses, report.skipped_bytes), (0, 0), "{report:?}");
    assert_eq!((total.continuity_errors, total.pcr_discontinuities), (0, 0), "{report:?}");
}

/// Waits until the file has `size` bytes, or the time is over: what is missing is for a comparison
/// to say.
pub fn wait_for_size(path: &Path, size: usize, limit: Duration) {
    let deadline = Instant::now() + limit;
    while size_of(path) < size && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the file has stopped growing for a second.
pub fn wait_for_silence(path: &Path) {
    let mut last = (size_of(path), Instant::now());
    while last.1.elapsed() < Duration::from_secs(1) {
        thread::sleep(Duration::from_millis(50));
        let size = size_of(path);
        if size != last.0 {
            last = (size, Instant::now());
        }
    }
}

fn size_of(path: &Path) -> usize {
    fs::metadata(path).map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX))
}

/// Bytes of the stream in 700 ms: latency, round trip, and the peer's own buffers.
const TAIL: usize = 5_000_000 / 8 * 7 / 10;
