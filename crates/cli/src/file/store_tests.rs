//! What happens in the target folder, and that nothing happens elsewhere.

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

    fn store(&self, overwrites: bool) -> Store {
        Store::open(&self.0.join("target"), overwrites).expect("it is there")
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
fn a_file_has_a_temporary_name_until_it_is_whole_and_folders_are_made() {
    let bed = Bed::new();
    let store = bed.store(false);
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
fn what_came_before_an_interruption_is_found_and_gone_on_with() {
    let bed = Bed::new();
    let store = bed.store(false);
    let name = path("c.ts");
    let Found::Part(none) = store.look(&name, 9).unwrap() else { panic!("nothing is there") };
    assert_eq!((none.len, none.digest()), (0, digest("")));
    drop(store.begin(&name, none).unwrap().write(b"some"));
    let Found::Part(part) = store.look(&name, 9).unwrap() else { panic!("it is not whole") };
    assert_eq!((part.len, part.digest()), (4, digest("some")));
    // Of a file that became shorter nothing can be used.
    assert!(matches!(store.look(&name, 3), Ok(Found::Part(Prefix { len: 0, .. }))));
    let mut incoming = store.begin(&name, part).unwrap();
    incoming.write(b"thing").unwrap();
    assert_eq!(incoming.digest(), digest("something"));
    incoming.finish().unwrap();
    assert_eq!(bed.read("c.ts"), "something");
    assert!(matches!(store.look(&name, 9), Ok(Found::Whole(it)) if it == digest("something")));
}

#[test]
fn files_that_are_there_are_kept_unless_they_are_to_be_replaced() {
    let bed = Bed::new();
    bed.put("c.ts", "mine");
    let store = bed.store(false);
    assert!(store.look(&path("c.ts"), 9).unwrap_err().contains("--overwrite"));
    assert!(store.begin(&path("c.ts"), Prefix::default()).is_err());
    // One that appears meanwhile is kept as well.
    let incoming = store.begin(&path("d.ts"), Prefix::default()).unwrap();
    bed.put("d.ts", "mine");
    assert!(incoming.finish().is_err());
    assert_eq!((bed.read("c.ts"), bed.read("d.ts")), ("mine".into(), "mine".into()));
    let store = bed.store(true);
    assert!(matches!(store.look(&path("c.ts"), 9), Ok(Found::Part(_))));
    let mut incoming = store.begin(&path("c.ts"), Prefix::default()).unwrap();
    incoming.write(b"theirs").unwrap();
    assert_eq!(bed.read("c.ts"), "mine", "until the other one is whole");
    incoming.finish().unwrap();
    assert_eq!(bed.read("c.ts"), "theirs");
}

#[test]
fn two_transfers_do_not_write_one_file() {
    let bed = Bed::new();
    let store = bed.store(false);
    let first = store.begin(&path("c.ts"), Prefix::default()).unwrap();
    let second = store.begin(&path("c.ts"), Prefix::default());
    assert!(second.unwrap_err().contains("another transfer"));
    drop(first);
    assert!(store.begin(&path("c.ts"), Prefix::default()).is_ok());
}

#[test]
fn of_a_file_that_did_not_arrive_as_it_was_nothing_is_kept() {
    let bed = Bed::new();
    let store = bed.store(false);
    let mut incoming = store.begin(&path("c.ts"), Prefix::default()).unwrap();
    incoming.write(b"garbled").unwrap();
    incoming.discard();
    assert_eq!(fs::read_dir(bed.0.join("target")).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn links_in_the_folder_lead_nowhere() {
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
    let store = bed.store(true);
    for name in ["folder/secret", "folder/new", "file", "dangling", "c.ts", "file/under"] {
        assert!(store.look(&path(name), 4).is_err(), "{name}");
        assert!(store.begin(&path(name), Prefix::default()).is_err(), "{name}");
    }
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "mine");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
