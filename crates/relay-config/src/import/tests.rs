//! Files of MediaMTX, and what becomes of them.

use super::{Imported, import};
use crate::{Sources, check};

#[track_caller]
fn imported(text: &str) -> Imported {
    let imported = import(text).unwrap();
    if let Err(problems) = check(&Sources::text("relay.toml", &imported.toml)) {
        panic!("{problems:#?}\n{}", imported.toml);
    }
    imported
}

#[test]
fn a_whole_file_becomes_a_configuration_that_passes_the_check() {
    let Imported { toml, left } = imported(WHOLE);
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(toml, WHOLE_IN_TOML);
}

#[test]
fn keys_without_a_counterpart_are_told_with_reason_and_advice() {
    let text = "
logLevel: debug
authMethod: http
authHTTPAddress: http://127.0.0.1:8080/auth
apiAllowOrigins: ['*']
api: true
rtspAddress: :8554
hlsVariant: mpegts
novel: 1
runOnConnect: \"logger 'open\"
paths:
  rtsp:
    source: rtsp://cam.example/1
    runOnInit: ffmpeg
    alwaysAvailable: yes
    recordFormat: fmp4
    srtPublishPassphrase: short
  all:
    source: redirect
    sourceRedirect: /x
  ~cam(:
    source: publisher
";
    let Imported { toml, left } = imported(text);
    let keys: Vec<&str> = left.iter().map(|left| left.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "apiAllowOrigins",
            "logLevel",
            "novel",
            "rtsp…",
            "hls…",
            "runOnConnect",
            "paths.all.source",
            "paths.rtsp.alwaysAvailable",
            "paths.rtsp.recordFormat",
            "paths.rtsp.source",
            "paths.rtsp.srtPublishPassphrase",
            "paths.rtsp.runOnInit",
            "paths.~cam(",
        ]
    );
    assert!(left.iter().all(|left| !left.reason.is_empty()), "{left:#?}");
    assert!(left[9].advice.contains("ffmpeg -i SOURCE"), "{:?}", left[9]);
    assert!(toml.contains("[auth]\nhttp = \"http://127.0.0.1:8080/auth\"\n"), "{toml}");
    assert!(!toml.contains("[[user]]"), "{toml}");
}

#[test]
fn files_that_say_nothing_or_are_no_yaml_are_answered() {
    assert!(imported("").left.is_empty());
    assert!(imported("# only a comment\n").toml.contains("srt = \":8890\""));
    assert!(import("- a\n- b\n").unwrap_err().contains("not a table"));
    assert!(import("a: [").unwrap_err().contains("not YAML"));
    assert!(import(&"#".repeat(2 << 20)).is_err());
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    let _ = import(bomb);
}

const WHOLE: &str = r#"
logLevel: info
readTimeout: 20s
writeQueueSize: 512
authMethod: internal
authInternalUsers:
- user: any
  pass:
  ips: []
  permissions:
  - action: read
    path:
- user: ann
  pass: sha256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=
  ips: [192.0.2.0/24]
  permissions:
  - action: publish
    path: ~^live/
  - action: api
  - action: pprof
api: yes
apiAddress: 127.0.0.1:9997
metrics: yes
metricsAddress: :9998
rtsp: no
rtspAddress: :8554
rtmp: false
hls: no
webrtc: no
srtAddress: :8891
runOnConnect: logger "a caller"
pathDefaults:
  recordPath: /srv/%path/%Y-%m-%d_%H-%M-%S
  recordDeleteAfter: 1h30m
  overridePublisher: no
  recordFormat: mpegts
  rpiCameraWidth: 1920
paths:
  pulled:
    source: srt://192.0.2.7:9000?streamid=read:cam
    srtReadPassphrase: hush, hush, hush
    maxReaders: 5
  multicast:
    source: udp+mpegts://239.1.1.1:5000
  ~^cam(\d+)$:
    source: srt://10.0.0.$G1:9000
    sourceOnDemand: yes
    sourceOnDemandCloseAfter: 30s
    runOnReady: /usr/local/bin/ready $MTX_PATH
    runOnReadyRestart: yes
  show:
    record: yes
    forward:
    - dest: srt://cdn.example:1234?streamid=publish:show
  all_others:
"#;

const WHOLE_IN_TOML: &str = r#"# From mediamtx.yml, by `punctual relay import`.

[[listen]]
srt = ":8891"
peer-idle-timeout = "20s"

[http]
listen = "127.0.0.1:9997"
metrics = ":9998"

[[user]]
name = "any"
permissions = [{ action = "read" }]

[[user]]
name = "ann"
password = "sha256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
ips = ["192.0.2.0/24"]
permissions = [{ action = "publish", stream = "~^live/" }, { action = "api-admin" }]

[defaults]
on-second-publisher = "refuse"
record-delete-after = "90min"
record-path = "/srv/%path/%Y-%m-%d_%H-%M-%S"

[stream."multicast"]
source = "udp://239.1.1.1:5000"

[stream."pulled"]
max-viewers = 5
source = "srt://192.0.2.7:9000?streamid=read:cam"
read-passphrase = "hush, hush, hush"

[stream."show"]
forward = [{ to = "srt://cdn.example:1234?streamid=publish:show" }]
record = true

[stream."~^cam(\\d+)$"]
source = "srt://10.0.0.$1:9000"
source-on-demand = true
source-on-demand-close-after = "30s"

[[hook]]
on = ["connect"]
run = "logger \"a caller\""

[[hook]]
on = ["available"]
stream = "~^cam(\\d+)$"
run = "/usr/local/bin/ready $MTX_PATH"
restart = true
"#;
