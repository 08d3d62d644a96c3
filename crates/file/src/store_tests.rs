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

#[test]
fn a_file_has_a_temporary_name_until_it_is_complete() {
    let bed = Bed::new();
    let store = bed.store();
    let mut incoming = store.begin(&path("a/b/c.ts"), Prefix::default()).unwrap();
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
    let name = path("c.ts");
    let Found::Part(empty) = store.look(&name, 9).unwrap() else { panic!("nothing is there") };
    assert_eq!((empty.len, empty.digest()), (0, digest("")));
    drop(store.begin(&name, empty).unwrap().write(b"some"));
    let Found::Part(part) = store.look(&name, 9).unwrap() else { panic!("it is not complete") };
    assert_eq!((part.len, part.digest()), (4, digest("some")));
    // Nothing of it can be used if the file has become shorter.
    assert!(matches!(store.look(&name, 3), Ok(Found::Part(Prefix { len: 0, .. }))));
    let mut incoming = store.begin(&name, part).unwrap();
    incoming.write(b"thing").unwrap();
    assert_eq!(incoming.digest(), digest("something"));
    incoming.finish().unwrap();
    assert_eq!(bed.read("c.ts"), "something");
    assert!(matches!(store.look(&name, 9), Ok(Found::Whole(it)) if it == digest("something")));
}

#[test]
fn existing_files_stay_unless_the_store_replaces_them() {
    let bed = Bed::new();
    bed.put("c.ts", "mine");
    let store = bed.store();
    assert!(matches!(store.look(&path("c.ts"), 9), Err(StoreError::Exists)));
    assert!(store.begin(&path("c.ts"), Prefix::default()).is_err());
    // A file that appears meanwhile stays as well.
    let incoming = store.begin(&path("d.ts"), Prefix::default()).unwrap();
    bed.put("d.ts", "mine");
    assert!(incoming.finish().is_err());
    assert_eq!((bed.read("c.ts"), bed.read("d.ts")), ("mine".into(), "mine".into()));
    let store = bed.store().replacing();
    assert!(matches!(store.look(&path("c.ts"), 9), Ok(Found::Part(_))));
    let mut incoming = store.begin(&path("c.ts"), Prefix::default()).unwrap();
    incoming.write(b"theirs").unwrap();
    assert_eq!(bed.read("c.ts"), "mine", "until the other one is complete");
    incoming.finish().unwrap();
    assert_eq!(bed.read("c.ts"), "theirs");
}

#[test]
fn two_transfers_do_not_write_the_same_file() {
    let bed = Bed::new();
    let store = bed.store();
    let first = store.begin(&path("c.ts"), Prefix::default()).unwrap();
    let second = store.begin(&path("c.ts"), Prefix::default());
    assert!(matches!(second, Err(StoreError::InUse)));
    drop(first);
    assert!(store.begin(&path("c.ts"), Prefix::default()).is_ok());
}

#[test]
fn nothing_is_kept_of_a_file_that_is_discarded() {
    let bed = Bed::new();
    let store = bed.store();
    let mut incoming = store.begin(&path("c.ts"), Prefix::default()).unwrap();
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
        assert!(store.look(&path(name), 4).is_err(), "{name}");
        assert!(store.begin(&path(name), Prefix::default()).is_err(), "{name}");
    }
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "mine");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
