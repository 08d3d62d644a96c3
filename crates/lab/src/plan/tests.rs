use super::*;

fn plan(text: &str) -> Plan {
    Plan::parse("my.toml", text).unwrap()
}

fn error(text: &str) -> String {
    Plan::parse("my.toml", text).unwrap_err().to_string()
}

fn combinations(text: &str) -> Vec<String> {
    let combinations = plan(text).experiments[0].grid.combinations().unwrap();
    let line = |values: &Values| {
        let words: Vec<String> =
            values.iter().map(|(key, value)| format!("{}={value}", keys::name(key))).collect();
        words.join(" ")
    };
    combinations.iter().map(line).collect()
}

fn grid_error(text: &str) -> String {
    plan(text).experiments[0].grid.combinations().unwrap_err().to_string()
}

#[test]
fn a_list_makes_an_axis_and_the_last_changes_fastest() {
    let text = "name = 'n'\n[link]\nloss = ['5%', 0.1]\nrtt = '20ms'\n\
                [options]\nlatency = { from = '0.5 x RTT', to = '1.5 * rtt', step = '10ms' }";
    assert_eq!(
        combinations(text),
        [
            "loss=5% rtt=20 ms latency=10 ms",
            "loss=5% rtt=20 ms latency=20 ms",
            "loss=5% rtt=20 ms latency=30 ms",
            "loss=10% rtt=20 ms latency=10 ms",
            "loss=10% rtt=20 ms latency=20 ms",
            "loss=10% rtt=20 ms latency=30 ms",
        ]
    );
}

#[test]
fn expressions_follow_the_axes_that_they_name_in_whatever_order() {
    let text = "name = 'n'\n[options]\nlatency = ['4 × RTT', '120ms']\nmaxbw = '1.25 × bitrate'\n\
                [stream]\nbitrate = '8Mbps'\n[link]\nrtt = ['20ms', '50ms']";
    assert_eq!(
        combinations(text),
        [
            "bitrate=8 Mb/s rtt=20 ms latency=80 ms maxbw=10 Mb/s",
            "bitrate=8 Mb/s rtt=20 ms latency=120 ms maxbw=10 Mb/s",
            "bitrate=8 Mb/s rtt=50 ms latency=200 ms maxbw=10 Mb/s",
            "bitrate=8 Mb/s rtt=50 ms latency=120 ms maxbw=10 Mb/s",
        ]
    );
}

#[test]
fn axes_may_change_together_and_combinations_be_left_out() {
    let text = "name = 'n'\ntogether = ['rtt', 'latency']\nexclude = [{ rtt = '50ms', loss = '1%' }]\n\
                [link]\nrtt = ['20ms', '50ms']\nloss = ['1%', '2%']\n\
                [options]\nlatency = ['80ms', '200ms']";
    assert_eq!(
        combinations(text),
        [
            "rtt=20 ms loss=1% latency=80 ms",
            "rtt=20 ms loss=2% latency=80 ms",
            "rtt=50 ms loss=2% latency=200 ms",
        ]
    );
    let uneven = "name = 'n'\ntogether = ['rtt', 'latency']\n[link]\nrtt = ['20ms', '50ms']\n\
                  [options]\nlatency = ['80ms', '200ms', '300ms']";
    assert!(grid_error(uneven).contains("`options.latency` has 3 values and `link.rtt` has 2"));
}

#[test]
fn a_value_computed_from_itself_is_refused_with_its_cycle() {
    let text = "name = 'n'\n[link]\nrtt = 'latency / 4'\n[options]\nlatency = '4 * RTT'";
    let error = grid_error(text);
    assert!(error.contains("link.rtt → options.latency → link.rtt"), "{error}");
}

#[test]
fn wrong_values_are_named_with_their_line() {
    for (line, expected) in [
        ("rtt = '4 * RTY'", "my.toml:3: no parameter `RTY`; did you mean `rtt`?"),
        ("rtt = '20ms'\ndelay = '2 * RTT + 5Mbps'", "my.toml:4: `2 * RTT + 5Mbps`: a bit rate"),
        ("rtt = '20ms'\nrate = '2 * RTT'", "`40 ms` is a time; `link.rate` must be a bit rate"),
        ("rtt = { from = 10, to = 5, step = 1 }", "ends (`5 ms`) before it begins (`10 ms`)"),
        ("rtt = { from = 1, to = 5, step = 0 }", "must be more than nothing"),
    ] {
        let error = grid_error(&format!("name = 'n'\n[link]\n{line}"));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn wrong_keys_are_errors_with_a_line_and_a_suggestion() {
    for (text, expected) in [
        ("name = 'n'\n[link]\nlos = '5%'", "my.toml:3: unknown key `los` in [link]; did you mean"),
        ("name = 'n'\n[link.up]\nraet = 1", "my.toml:3: unknown key `raet` in [link.up]; did you"),
        ("name = 'n'\n[lnik]\nloss = 1", "my.toml:2: unknown key `lnik` in a plan; did you mean"),
        ("name = 'n'\n[options]\nlatncy = 1", "my.toml:3: unknown key `latncy`"),
        ("name = 'n'\n[run]\nrepeat = 1", "unknown key `repeat` in [run]; did you mean `repeats`?"),
        ("name = 'n'\n[run]\nrepeats = 'ten'", "my.toml:3: `repeats` must be a number"),
        ("name = 'n'\n[run]\nseries = '1ms'", "`series` must be at least 10ms"),
        ("title = 'n'", "a plan has no `name`"),
        ("name = 'a b'", "my.toml:1: `a b` is no name"),
        ("name = 'n'\nloss = ", "my.toml:2: not TOML: "),
        ("name = 'n'\n[metrics]\na = 'b +'", "my.toml:3: `b +` is no formula"),
        ("name = 'n'\n[metrics]\na = { share = 'b' }", "must be a quotient of two counts"),
        ("name = 'n'\n[[figure]]\nname = '1'\nx = 'loss'", "my.toml:2: a figure has no `y`"),
        (
            "name = 'n'\n[[figure]]\nname = '1'\nx = 'time'\ny = 'a'\nreference = 'r'",
            "no reference `r`",
        ),
        (
            "name = 'n'\n[link]\nloss = 0\n[[figure]]\nname = '1'\nx = 'time'\ny = 'a'\nby = 'los'",
            "no parameter `los`; did you mean `loss`?",
        ),
    ] {
        let error = error(text);
        assert!(error.contains(expected), "{error}");
    }
    assert!(error("name = 'n'\n[link]\n los = '5%'").ends_with("\n  3 | los = '5%'"));
}

#[test]
fn experiments_inherit_the_plan_and_override_it() {
    let text = "name = 'n'\n[stream]\nbitrate = '5Mbps'\nduration = '120s'\n\
                [[experiment]]\nname = 'udp'\nstream.transport = 'udp'\n\
                [[experiment]]\nname = 'srt'\nstream.duration = '180s'\n\
                options.latency = ['750ms', '1200ms']";
    let plan = plan(text);
    let names: Vec<&str> = plan.experiments.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["udp", "srt"]);
    let count = |index: usize| plan.experiments[index].grid.combinations().unwrap().len();
    assert_eq!((count(0), count(1)), (1, 2));
    assert_eq!(
        plan.keys(),
        ["stream.bitrate", "stream.duration", "stream.transport", "options.latency"]
    );
}

#[test]
fn words_of_a_command_line_replace_values() {
    let mut plan = plan("name = 'n'\n[link]\nloss = ['5%', '10%']\n[run]\nrepeats = 10");
    let overlay =
        Overlay::words(["loss=1%", "repeats=2", "latency=[80, 120]", "stream.duration=5s"])
            .unwrap();
    plan.overlay(&overlay).unwrap();
    assert_eq!(plan.run.repeats, 2);
    assert_eq!(plan.experiments[0].grid.combinations().unwrap().len(), 2);
    let wrong = |word: &str| {
        let overlay = Overlay::words([word])?;
        plan.clone().overlay(&overlay)
    };
    let error = wrong("los=1%").unwrap_err().to_string();
    assert_eq!(error, "--set los=1%: unknown parameter `los`; did you mean `loss`?");
    assert!(wrong("loss").unwrap_err().to_string().contains("must be KEY=VALUE"));
}

#[test]
fn an_experiment_may_set_its_own_repeats() {
    let mut plan = plan(
        "name = 'n'\n[run]\nrepeats = 3\n\
         [[experiment]]\nname = 'a'\nrepeats = 20\n[[experiment]]\nname = 'b'\n",
    );
    let repeats = |plan: &Plan| {
        plan.experiments.iter().map(|experiment| plan.repeats(experiment)).collect::<Vec<_>>()
    };
    assert_eq!(repeats(&plan), [20, 3]);
    plan.overlay(&Overlay::words(["repeats=2"]).unwrap()).unwrap();
    assert_eq!(repeats(&plan), [2, 2], "a value of a run holds for all experiments");
}

#[test]
fn minus_one_is_no_limit() {
    let plan = plan("name = 'n'\n[options]\nmaxbw = '-1'\nmaxrexmitbw = ['-1', '2 * 1Mbps']");
    let values: Vec<String> = (plan.experiments[0].grid.combinations().unwrap().iter())
        .map(|values| values.iter().map(|(_, value)| value.to_string() + " ").collect())
        .collect();
    assert_eq!(values, ["-1 -1 ", "-1 2 Mb/s "]);
}

#[test]
fn the_example_in_the_documentation_is_a_plan() {
    let page = include_str!("../../../../docs/plans.md");
    let text = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let plan = plan(text);
    assert_eq!(plan.experiments[0].grid.combinations().unwrap().len(), 2 * 2 * 4 * 2);
    assert_eq!((plan.figures.len(), plan.tables.len()), (1, 1));
}

#[test]
fn an_error_in_a_passphrase_does_not_show_it() {
    let text = error("name = 'n'\n[options]\npassphrase = 'hush'\n[optionss]");
    assert!(!text.contains("hush"), "{text}");
    let plan = "name = 'n'\n[stream]\nbitrate = '1Mbps'\nduration = '1s'\n[link]\nrtt = '20ms'";
    for text in [
        format!("{plan}\n[options]\npassphrase = 'hush'"),
        format!("{plan}\n[options]\npasphrase = 'hush, hush'"),
    ] {
        let told = Plan::parse("my.toml", &text).map_err(|error| error.to_string());
        let told = told.and_then(|plan| {
            let adjustments = crate::sweep::Adjustments::default();
            crate::sweep::Sweep::new(plan, &adjustments).map_err(|error| error.to_string())
        });
        let told = told.unwrap_err();
        assert!(told.contains("passphrase") && !told.contains("hush"), "{told}");
    }
    for word in ["passphrase=hush", "pasphrase=hush, hush"] {
        let adjustments = crate::sweep::Adjustments {
            set: vec![word.to_owned()],
            ..crate::sweep::Adjustments::default()
        };
        let plan = Plan::parse("my.toml", plan).unwrap();
        let told = crate::sweep::Sweep::new(plan, &adjustments).unwrap_err().to_string();
        assert!(!told.contains("hush"), "{told}");
    }
}
