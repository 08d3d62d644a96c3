//! Hooks with real programs: who starts, who ends, and what they are told.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_relay_hooks::{Hook, HookConnection, HookEvent, HookEventKind, HookResult, Hooks};
use punctual_units::UtcTime;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use HookEventKind::{Available, Read, RecordSegmentComplete, Refused, Unavailable, Unread};

fn hooks(hooks: &[Hook]) -> Hooks {
    let all = Hooks::new(UtcTime::default(), Handle::current());
    all.change(hooks).unwrap();
    all
}

fn event(kind: HookEventKind) -> HookEvent {
    HookEvent::new(kind, UtcTime::default()).of_stream("live/cam")
}

fn of_caller(kind: HookEventKind, id: usize) -> HookEvent {
    let connection = HookConnection { id: id.to_string(), ..HookConnection::default() };
    event(kind).of_connection(connection)
}

/// A hook that runs this script, in which `$0` is the path of the file.
fn script(on: &[HookEventKind], script: &str, file: &Path) -> Hook {
    let words = ["sh", "-c", script, file.to_str().unwrap()];
    Hook::run(on, words.map(str::to_owned).to_vec()).unwrap()
}

/// Waits until the file has this number of lines, and gives them.
async fn lines(file: &Path, count: usize) -> Vec<String> {
    let there = async {
        loop {
            let text = fs::read_to_string(file).unwrap_or_default();
            if text.ends_with('\n') && text.lines().count() >= count {
                return text.lines().map(str::to_owned).collect();
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), there).await.expect("the lines come")
}

/// Waits until a process is gone, or waits for nobody but its parent.
async fn gone(pid: &str) {
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    let lives = || {
        let stat = fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    let there = async {
        while lives() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), there).await.expect("the process ends");
}

async fn idle(hooks: &Hooks) {
    let there = async {
        while hooks.programs() > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), there).await.expect("the programs end");
}

/// A place for a file.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out");
    (folder, file)
}

#[tokio::test]
async fn a_program_gets_the_event_in_its_environment_and_no_input() {
    let (_folder, file) = place();
    let write = "cat; echo \"$PUNCTUAL_EVENT $MTX_PATH $PUNCTUAL_STREAM_FILE $1\" >> \"$0\"";
    let mut words = ["sh", "-c", write].map(str::to_owned).to_vec();
    words.extend([file.to_str().unwrap().to_owned(), "srt://h?streamid=${MTX_PATH}".to_owned()]);
    let hooks = hooks(&[Hook::run(&[Unavailable], words).unwrap()]);
    hooks.tell(&event(Unavailable));
    let expected = "unavailable live/cam live_cam srt://h?streamid=live/cam";
    assert_eq!(lines(&file, 1).await, [expected]);
    idle(&hooks).await;
    assert_eq!(hooks.counts(), [(Unavailable, HookResult::Done, 1)]);
}

#[tokio::test]
async fn the_end_of_a_state_ends_the_whole_group_of_its_program() {
    let (_folder, file) = place();
    let start = "sleep 1000 & echo $$ >> \"$0\"; echo $! >> \"$0\"; wait";
    let hooks = hooks(&[script(&[Available], start, &file)]);
    hooks.tell(&event(Available));
    let pids = lines(&file, 2).await;
    hooks.tell(&event(Unavailable).of_stream("live/other"));
    assert_eq!(hooks.programs(), 1);
    hooks.tell(&event(Unavailable));
    for pid in &pids {
        gone(pid).await;
    }
    idle(&hooks).await;
    assert_eq!(hooks.counts(), [(Available, HookResult::Done, 1)]);
}

#[tokio::test]
async fn a_program_that_ignores_the_interrupt_is_killed() {
    let (_folder, file) = place();
    let start = "trap '' INT; echo $$ >> \"$0\"; while :; do sleep 1; done";
    let hooks = hooks(&[script(&[Available], start, &file)]);
    hooks.tell(&event(Available));
    let pids = lines(&file, 1).await;
    hooks.tell(&event(Unavailable));
    gone(&pids[0]).await;
}

#[tokio::test]
async fn processes_that_a_program_leaves_in_its_group_end_with_it() {
    let (_folder, file) = place();
    let start = "sleep 1000 & echo $! >> \"$0\"";
    let hooks = hooks(&[script(&[Unavailable], start, &file)]);
    hooks.tell(&event(Unavailable));
    gone(&lines(&file, 1).await[0]).await;
}

#[tokio::test]
async fn the_same_event_does_not_multiply_a_program() {
    let (_folder, file) = place();
    // Debian's sh forgets a signal that comes while it starts a program, and does not while it
    // waits for one.
    let start = "trap 'sleep 0.5; echo end >> \"$0\"; exit' INT; echo start >> \"$0\"; \
                 sleep 1000 & wait";
    let hooks = hooks(&[script(&[Available], start, &file)]);
    (0..10).for_each(|_| hooks.tell(&event(Available)));
    lines(&file, 1).await;
    // The stream goes and comes again and again while the program is still busy with its end.
    for _ in 0..10 {
        hooks.tell(&event(Unavailable));
        hooks.tell(&event(Available));
    }
    assert_eq!(lines(&file, 3).await, ["start", "end", "start"]);
    assert_eq!(hooks.programs(), 1);
    hooks.end(Duration::from_secs(30)).await;
    assert_eq!(lines(&file, 4).await, ["start", "end", "start", "end"]);
}

#[tokio::test]
async fn a_program_is_started_again_only_while_its_state_lasts() {
    let (_folder, file) = place();
    let hook = script(&[Available], "echo $$ >> \"$0\"; exit 3", &file).with_restart().unwrap();
    let hooks = hooks(&[hook]);
    hooks.tell(&event(Available));
    let pids = lines(&file, 2).await;
    assert_ne!(pids[0], pids[1]);
    hooks.tell(&event(Unavailable));
    idle(&hooks).await;
    // The second one may still have been at work when the state ended.
    let runs: u64 = hooks.counts().iter().map(|(_, _, count)| count).sum();
    assert_eq!(runs, 2, "{:?}", hooks.counts());
}

#[tokio::test]
async fn a_viewer_has_a_program_of_its_own() {
    let (_folder, file) = place();
    let start = "echo $MTX_READER_ID >> \"$0\"; exec sleep 1000";
    let hooks = hooks(&[script(&[Read], start, &file)]);
    (1..=2).for_each(|id| hooks.tell(&of_caller(Read, id)));
    let mut found = lines(&file, 2).await;
    found.sort_unstable();
    assert_eq!(found, ["1", "2"]);
    hooks.tell(&of_caller(Unread, 1));
    timeout(Duration::from_secs(30), async {
        while hooks.programs() != 1 {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_flood_of_events_starts_a_limited_number_of_programs() {
    let (_folder, file) = place();
    let flooded = script(&[Refused], "exec sleep 1000", &file);
    let other = script(&[Available], "echo here >> \"$0\"; exec sleep 1000", &file);
    let hooks = hooks(&[flooded, other]);
    (0..Hooks::PROGRAMS_MOST + 8).for_each(|id| hooks.tell(&of_caller(Refused, id)));
    assert_eq!(hooks.programs(), Hooks::PROGRAMS_MOST);
    assert_eq!(hooks.counts(), [(Refused, HookResult::LeftOut, 8)]);
    hooks.tell(&event(Available));
    assert_eq!(lines(&file, 1).await, ["here"], "another hook has room of its own");
}

#[tokio::test]
async fn a_name_is_never_read_as_a_command_or_an_option() {
    let (folder, file) = place();
    let made = folder.path().join("made");
    let name = format!("a;touch {}", made.display());
    let word = format!("touch {}-$MTX_PATH", file.display());
    let in_a_word = ["env", "sh", "-e", "eval", &word].map(str::to_owned).to_vec();
    let hooks = hooks(&[
        Hook::run(&[RecordSegmentComplete], in_a_word).unwrap(),
        script(&[Unavailable], "echo \"$MTX_PATH\" >> \"$0\"", &file),
    ]);
    hooks.tell(&event(RecordSegmentComplete).of_stream(name.clone()));
    hooks.tell(&event(Unavailable).of_stream(name.clone()));
    assert_eq!(lines(&file, 1).await, [name], "a script gets it as data");
    idle(&hooks).await;
    let (done, failed) = (HookResult::Done, HookResult::Failed);
    assert_eq!(hooks.counts(), [(Unavailable, done, 1), (RecordSegmentComplete, failed, 1)]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_program_that_runs_too_long_or_cannot_be_started_has_failed() {
    let (_folder, file) = place();
    let slow = script(&[Unavailable], "echo $$ >> \"$0\"; exec sleep 1000", &file);
    let missing = Hook::run(&[Refused], vec!["/nowhere/program".to_owned()]).unwrap();
    let hooks = hooks(&[slow.with_timeout(Duration::from_millis(300)), missing]);
    hooks.tell(&event(Unavailable));
    hooks.tell(&of_caller(Refused, 1));
    gone(&lines(&file, 1).await[0]).await;
    idle(&hooks).await;
    let failed = HookResult::Failed;
    assert_eq!(hooks.counts(), [(Refused, failed, 1), (Unavailable, failed, 1)]);
}

#[tokio::test]
async fn a_change_ends_the_programs_of_hooks_that_are_gone_only() {
    let (_folder, file) = place();
    let make = |word: &str| {
        script(&[Available], &format!("echo {word} $$ >> \"$0\"; exec sleep 1000"), &file)
    };
    let hooks = hooks(&[make("stays"), make("goes")]);
    hooks.tell(&event(Available));
    let found = lines(&file, 2).await;
    let pid = |word: &str| {
        let line = found.iter().find(|line| line.starts_with(word)).unwrap();
        line.split(' ').next_back().unwrap().to_owned()
    };
    hooks.change(&[make("stays"), make("new")]).unwrap();
    gone(&pid("goes")).await;
    assert!(Path::new(&format!("/proc/{}", pid("stays"))).exists());
    hooks.tell(&event(Unavailable));
    gone(&pid("stays")).await;
}

#[tokio::test]
async fn programs_end_with_the_hooks() {
    let (_folder, file) = place();
    let start = "sleep 1000 & echo $! >> \"$0\"; wait";
    for is_ended in [true, false] {
        let _ = fs::remove_file(&file);
        let hooks = hooks(&[script(&[Available], start, &file)]);
        hooks.tell(&event(Available));
        let pids = lines(&file, 1).await;
        if is_ended {
            hooks.end(Duration::from_secs(30)).await;
        } else {
            drop(hooks);
        }
        gone(&pids[0]).await;
    }
}
