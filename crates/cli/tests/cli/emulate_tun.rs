//! Two sides and the commands on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{Folder, Program, run};
use interop::{Tool, have_all, skip};
use punctual_emulator::check_tun;

/// Whether this process may make two sides, and the programs are there that run on them. If not,
/// says so.
fn allowed(tools: &[Tool]) -> bool {
    match check_tun() {
        Ok(()) => have_all(tools),
        Err(error) => {
            skip(&error.to_string());
            false
        }
    }
}

/// Runs two sides with these options.
fn emulate(options: &[&str]) -> crate::program::Ended {
    run(&[&["emulate", "--tun", "--left-after", "0"], options].concat(), b"")
}

#[test]
fn a_ping_takes_the_round_trip_time_with_either_version_of_ip() {
    if !allowed(&[Tool::Ping]) {
        return;
    }
    let ping = "ping -c 5 -i 0.1 $PUNCTUAL_PEER && ping -c 5 -i 0.1 $PUNCTUAL_PEER6";
    let ended = emulate(&["--rtt", "40ms", "--left", ping]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let output = String::from_utf8(ended.stdout).unwrap();
    let fastest: Vec<f64> = output
        .lines()
        .filter_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next())
        .map(|fastest| fastest.parse().unwrap())
        .collect();
    assert_eq!(fastest.len(), 2, "{output}");
    assert!(fastest.iter().all(|fastest| (40.0..60.0).contains(fastest)), "{output}");
    // The report leaves standard output to the command.
    assert!(ended.stderr.contains("late, p99"), "{}", ended.stderr);
    assert!(!output.contains("late, p99"), "{output}");
}

#[test]
fn commands_learn_the_addresses_and_write_where_they_are_told() {
    if !allowed(&[]) {
        return;
    }
    let folder = Folder::new("sides");
    let logs = [folder.file("left.log"), folder.file("right.log")];
    fs::write(&logs[1], "before\n").unwrap();
    let show = "echo $PUNCTUAL_SIDE $PUNCTUAL_LEFT $PUNCTUAL_RIGHT6 $PUNCTUAL_PEER; \
                echo $PUNCTUAL_PEER6 >&2";
    let options = ["--until", "both", "--left", show, "--right", show];
    let ended =
        emulate(&[&options[..], &["--left-log", &logs[0], "--right-log", &logs[1]]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let logged = logs.map(|log| fs::read_to_string(log).unwrap());
    assert_eq!(logged[0], "left 10.73.0.1 fd73::2 10.73.0.2\nfd73::2\n");
    assert_eq!(logged[1], "before\nright 10.73.0.1 fd73::2 10.73.0.1\nfd73::1\n");
    let report = String::from_utf8(ended.stdout).unwrap();
    assert!(report.starts_with("two sides in "), "{report}");
}

#[test]
fn a_command_that_fails_ends_the_run_and_is_reported() {
    if !allowed(&[Tool::Sleep]) {
        return;
    }
    let ended = emulate(&["--left", "exit 7", "--right", "sleep 1000"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("the left command ended with exit code 7"), "{}", ended.stderr);
    // Not the one that decides.
    let ended = emulate(&["--left", "sleep 1000", "--right", "kill -9 $$"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("the right command ended by signal 9"), "{}", ended.stderr);
    // That the other one is ended by the emulator is no failure.
    let ended = emulate(&["--right", "true", "--left", "sleep 1000", "--until", "right"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let stubborn = "trap '' TERM; while :; do sleep 0.1; done";
    let ended = emulate(&["--left", "true", "--right", stubborn]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn ctrl_c_ends_the_commands_and_prints_the_report() {
    if !allowed(&[Tool::Sleep]) {
        return;
    }
    let mut emulator = Program::start(&["emulate", "--tun", "--right", "sleep 1000"]);
    emulator.wait_for("right (10.73.0.2): sleep 1000");
    // Without a command, others may come in.
    emulator.wait_for("for a shell on the left side (10.73.0.1): nsenter -t ");
    emulator.interrupt();
    let ended = emulator.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("two sides in "), "{}", ended.stderr);
}

#[test]
fn an_emulator_that_is_killed_leaves_no_process_and_no_namespace_behind() {
    if !allowed(&[Tool::Setsid, Tool::Sleep]) {
        return;
    }
    let named = names("/run/netns");
    let devices = names("/sys/class/net");
    // Offspring in the background, and in a session of its own.
    let left = "sleep 1000 & setsid sleep 1000 & echo all are there >&2; wait";
    let right = "trap '' TERM INT HUP; while :; do sleep 1000; done";
    let mut emulator = Program::start(&["emulate", "--tun", "--left", left, "--right", right]);
    emulator.wait_for("all are there");
    // Two helpers, two shells, three sleeps.
    let started = wait_for(|| {
        let started = descendants(emulator.id());
        (started.len() == 7).then_some(started)
    });
    let mut namespaces: Vec<PathBuf> = started.iter().filter_map(|id| network(*id)).collect();
    namespaces.sort();
    namespaces.dedup();
    assert_eq!(namespaces.len(), 2);
    emulator.kill();
    wait_for(|| {
        started.iter().all(|id| !Path::new(&format!("/proc/{id}/ns")).exists()).then_some(())
    });
    // The shell may have started another sleep in between, which dies with its namespace.
    let stays = |id: &u32| network(*id).is_some_and(|network| namespaces.contains(&network));
    wait_for(|| (!processes().into_iter().any(|id| stays(&id))).then_some(()));
    assert_eq!((names("/run/netns"), names("/sys/class/net")), (named, devices));
}

#[test]
fn a_side_that_deletes_its_device_harms_no_other() {
    if !allowed(&[Tool::Ip, Tool::Ping]) {
        return;
    }
    let left = "ip link delete punctual0; ! ping -c 1 -W 1 $PUNCTUAL_PEER 2>&1";
    let ended = emulate(&["--left", left]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("the device of the left side is gone"), "{}", ended.stderr);
}

#[test]
fn without_the_privilege_the_error_names_it() {
    // Root without the right to make namespaces; who is not root has it not either.
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    if check_tun().is_ok() {
        if !have_all(&[Tool::Setpriv]) {
            return;
        }
        command = Command::new("setpriv");
        command.args(["--bounding-set=-sys_admin", env!("CARGO_BIN_EXE_punctual")]);
    }
    let output = command.args(["emulate", "--tun", "--left", "true"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("root") || said.contains("/dev/net/tun"), "{said}");
}

#[test]
fn a_relay_and_two_sides_are_not_had_together() {
    let ended = run(&["emulate", "--tun", ":5000", "127.0.0.1:4200"], b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let ended = run(&["emulate", ":5000", "127.0.0.1:4200", "--left", "true"], b"");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("--left"), "{}", ended.stderr);
}

/// All processes that descend from this one.
fn descendants(ancestor: u32) -> Vec<u32> {
    let all: Vec<(u32, u32)> =
        processes().into_iter().filter_map(|id| Some((id, parent(id)?))).collect();
    let mut found = vec![ancestor];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(all.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        next += 1;
    }
    found.split_off(1)
}

fn processes() -> Vec<u32> {
    names("/proc").iter().filter_map(|name| name.parse().ok()).collect()
}

fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The network namespace that a process is in.
fn network(process: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// The names in a folder; none if there is none.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The result of `look`, as soon as it has one.
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "nothing is found");
        thread::sleep(Duration::from_millis(5));
    }
}
