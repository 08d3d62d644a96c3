//! The target folder changes as it should, and nothing changes elsewhere.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder for one test, with a target folder in it, removed at its end.
struct Bed(PathBuf);

impl Bed {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "punctual-store-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("target")).expect("it can be made");
        Self(folder)
    }

    fn store(&self) -> Store {
        Store::open(&self.0.join("target")).expect("it is there")
    }

    fn put(&self, name: &str, contents: &str) {
        fs::write(self.0.join("target").join(name), contents).expect("it can be written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join("target").join(name)).unwrap_or_default()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn path(text: &str) -> RelativePath {
    RelativePath::parse(text.as_bytes()).expect("a legal path")
}

fn digest(contents: &str) -> Digest {
    Sha256::digest(contents).into()
}

/// An offer of a file with these contents.
fn offer(name: &str, contents: &str) -> FileOffer {
    let fingerprint = fingerprint_of(contents.as_bytes()).unwrap();
    FileOffer { path: path(name), size: contents.len() as u64, fingerprint }
}

fn compare(store: &Store, offer: &FileOffer, contents: &str) -> Option<Prefix> {
    let found = store.look(offer).unwrap();
    store.compare(offer, found, &digest(contents), |_| ()).unwrap()
}

#[test]
fn a_file_has_a_temporary_name_until_it_is_complete() {
    let bed = Bed::new();
    let store = bed.store();
    let mut incoming = store.begin(&path("a/b/c.ts"), None, Prefix::default()).unwrap();
    incoming.write(b"some").unwrap();
    assert_eq!((bed.read("a/b/.c.ts.part"), bed.read("a/b/c.ts")), ("some".into(), "".into()));
    incoming.write(b"thing").unwrap();
    assert_eq!((incoming.len(), incoming.digest()), (9, digest("something")));
    incoming.finish().unwrap();
    assert_eq!(bed.read("a/b/c.ts"), "something");
    assert!(!bed.0.join("target/a/b/.c.ts.part").exists());
}

#[test]
fn an_interrupted_file_is_found_and_resumed() {
    let bed = Bed::new();
    let store = bed.store();
    let whole = offer("c.ts", "something");
    let begin = |prefix| store.begin(&whole.path, Some(whole.fingerprint), prefix).unwrap();
    assert_eq!(store.look(&whole).unwrap(), Found::Part(0));
    drop(begin(Prefix::default()).write(b"some"));
    assert_eq!(store.look(&whole).unwrap(), Found::Part(4));
    assert!(compare(&store, &whole, "sums").is_none());
    let part = compare(&store, &whole, "some").expect("the same bytes");
    assert_eq!((part.len, part.digest()), (4, digest("some")));
    // Nothing of it can be used if the file has become shorter.
    let shorter = FileOffer { size: 3, ..whole.clone() };
    assert_eq!(store.look(&shorter).unwrap(), Found::Part(0));
    let mut incoming = begin(part);
    incoming.write(b"thing").unwrap();
    assert_eq!(incoming.digest(), digest("something"));
    incoming.finish().unwrap();
    assert_eq!(bed.read("c.ts"), "something");
    assert_eq!(store.look(&whole).unwrap(), Found::Whole);
    assert!(compare(&store, &whole, "something").is_some());
    assert!(compare(&store, &whole, "some").is_none());
}

#[test]
fn another_file_of_the_same_name_leaves_the_bytes_that_are_kept() {
    let bed = Bed::new();
    let store = bed.store();
    let (mine, other) = (offer("c.ts", "something"), offer("c.ts", "forged!!!"));
    let begin = |offer: &FileOffer| {
        store.begin(&offer.path, Some(offer.fingerprint), Prefix::default()).unwrap()
    };
    drop(begin(&mine).write(b"some"));
    assert_eq!(store.look(&other).unwrap(), Found::Part(0));
    drop(begin(&other).write(b"forged"));
    // Segments and streams of bytes have no fingerprint.
    drop(store.begin(&mine.path, None, Prefix::default()).unwrap().write(b"forged"));
    assert_eq!(store.look(&mine).unwrap(), Found::Part(4));
    assert!(compare(&store, &mine, "some").is_some());
}

#[test]
fn an_offer_reads_no_more_of_a_file_than_its_fingerprint_covers() {
    let bed = Bed::new();
    let sample = usize::try_from(SAMPLE).unwrap();
    let contents = "a".repeat(sample) + "mine";
    bed.put("c.ts", &contents);
    let store = bed.store();
    let wrong = FileOffer { fingerprint: Fingerprint([0; 8]), ..offer("c.ts", &contents) };
    assert!(matches!(store.look(&wrong), Err(StoreError::Exists)), "there is nothing to compare");
    let alike = "a".repeat(sample) + "alas";
    let alike = offer("c.ts", &alike);
    assert_eq!(store.look(&alike).unwrap(), Found::Whole);
    let mut read = 0;
    let compared = store.compare(&alike, Found::Whole, &digest("alas"), |count| read += count);
    assert!(compared.unwrap().is_none());
    assert_eq!(read, contents.len(), "it is told how much is read");
}

#[cfg(unix)]
#[test]
fn a_file_with_another_name_is_not_written_through() {
    let bed = Bed::new();
    let store = bed.store();
    let offer = offer("c.ts", "something");
    let outside = bed.0.join("outside");
    for fingerprint in [None, Some(offer.fingerprint)] {
        fs::write(&outside, "some").unwrap();
        let part = bed.0.join("target").join(offer.path.part_name(fingerprint));
        fs::hard_link(&outside, &part).unwrap();
        assert_eq!(store.look(&offer).unwrap(), Found::Part(0), "it is nobody's part");
        let mut incoming = store.begin(&offer.path, fingerprint, Prefix::default()).unwrap();
        incoming.write(b"forged").unwrap();
        incoming.discard();
        // Even if it came after the comparison.
        fs::hard_link(&outside, &part).unwrap();
        let prefix = Prefix { len: 4, ..Prefix::default() };
        let mut incoming = store.begin(&offer.path, fingerprint, prefix).unwrap();
        assert_eq!(incoming.len(), 0);
        incoming.write(b"forged").unwrap();
        incoming.discard();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "some");
    }
}

#[test]
fn existing_files_stay_unless_the_store_replaces_them() {
    let bed = Bed::new();
    bed.put("c.ts", "mine");
    let store = bed.store();
    assert!(matches!(store.look(&offer("c.ts", "something")), Err(StoreError::Exists)));
    assert!(store.begin(&path("c.ts"), None, Prefix::default()).is_err());
    // A file that appears meanwhile stays as well.
    let incoming = store.begin(&path("d.ts"), None, Prefix::default()).unwrap();
    bed.put("d.ts", "mine");
    assert!(incoming.finish().is_err());
    assert_eq!((bed.read("c.ts"), bed.read("d.ts")), ("mine".into(), "mine".into()));
    let store = bed.store().replacing();
    assert_eq!(store.look(&offer("c.ts", "something")).unwrap(), Found::Part(0));
    let mut incoming = store.begin(&path("c.ts"), None, Prefix::default()).unwrap();
    incoming.write(b"theirs").unwrap();
    assert_eq!(bed.read("c.ts"), "mine", "until the other one is complete");
    incoming.finish().unwrap();
    assert_eq!(bed.read("c.ts"), "theirs");
}

#[test]
fn two_transfers_do_not_write_the_same_file() {
    let bed = Bed::new();
    let store = bed.store();
    let first = store.begin(&path("c.ts"), None, Prefix::default()).unwrap();
    let second = store.begin(&path("c.ts"), None, Prefix::default());
    assert!(matches!(second, Err(StoreError::InUse)));
    drop(first);
    assert!(store.begin(&path("c.ts"), None, Prefix::default()).is_ok());
}

#[test]
fn nothing_is_kept_of_a_file_that_is_discarded() {
    let bed = Bed::new();
    let store = bed.store();
    let mut incoming = store.begin(&path("c.ts"), None, Prefix::default()).unwrap();
    incoming.write(b"garbled").unwrap();
    incoming.discard();
    assert_eq!(fs::read_dir(bed.0.join("target")).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn links_in_the_folder_are_not_followed() {
    use std::os::unix::fs::symlink;
    let bed = Bed::new();
    let outside = bed.0.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "mine").unwrap();
    let target = bed.0.join("target");
    symlink(&outside, target.join("folder")).unwrap();
    symlink(outside.join("secret"), target.join("file")).unwrap();
    symlink(outside.join("new"), target.join("dangling")).unwrap();
    symlink(outside.join("secret"), target.join(".c.ts.part")).unwrap();
    let store = bed.store().replacing();
    for name in ["folder/secret", "folder/new", "file", "dangling", "c.ts", "file/under"] {
        assert!(store.begin(&path(name), None, Prefix::default()).is_err(), "{name}");
        if name != "c.ts" {
            assert!(store.look(&offer(name, "mine")).is_err(), "{name}");
        }
    }
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "mine");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
