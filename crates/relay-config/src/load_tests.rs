//! Files, variables and API changes, each with the problems or the configuration that they give.

use std::fs;
use std::time::Duration;

use proptest::prelude::*;
use punctual_relay_access::{Access, Action, CalloutFormat, Role, StreamName, TicketKey};
use serde_json::json;

use super::{Loaded, check, load};
use crate::{Configuration, Environment, HookEvent, SourceSettings, Sources, ValueOrigin};

fn checked(text: &str) -> Result<Configuration, Vec<String>> {
    let shown =
        |problems: Vec<crate::ConfigProblem>| problems.iter().map(ToString::to_string).collect();
    check(&Sources::text("relay.toml", text)).map(|loaded| loaded.configuration).map_err(shown)
}

#[track_caller]
fn problem(text: &str) -> String {
    let problems = checked(text).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.into_iter().next().unwrap()
}

fn name(name: &str) -> StreamName {
    StreamName::new(name).unwrap()
}

#[test]
fn a_relay_without_a_configuration_has_the_documented_defaults() {
    let configuration = checked("").unwrap();
    assert_eq!(configuration, Configuration::default());
    let listeners: Vec<_> =
        configuration.listeners.iter().map(crate::ListenerSettings::uri).collect();
    assert_eq!(listeners, ["srt://[::]:8890"]);
    assert_eq!(configuration.http.listen, "127.0.0.1:9997".parse().ok());
    let access = Access::new(configuration.access().unwrap(), TicketKey::random()).unwrap();
    assert!(access.is_open(), "anybody may publish and view");
}

#[test]
fn all_problems_are_told_at_once_with_line_column_and_remedy() {
    let text = r#"
[htpp]
[http]
listen = "localhost"
metrics = 9998
[defaults]
latency = "12mss"
start = "gob"
max-viewers = -1
[stream."~cam("]
[[listen]]
srt = ":8890"
mod = "publish"
"#;
    let problems = checked(text).unwrap_err();
    let starts = [
        "relay.toml:2:2: `htpp`: unknown key; did you mean `http`? (known: listen, http, ",
        "relay.toml:4:10: `http.listen`: `localhost` is not an IP address with a port (allowed: ",
        "relay.toml:5:11: `http.metrics`: this is a number, not a text in quotes (allowed: ",
        "relay.toml:7:11: `defaults.latency`: `12mss`: unknown unit `mss`; did you mean `ms`? (",
        "relay.toml:8:9: `defaults.start`: `gob` is not among the allowed words; did you mean `gop`",
        "relay.toml:9:15: `defaults.max-viewers`: `-1` is not between 0 and 1000000 (allowed: ",
        "relay.toml:13:1: `listen.mod`: unknown key; did you mean `mode`? (known: srt, quic, ",
        "relay.toml:10:9: `stream.\"~cam(\"`: `cam(` is no regular expression: ",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:#?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start), "{problem}");
    }
}

#[test]
fn text_that_is_no_toml_is_told_with_what_else_is_wrong() {
    let problems = checked("[http\nlisten = 1\n[drain]\ntimeout = \"3d\"\n").unwrap_err();
    assert!(problems[0].starts_with("relay.toml:1:6: not TOML: "), "{problems:#?}");
    assert!(problems.iter().any(|it| it.contains("`drain.timeout`")), "{problems:#?}");
    let twice = checked("[http]\nlisten = \"off\"\nlisten = \"off\"\n").unwrap_err();
    assert!(twice[0].starts_with("relay.toml:3:1: not TOML: "), "{twice:#?}");
}

#[test]
fn keys_that_contradict_each_other_are_refused_at_their_place() {
    for (text, start) in [
        ("[[listen]]\nlatency = \"1s\"", "relay.toml:1:1: `listen`: it has no address"),
        (
            "[[listen]]\nsrt = \":1\"\nquic = \":2\"",
            "relay.toml:1:1: `listen`: it has `srt` and `quic`; a table is one socket",
        ),
        (
            "[[listen]]\nsrt = \":9\"\n[[listen]]\nquic = \"127.0.0.1:9\"",
            "relay.toml:4: `listen.quic`: another `[[listen]]` has the UDP port 9",
        ),
        (
            "[http]\nmetrics = \":9997\"",
            "relay.toml:2: `http.metrics`: it is the address of `listen`",
        ),
        (
            "[defaults]\nread-passphrase = \"0123456789\"\nread-passphrase-file = \"a\"",
            "relay.toml:3:1: `defaults.read-passphrase-file`: `read-passphrase` is given as well",
        ),
        (
            "[stream.\"live/*\"]\nsource = \"srt://h:1\"",
            "relay.toml:2:1: `stream.\"live/*\".source`: only a section with the exact name",
        ),
        (
            "[defaults]\nsource = \"srt://h:1\"",
            "relay.toml:2: `defaults.source`: only a section with the exact name of a stream",
        ),
        (
            "[stream.a]\nsource = \"srt://h:1?streamid=$1\"",
            "relay.toml:2:1: `stream.\"a\".source`: `$1` is a group of a regular expression",
        ),
        (
            "[defaults]\nrecord-path = \"/srv/%s\"\n[stream.\"a*\"]\nrecord = true",
            "relay.toml:3:9: `stream.\"a*\".record-path`: the section is about several streams",
        ),
        (
            "[stream.a]\n[stream.\"/a/\"]",
            "relay.toml:2:9: `stream.\"a\"`: a section above is about the same streams",
        ),
        (
            "[[user]]\nname = \"ann\"",
            "relay.toml:1:1: `user`: the user `ann` needs a password, a token or networks",
        ),
        (
            "[[user]]\nname = \"any\"\npermissions = [{ stream = \"a\" }]",
            "relay.toml:3:16: `user.permissions[0]`: it has no `action`",
        ),
        ("[[hook]]\nrun = \"true\"", "relay.toml:1:1: `hook`: it has no event"),
        ("[drain]\nspread = \"1min\"", "relay.toml:2: `drain.spread`: `spread` is longer than"),
        ("[auth]\nissuer = \"me\"", "relay.toml:2: `auth`: `issuer` and `audience` belong to JWT"),
    ] {
        let problem = problem(text);
        assert!(problem.starts_with(start), "{problem}");
    }
}

#[test]
fn wrong_values_of_every_kind_are_refused() {
    for (text, words) in [
        ("[defaults]\nrecord = \"yes\"", "`yes` is not true or false without quotes"),
        ("[defaults]\nlatency = 120", "the unit is missing; did you mean `120ms`?"),
        ("[defaults]\nlatency = \"66s\"", "`66s` is not in this range"),
        ("[defaults]\nforward = [{ to = \"srt//h\" }]", "it is not a URI"),
        ("[defaults]\nforward = [{ too = \"x\" }]", "unknown key; did you mean `to`?"),
        ("[defaults]\nforward = [{}]", "it has no `to`"),
        ("[defaults]\nread-passphrase = \"hush\"", "the passphrase has 4 bytes"),
        ("[defaults]\nkey-length = 17", "no key has 17 bytes"),
        ("[defaults]\nrecord-path = \"a/%q\"", "there is no `%q`"),
        ("[defaults]\nrecord-max-bytes = \"1kB\"", "no segment would fit"),
        ("[defaults]\nrecord-delete-after = \"1s\"", "deleted while they are written"),
        ("[[listen]]\nsrt = \":1\"\nallow = [\"10.0.0.0/33\"]", "listen.allow[0]"),
        ("[[listen]]\nsrt = \":1\"\nstream = \"a//b\"", "an empty part"),
        ("[[listen]]\nsrt = \"192.0.2.1\"", "the port is missing: `192.0.2.1:8890`"),
        ("[http]\norigins = [\"tv.example\"]", "is not an origin like https://tv.example"),
        ("[auth]\nhttp = \"ftp://h\"", "the address must be http://HOST/"),
        ("[[hook]]\non = [\"avail\"]\nrun = \"x\"", "hook.on[0]"),
        ("[[hook]]\non = [\"read\"]\nrun = \"x 'y\"", "a quote is not closed"),
        ("[[user]]\nname = \"a\"\npassword = \"sha256:x\"", "after `sha256:`"),
        ("http = 1", "this is not a table: write `[http]`"),
        ("listen = 1", "this is not a table: write `[[listen]]`"),
        ("stream = 1", "this is not a table: write `[stream]`"),
        ("stream.a = 1", "this is not a table: write `[stream.\"NAME\"]`"),
        ("[srtla]", "unknown key"),
    ] {
        let problems = checked(text).unwrap_err();
        assert!(problems[0].contains(words), "{text}: {problems:#?}");
    }
}

#[test]
fn no_message_shows_a_secret() {
    let text = r#"
[defaults]
read-passphrase = "hush"
publish-passphrase = ["hushhushhush"]
source = "srt://h:1?pasphrase=hushhushhush"
[[user]]
name = "a"
password = "sha256:hush"
token = "argon2:hush"
"#;
    let problems = checked(text).unwrap_err();
    assert!(problems.len() >= 4, "{problems:#?}");
    assert!(!problems.join("\n").contains("hush"), "{problems:#?}");
}

#[test]
fn the_narrowest_section_counts_over_the_defaults() {
    let text = r#"
[defaults]
max-viewers = 1
keep-viewers = "20s"
[stream.all_others]
max-viewers = 2
[stream."~^live/"]
max-viewers = 3
[stream."~^live/c"]
max-viewers = 4
[stream."live/*"]
max-viewers = 5
[stream."live/cam*"]
max-viewers = 6
[stream."live/cam1"]
max-viewers = 7
[stream."~^x"]
max-viewers = 8
"#;
    let configuration = checked(text).unwrap();
    let most = |stream: &str| {
        let settings = configuration.stream(&name(stream));
        assert_eq!(settings.publishers.keep_viewers, Duration::from_secs(20));
        settings.viewers.most
    };
    assert_eq!(["live/cam1", "live/cam2", "live/x", "xy", "y"].map(most), [7, 6, 5, 8, 2]);
    let open = checked("[stream.a]\nmax-viewers = 2").unwrap();
    assert_eq!(open.stream(&name("b")).viewers.most, 0);
}

#[test]
fn names_and_groups_fill_sources_and_destinations() {
    let text = r#"
[stream."~^cam(\\d)/(.*)$"]
source = "srt://cam$1.example:9000?streamid=$2"
source-on-demand = true
[stream."live/*"]
forward = [{ name = "cdn", to = "srt://cdn:1?streamid=publish:$0" }]
[stream.pulled]
source = "udp://239.1.1.1:5000"
"#;
    let configuration = checked(text).unwrap();
    let camera = configuration.stream(&name("cam7/a b&c")).source;
    assert_eq!(camera.uri.unwrap().shown(), "srt://cam7.example:9000?streamid=a%20b%26c");
    let forward = &configuration.stream(&name("live/x")).forward[0];
    assert_eq!(forward.name, "cdn");
    let uri = forward.to.as_ref().unwrap();
    assert_eq!(uri.shown(), "srt://cdn:1?streamid=publish:live/x");
    assert!(uri.parse().is_ok());
    assert_eq!(configuration.stream(&name("other")).source, SourceSettings::default());
    let pulled: Vec<_> = configuration.streams.always_pulled().collect();
    assert_eq!(pulled, [name("pulled")]);
}

#[test]
fn users_and_hooks_are_read() {
    let text = r#"
[[user]]
name = "ann"
password = "sha256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
ips = ["192.0.2.0/24"]
permissions = [{ action = "publish", stream = "live/*" }, { action = "api" }]
[auth]
http = "https://ann:hush@auth.example/srt"
[[hook]]
on = ["read", "available", "read"]
stream = "live/*"
run = "/usr/bin/logger -t 'a b' $PUNCTUAL_STREAM srt://h:1?passphrase=hush"
restart = true
"#;
    let configuration = checked(text).unwrap();
    let [ann] = &configuration.users[..] else { panic!("one user") };
    assert_eq!(ann.permissions[1].action, Some(Action::Api(Role::Admin)));
    assert!(ann.permissions[0].stream.matches("live/x"));
    let [hook] = &configuration.hooks[..] else { panic!("one hook") };
    assert_eq!(hook.on, [HookEvent::Available, HookEvent::Read]);
    let words = ["/usr/bin/logger", "-t", "a b", "$PUNCTUAL_STREAM"];
    assert_eq!(hook.run.as_ref().unwrap().words()[..4], words);
    assert!(!format!("{configuration:?}").contains("hush"));
}

#[test]
fn values_that_are_probably_not_intended_cause_a_warning() {
    let text = "[stream.a]\nforward = [{ to = \"srt://h:1?latency=20000\" }]\n[stream.b]\n";
    let warnings = check(&Sources::text("relay.toml", text)).unwrap().warnings();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    let warning = warnings[0].to_string();
    assert!(warning.starts_with("relay.toml:2: `stream.\"a\".forward`: "), "{warning}");
}

#[test]
fn users_and_other_judges_become_the_rules_about_callers() {
    let text = r#"
[[user]]
name = "ann"
password = "hush"
token = "hush-hush"
permissions = [{ action = "read", stream = "live/*" }]
[auth]
http = "http://127.0.0.1:8080/auth"
format = "nginx"
jwks = "https://login.example/keys"
audience = "relay"
"#;
    let rules = checked(text).unwrap().access().unwrap();
    assert_eq!(rules.users.len(), 1);
    assert_eq!(rules.users[0].permissions()[0].action, Action::Read);
    assert_eq!(rules.callout.unwrap().format, CalloutFormat::Nginx);
    let jwt = rules.jwt.unwrap();
    assert_eq!((jwt.audience.as_deref(), jwt.claim), (Some("relay"), None));
    assert!(rules.signing_keys.is_empty());
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Environment::new(variables.iter().map(owned))
}

fn loaded(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, Vec<crate::ConfigProblem>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("relay.toml");
    fs::write(&path, text).unwrap();
    load(Some(&path), environment(variables))
}

#[test]
fn variables_win_over_the_file_and_wrong_ones_are_told() {
    let text = "[http]\nlisten = \"off\"\ntrusted-proxies = [\"::1\"]\n[defaults]\nrecord = true\n";
    let loaded_with = |variables| loaded(text, variables);
    let variables = [
        ("PUNCTUAL_RELAY_HTTP_LISTEN", ":9000"),
        ("PUNCTUAL_RELAY_HTTP_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.1"),
        ("PUNCTUAL_RELAY_DEFAULTS_RECORD", "false"),
        ("PUNCTUAL_RELAY_DEFAULTS_READ_PASSPHRASE", "1234567890"),
        ("PATH", "/bin"),
    ];
    let loaded = loaded_with(&variables).unwrap();
    let configuration = &loaded.configuration;
    assert_eq!(configuration.http.listen, "[::]:9000".parse().ok());
    assert_eq!(configuration.http.trusted_proxies.len(), 2);
    let settings = configuration.stream(&name("a"));
    assert!(!settings.record.enabled);
    assert_eq!(settings.encryption.read.unwrap().secret.expose(), "1234567890");
    let variable = ValueOrigin::Environment("PUNCTUAL_RELAY_HTTP_LISTEN".to_owned());
    assert_eq!(loaded.origin("http", "listen"), variable);

    let variables = [
        ("PUNCTUAL_RELAY_HTTP_LISTE", ":9000"),
        ("PUNCTUAL_RELAY_DEFAULTS_RECORD", "maybe"),
        ("MTX_APIADDRESS", ":9997"),
        ("MTX_PATHDEFAULTS_RECORDPATH", "x"),
        ("MTX_HLS", "no"),
    ];
    let problems = loaded_with(&variables).unwrap_err();
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let starts = [
        "MTX_APIADDRESS: variables of MediaMTX have no effect here; the key here is `http.listen`",
        "MTX_HLS: variables of MediaMTX have no effect here",
        "MTX_PATHDEFAULTS_RECORDPATH: variables of MediaMTX have no effect here; the key here is \
         `record-path` of [defaults] or [stream.\"NAME\"]",
        "PUNCTUAL_RELAY_HTTP_LISTE: no key has this variable; did you mean \
         `PUNCTUAL_RELAY_HTTP_LISTEN`?",
        "PUNCTUAL_RELAY_DEFAULTS_RECORD: `defaults.record`: `maybe` is not true or false",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:#?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start), "{problem}");
    }
}

#[test]
fn secrets_are_sought_among_the_credentials_and_then_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    fs::create_dir(&credentials).unwrap();
    fs::write(credentials.join("one"), "of the unit\n").unwrap();
    fs::write(folder.path().join("one"), "beside the file").unwrap();
    fs::write(folder.path().join("two"), "\u{feff}also beside it\r\n").unwrap();
    let path = folder.path().join("relay.toml");
    let text = "[defaults]\nread-passphrase-file = \"one\"\npublish-passphrase-file = \"two\"\n";
    fs::write(&path, text).unwrap();
    let variables = [("CREDENTIALS_DIRECTORY", credentials.to_str().unwrap())];
    let loaded = load(Some(&path), environment(&variables)).unwrap();
    let encryption = loaded.configuration.stream(&name("a")).encryption;
    assert_eq!(encryption.read.unwrap().secret.expose(), "of the unit");
    assert_eq!(encryption.publish.unwrap().secret.expose(), "also beside it");
    let printed = loaded.print();
    assert!(printed.contains("read-passphrase-file = \"one\"  # "), "{printed}");
    assert!(!printed.contains("of the unit") && !printed.contains("beside"), "{printed}");

    fs::write(&path, "[defaults]\nread-passphrase-file = \"three\"\n").unwrap();
    let problems = load(Some(&path), environment(&variables)).unwrap_err();
    let message = problems[0].to_string();
    assert!(
        message.contains("there is no file ") && message.contains("credentials/three"),
        "{message}"
    );
    assert!(load(Some(&folder.path().join("no.toml")), environment(&[])).is_err());
}

#[test]
fn changes_by_the_api_win_and_persistent_ones_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("relay.toml");
    let text = "[stream.\"live/a\"]\nmax-viewers = 1\nkeep-viewers = \"20s\"\n";
    fs::write(&path, text).unwrap();
    let first = Sources::read(Some(&path), environment(&[])).unwrap();
    let kept =
        first.patched(Some("live/a"), &json!({"max-viewers": 2, "record": true}), true).unwrap();
    let both = kept.patched(Some("live/a"), &json!({"max-viewers": 3}), false).unwrap();
    let both = both.patched(Some("new"), &json!({"start": "gop"}), false).unwrap();
    let loaded = check(&both).unwrap();
    let settings = loaded.configuration.stream(&name("live/a"));
    assert_eq!(settings.viewers.most, 3);
    assert!(settings.record.enabled);
    assert_eq!(loaded.origin("live/a", "max-viewers"), ValueOrigin::Api { persistent: false });
    assert_eq!(loaded.origin("live/a", "record"), ValueOrigin::Api { persistent: true });
    assert!(matches!(loaded.origin("live/a", "keep-viewers"), ValueOrigin::File { line: 3, .. }));
    both.write_state().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "the file of a person is not changed");

    let again = load(Some(&path), environment(&[])).unwrap();
    assert_eq!(again.configuration.stream(&name("live/a")).viewers.most, 2);
    assert_eq!(again.configuration.streams.sections().len(), 1);
    let reloaded = check(&both.read_again(environment(&[])).unwrap()).unwrap();
    assert_eq!(reloaded.configuration, loaded.configuration);
    let without = check(&both.without_changes(Some("live/a"), true)).unwrap();
    assert_eq!(without.configuration.stream(&name("live/a")).viewers.most, 1);

    let wrong = both.patched(Some("live/a"), &json!({"max-viewer": 3}), false).unwrap();
    let problems = check(&wrong).unwrap_err();
    let problem = problems[0].to_string();
    assert!(problem.starts_with("API:"), "{problem}");
    assert!(
        problem.contains("`stream.\"live/a\".max-viewer`: unknown key; did you mean"),
        "{problem}"
    );
    let persistent = kept.patched(Some("live/a"), &json!({"max-viewers": 9}), true).unwrap();
    let nothing = persistent.patched(Some("live/a"), &json!({"max-viewers": null}), true).unwrap();
    assert_eq!(check(&nothing).unwrap().configuration.stream(&name("live/a")).viewers.most, 1);
}

#[test]
fn the_printed_configuration_reads_the_same() {
    let text = r#"
[[listen]]
srt = ":8890"
mode = "publish"
[[listen]]
quic = "127.0.0.1:9000"
deny = ["192.0.2.0/24"]
[http]
metrics = ":9998"
[defaults]
absent = "hold 5s"
[stream."~^a\"b(.*)$"]
forward = [{ to = "srt://h:1?streamid=$1" }]
latency = "200ms"
[[user]]
name = "any"
permissions = [{ action = "read", stream = "live/*" }]
[[hook]]
on = ["drain"]
url = "https://h/x"
timeout = "5s"
"#;
    let loaded = check(&Sources::text("relay.toml", text)).unwrap();
    let printed = loaded.print();
    let again = check(&Sources::text("relay.toml", &printed)).unwrap_or_else(|problems| {
        panic!("{problems:#?}\n{printed}");
    });
    assert_eq!(
        again.configuration,
        check(&Sources::text("", &again.print())).unwrap().configuration
    );
    assert_eq!(again.configuration, loaded.configuration);
    let text = "[auth]\nhttp = \"https://hush@h/x?y=hush\"\n";
    let with_login = check(&Sources::text("relay.toml", text)).unwrap().print();
    assert!(with_login.contains("http = \"https://h/x…\"  # relay.toml:2\n"), "{with_login}");
    assert!(printed.contains("metrics = \"[::]:9998\"  # relay.toml:9\n"), "{printed}");
    assert!(printed.contains("keep-viewers = \"10s\"  # default\n"), "{printed}");
    let section = printed.split("[stream.").nth(1).unwrap();
    assert!(
        section.starts_with("\"~^a\\\"b(.*)$\"]\nlatency = \"200ms\"  # relay.toml:"),
        "{section}"
    );
}

#[test]
fn many_problems_of_a_large_file_are_told_in_short_time() {
    let lines: String = (0..40_000).map(|n| format!("key{n} = 1\n")).collect();
    let problems = checked(&format!("[http]\n{lines}")).unwrap_err();
    assert_eq!(problems.len(), 101);
    assert!(problems[100].contains("more problems are not told"), "{}", problems[100]);
    let large = checked(&"#".repeat((1 << 20) + 1)).unwrap_err();
    assert!(large[0].contains("it has more than 1048576 bytes"), "{large:#?}");
    let deep = checked(&format!("a = {}", "[".repeat(100_000))).unwrap_err();
    assert!(deep[0].contains("not TOML"), "{}", deep[0]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = checked(&text);
    }

    #[test]
    fn any_value_of_any_key_is_read_or_refused(number in 0_usize..200, value in "\\PC{0,40}") {
        let keys = crate::keys();
        let facts = keys[number % keys.len()];
        let section = match facts.section {
            "stream" => "[stream.x]",
            "listen" => "[[listen]]",
            "user" => "[[user]]",
            "hook" => "[[hook]]",
            section => &format!("[{section}]"),
        };
        let _ = checked(&format!("{section}\n{} = {value}\n", facts.name));
        let quoted = crate::toml_text::quoted(&value);
        for problem in checked(&format!("{section}\n{} = {quoted}\n", facts.name)).err().into_iter().flatten() {
            prop_assert!(problem.starts_with("relay.toml:"), "{problem}");
        }
    }
}
