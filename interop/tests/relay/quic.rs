//! SRT over QUIC beside SRT over UDP: callers, sources that are pulled, and destinations.

use std::time::Duration;

use interop::{
    Clip, End, Folder, Process, Program, Relay, Role, Tool, bridge_certificate, have_all,
    retry_if_stalled, wait_for_size,
};

use crate::common::{
    TURNS, WANTED, assert_decoded, assert_got_its_part, decode, listener, publish,
};

#[test]
fn a_stream_comes_over_quic_and_goes_over_quic_and_udp() {
    retry_if_stalled(come_over_quic);
}

fn come_over_quic() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(2);
    let folder = Folder::of("a_stream_comes_over_quic");
    let (certificate, key) = bridge_certificate();
    let (certificate, key) = (certificate.display(), key.display());
    let lines = format!(
        "[[listen]]\nquic = \"127.0.0.1:0\"\ntls-cert = \"{certificate}\"\ntls-key = \"{key}\"\n\
         [defaults]\nstart = \"live\"\n"
    );
    let relay = Relay::start(&folder, &lines);
    let (port, hash) = listener(&relay, 1);
    let udp = End::new(Role::Caller, relay.port);
    let quic = End::new(Role::Caller, port).with_scheme("srt+quic");

    let trust = format!("ca={certificate}&servername=studio.example");
    let end = quic.with_stream_id("publish:live").with_options(&trust);
    let command = Program::Punctual.sender(&end, &folder.file("unused"));
    let mut publisher = Process::start("publisher", command, &folder);
    let _feed = Clip::get().feed(publisher.stdin());
    relay.wait_online("live");
    let pin = format!("certhash={}", hash.expect("a listener over QUIC tells its hash"));
    let quic = quic.with_stream_id("read:live");
    let by_quic = quic.with_options(&pin);
    let by_udp = udp.with_stream_id("read:live");
    let viewers = [("quic", Program::Punctual, by_quic), ("udp", Program::Ffmpeg, by_udp)].map(
        |(name, program, end)| {
            let output = folder.file(&format!("{name}.ts"));
            let (command, _) = program.receiver(&end, &output);
            (Process::start(name, command, &folder), output)
        },
    );
    for (_, output) in &viewers {
        wait_for_size(output, WANTED, Duration::from_secs(12));
        assert_got_its_part(output, Clip::get().bytes());
    }
    let stream = relay.json("/v1/streams/live");
    let count = |protocol: &str| {
        let counts = stream["viewers"].as_array().expect("a list").iter();
        counts.filter(|it| it["protocol"] == protocol).map(|it| it["viewers"].clone()).next()
    };
    assert_eq!((count("srt+quic"), count("srt")), (Some(1.into()), Some(1.into())), "{stream}");
    let all = relay.json("/v1/connections");
    for it in all.as_array().expect("a list") {
        let is_quic = it["protocol"] == "srt+quic";
        assert_eq!(it["statistics"]["quic"]["msRTT"].is_number(), is_quic, "{it}");
    }

    let wrong = format!("certhash={}", "00".repeat(32));
    let (command, _) =
        Program::Punctual.receiver(&quic.with_options(&wrong), &folder.file("nothing.ts"));
    let mut deceived = Process::start("deceived", command, &folder);
    assert!(!deceived.wait(Duration::from_secs(10)).success());
    assert!(deceived.log().contains("hash"), "{}", deceived.log());
}

#[test]
fn a_stream_is_pulled_and_forwarded_over_quic() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let _turn = TURNS.take(2);
    let [one, two, three] = ["pulled_from", "pulls_and_forwards", "forwarded_to"]
        .map(|name| Folder::of(&format!("relay_{name}_over_quic")));
    let [origin, end] = [&one, &three].map(|folder| Relay::start(folder, QUIC));
    let uri = |relay: &Relay, stream_id: &str| {
        let (port, hash) = listener(relay, 1);
        let hash = hash.expect("a listener over QUIC tells its hash");
        format!("srt+quic://127.0.0.1:{port}?streamid={stream_id}&certhash={hash}")
    };
    let lines = format!(
        "[stream.edge]\nsource = \"{}\"\nforward = [{{ to = \"{}\" }}]\n",
        uri(&origin, "read:live"),
        uri(&end, "publish:copy")
    );
    let middle = Relay::start(&two, &lines);
    let _publisher = publish(&origin, "publisher", &origin.uri("publish:live", ""), &one);
    end.wait_online("copy");
    let mut viewer = decode("viewer", &end.uri("read:copy", ""), 3, &three);
    assert!(viewer.wait(Duration::from_secs(15)).success(), "{}", viewer.log());
    assert_decoded(&viewer.log());
    let all = middle.json("/v1/connections");
    let roles = |it: &serde_json::Value| (it["role"].clone(), it["protocol"].clone());
    let mut all: Vec<_> = all.as_array().expect("a list").iter().map(roles).collect();
    all.sort_by_key(|(role, _)| role.to_string());
    let over_quic = |role: &str| (role.into(), "srt+quic".into());
    assert_eq!(all, [over_quic("forward"), over_quic("pull")]);
}

const QUIC: &str = "[[listen]]\nquic = \"127.0.0.1:0\"\n";
