//! Ends that are bound to an interface which is removed and comes again.

use std::process::Command;

use crate::program::Folder;

#[test]
fn ends_at_an_interface_that_is_removed_go_on_when_it_comes_again() {
    let folder = Folder::new("interfaces");
    let enter = "ip link set lo up && ip tuntap add cam0 mode tap && ip link del cam0";
    let shell = |script: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["-n", "sh", "-c", script]).current_dir(folder.file("."));
        shell.env("P", env!("CARGO_BIN_EXE_punctual")).env_remove("RUST_LOG").output()
    };
    if !shell(enter).is_ok_and(|output| output.status.success()) {
        return interop::skip("a network namespace needs root, `unshare` and `ip`");
    }
    let output = shell(&format!("{enter} && {{ {SCRIPT} }}")).expect("it ran a moment ago");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    let copy = std::fs::metadata(folder.file("out.bin")).expect("the source is recorded");
    assert_eq!(copy.len(), 100 * 1_316, "{told}");
}

/// A source of multicast and listeners of SRT and TCP lose their interface.
const SCRIPT: &str = r#"
    add() {
        ip tuntap add cam0 mode tap && ip addr add 10.9.9.1/24 dev cam0 && ip link set cam0 up
    }
    until_says() {
        n=0
        until [ "$(grep -c "$2" "$1")" -ge "$3" ]; do
            n=$((n + 1)); sleep 0.1
            if [ $n = 300 ]; then echo "$1 does not say $2:"; cat "$1"; exit 1; fi
        done
    }
    add
    $P route 'udp://@239.1.1.1:5000?adapter=cam0' out.bin --reconnect -v 2>udp & udp=$!
    $P receive 'srt://:5001?mode=listener&adapter=cam0' --reconnect 2>srt & srt=$!
    $P receive 'tcp://:5002?listen&adapter=cam0' --reconnect 2>tcp & tcp=$!
    until_says udp 'try 1 begins' 1; until_says srt listening 1; until_says tcp listening 1
    # Known to the kernel by another number when it comes again.
    sleep 1; ip link del cam0
    for end in udp srt tcp; do until_says $end 'cam0 was removed' 1; done
    until_says udp 'no interface of that name' 1
    add
    until_says srt listening 2; until_says tcp listening 2; sleep 2
    $P generate 'udp://239.1.1.1:5000?adapter=cam0' --sendrate 1Mbps --num 100
    sleep 0.5; kill -INT $udp $srt $tcp; wait; cat udp srt tcp
"#;
