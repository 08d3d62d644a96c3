//! A probe of a listener that is not ours measures from this end and leaves the listener alone.

#![forbid(unsafe_code)]
use interop::{
    End, Folder, Process, Program, Role, Tool, emulator, free_port, have_all, punctual,
    retry_if_stalled, wait_until_bound,
};

#[test]
fn srt_live_transmit_is_probed() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    retry_if_stalled(|| {
        let folder = Folder::of("srt_live_transmit_is_probed");
        let (listening, calling) = (free_port(), free_port());
        let received = folder.file("received.ts");
        let end = End::new(Role::Listener, listening);
        let (command, to_stdout) = Program::SrtLiveTransmit.receiver(&end, &received);
        let output = to_stdout.then_some(received.as_path());
        let _peer = Process::start_with_output("peer", command, &folder, output);
        wait_until_bound(listening);
        let link = ["--rtt", "40ms", "--loss", "2%", "--seed", "9"];
        let _link = Process::start("link", emulator(calling, listening, &link), &folder);
        wait_until_bound(calling);

        let mut probe = std::process::Command::new(punctual());
        probe.args(["probe", &format!("srt://127.0.0.1:{calling}"), "--start", "2Mbps"]);
        probe.args(["--step", "2Mbps", "--max-rate", "4Mbps", "--step-time", "2s"]);
        let probe = probe.args(["--soak", "2s"]).output().expect("the program runs");
        let (text, said) = (
            String::from_utf8_lossy(&probe.stdout).into_owned(),
            String::from_utf8_lossy(&probe.stderr).into_owned(),
        );
        assert!(probe.status.success(), "{said}");
        assert!(text.contains("seen from this end only"), "{text}");
        let usable = text.lines().find(|line| line.trim_start().starts_with("usable"));
        // A busy machine may not carry the second rate in time.
        let rates = ["2 Mb/s", "4 Mb/s"];
        let is_offered = |line: &str| rates.iter().any(|rate| line.ends_with(rate));
        assert!(usable.is_some_and(is_offered), "{text}\n{said}");
        let bytes = std::fs::metadata(&received).map_or(0, |file| file.len());
        assert!(bytes > 1_000_000, "the peer wrote {bytes} bytes of null packets");
    });
}
