use crate::plan::Plan;
use crate::sweep::{Adjustments, Sweep};

const PLAN: &str = "name = 'n'
[stream]
bitrate = '1Mbps'
duration = '1s'
[link]
rtt = '20ms'
loss = ['0', '5%']
[options]
latency = ['40ms', '80ms']
[metrics]
lost = 'up.pktLost / up.pktSent'
overhead = 'pktRetrans / pktSentUnique'
[[reference]]
name = 'paper'
rows = [{ loss = '5%', o = 0.1 }]
columns = { overhead = 'o' }
[[figure]]
name = '1'
x = 'latency'
y = ['overhead', 'receiver.pktRcvDrop', 'pktRetrans']
where = { latency = { to = '4 × RTT' } }
reference = 'paper'
[[figure]]
name = '2'
x = 'time'
y = ['overhead', 'usJitter', 'sender.msRTT']
[[table]]
name = '3'
value = ['lost', 'usLatencyP99']
rows = ['loss']
ratio = { latency = ['40ms', '80ms'] }
";

fn sweep(text: &str) -> Result<Sweep, String> {
    let plan = Plan::parse("my.toml", text).map_err(|error| error.to_string())?;
    Sweep::new(plan, &Adjustments::default()).map_err(|error| error.to_string())
}

#[test]
fn names_that_are_right_pass() {
    assert!(sweep(PLAN).is_ok(), "{:?}", sweep(PLAN).err());
    for right in ["x = 'latency_ms'", "x = 'options.latency'", "x = 'repeat'"] {
        assert!(sweep(&PLAN.replace("x = 'latency'", right)).is_ok(), "{right}");
    }
}

#[test]
fn each_misspelt_name_is_an_error_with_its_line_and_a_suggestion() {
    for (right, wrong, line, expected) in [
        ("x = 'latency'", "x = 'latncy'", 19, "`latncy`; did you mean `latency`?"),
        ("['overhead', 'rec", "['overhed', 'rec", 20, "`overhed`; did you mean `overhead`?"),
        ("'pktRetrans']", "'pktRetrnas']", 20, "`pktRetrnas`; did you mean `pktRetrans`?"),
        ("4 × RTT", "4 × RTTT", 21, "`RTTT`"),
        ("'usJitter'", "'usJiter'", 26, "`usJiter`; did you mean `usJitter`?"),
        ("'sender.msRTT'", "'lost'", 26, "it needs `up.pktLost`, which is known of whole runs"),
        ("'usLatencyP99'", "'usLatencyP9'", 29, "did you mean `usLatencyP99`?"),
        ("ratio = { latency", "ratio = { latncy", 27, "did you mean `latency`?"),
        ("{ overhead = 'o'", "{ overhaed = 'o'", 13, "did you mean `overhead`?"),
        ("'up.pktLost /", "'up.pktLots /", 11, "metric `lost`: no parameter, metric or column"),
    ] {
        let text = PLAN.replace(right, wrong);
        assert_ne!(text, PLAN, "{wrong}");
        let error = sweep(&text).unwrap_err();
        assert!(error.starts_with(&format!("my.toml:{line}: ")), "{wrong}: {error}");
        assert!(error.contains(expected), "{wrong}: {error}");
    }
}

#[test]
fn a_quick_run_knows_the_names_that_it_leaves_out() {
    let text = "name = 'n'\n[stream]\nbitrate = '1Mbps'\nduration = '1s'\n[quick]\n\
        experiments = ['a']\n[[experiment]]\nname = 'a'\n[experiment.link]\nrtt = '20ms'\n\
        [[experiment]]\nname = 'b'\n[experiment.link]\nrate = ['2Mbps', '3Mbps']\n\
        [[figure]]\nname = '1'\nx = 'rate'\ny = 'pktRetrans'";
    let plan = Plan::parse("my.toml", text).unwrap();
    let quick = Adjustments { quick: true, ..Adjustments::default() };
    assert_eq!(Sweep::new(plan, &quick).map(|sweep| sweep.runs().len()), Ok(1));
}
