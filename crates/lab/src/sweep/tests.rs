use std::fs;
use std::path::PathBuf;

use super::*;
use crate::backend::sim::Sim;
use crate::outcome::Outcome;
use crate::published;

const PLAN: &str = "name = 'n'\n[stream]\nbitrate = '1Mbps'\nduration = '1s'\n\
    [link]\nrtt = '20ms'\nloss = ['0', '5%']\n[options]\nlatency = ['40ms', '80ms']\n\
    [run]\nrepeats = 2\nseries = '500ms'\n[metrics]\nlost = 'up.pktLost / up.pktSent'";

/// A folder of this test, empty and not there yet.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lab-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn csv(&self) -> String {
        fs::read_to_string(self.0.join("results.csv")).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sweep(text: &str, shard: &str) -> Sweep {
    let plan = Plan::parse("n.toml", text).unwrap();
    let shard = shard.parse().unwrap();
    Sweep::new(plan, &Adjustments { shard, ..Adjustments::default() }).unwrap()
}

/// Runs it until this number of runs is done.
fn run(sweep: &Sweep, place: &Place, jobs: usize, resume: bool, most: usize) -> SweepEnd {
    let stop = AtomicBool::new(false);
    let progress = |done: usize, _: usize, _: &RunSpec| {
        stop.store(done >= most, Ordering::Relaxed);
    };
    let execution = Execution { backends: &[&Sim], jobs, resume, stop: &stop, progress: &progress };
    sweep.run(&place.0, &execution).unwrap()
}

#[test]
fn results_are_the_same_bytes_for_any_number_of_workers() {
    let (one, four) = (Place::new("one"), Place::new("four"));
    run(&sweep(PLAN, "1/1"), &one, 1, false, usize::MAX);
    run(&sweep(PLAN, "1/1"), &four, 4, false, usize::MAX);
    assert_eq!(one.csv(), four.csv());
    assert_eq!(one.csv().lines().count(), 9);
    let series = |place: &Place| fs::read_dir(place.0.join("series")).unwrap().count();
    assert_eq!((series(&one), series(&four)), (8, 8));
}

#[test]
fn a_sweep_that_was_stopped_goes_on_to_the_same_results() {
    let (whole, parted) = (Place::new("whole"), Place::new("parted"));
    run(&sweep(PLAN, "1/1"), &whole, 2, false, usize::MAX);
    let first = run(&sweep(PLAN, "1/1"), &parted, 1, false, 3);
    assert!(first.stopped);
    assert!(!parted.0.join("results.csv").exists());
    // The program ended in the middle of a row.
    let partial = parted.0.join("results.partial.csv");
    let text = fs::read_to_string(&partial).unwrap();
    fs::write(&partial, &text[..text.len() - 10]).unwrap();
    let second = run(&sweep(PLAN, "1/1"), &parted, 2, true, usize::MAX);
    assert_eq!((second.stopped, second.skipped), (false, 2));
    assert_eq!(whole.csv(), parted.csv());
}

/// `sim` on a machine that lacks what first repeats need, as long as this says so.
struct Lacking(AtomicBool);

impl Backend for Lacking {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn lacks(&self, spec: &RunSpec) -> Option<String> {
        (spec.repeat == 1 && self.0.load(Ordering::Relaxed)).then(|| "no luck".to_owned())
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, String> {
        Sim.run(spec)
    }
}

#[test]
fn runs_that_the_machine_cannot_do_are_left_out_until_it_can() {
    let (whole, place) = (Place::new("able"), Place::new("lacking"));
    run(&sweep(PLAN, "1/1"), &whole, 2, false, usize::MAX);
    let machine = Lacking(AtomicBool::new(true));
    let go = |resume| {
        let stop = AtomicBool::new(false);
        let execution = Execution {
            backends: &[&machine],
            jobs: 2,
            resume,
            stop: &stop,
            progress: &|_, all, _| assert!(all == 4 || resume),
        };
        sweep(PLAN, "1/1").run(&place.0, &execution).unwrap()
    };
    let first = go(false);
    assert_eq!(first.left_out, [LeftOut { reason: "no luck".to_owned(), runs: 4 }]);
    assert_eq!((first.stopped, first.results.sheet.rows().len()), (false, 4));
    machine.0.store(false, Ordering::Relaxed);
    let second = go(true);
    assert_eq!((second.left_out.len(), second.skipped), (0, 4));
    assert_eq!(whole.csv(), place.csv());
}

#[test]
fn another_plan_or_folder_in_use_is_refused() {
    let place = Place::new("refused");
    run(&sweep(PLAN, "1/1"), &place, 2, false, usize::MAX);
    let stop = AtomicBool::new(false);
    let try_it = |text: &str, resume: bool| {
        let progress = |_: usize, _: usize, _: &RunSpec| {};
        let execution =
            Execution { backends: &[&Sim], jobs: 1, resume, stop: &stop, progress: &progress };
        sweep(text, "1/1").run(&place.0, &execution).map(drop).unwrap_err()
    };
    assert!(try_it(PLAN, false).contains("--resume"));
    assert!(try_it(&PLAN.replace("80ms", "90ms"), true).contains("of another plan"));
}

#[test]
fn a_plan_that_lies_in_the_folder_is_kept() {
    let place = Place::new("kept");
    fs::create_dir_all(&place.0).unwrap();
    let mine = place.0.join("plan.toml");
    fs::write(&mine, "mine").unwrap();
    let stop = AtomicBool::new(false);
    let progress = |_: usize, _: usize, _: &RunSpec| {};
    let execution =
        Execution { backends: &[&Sim], jobs: 1, resume: false, stop: &stop, progress: &progress };
    let error = sweep(PLAN, "1/1").run(&place.0, &execution).map(drop).unwrap_err();
    assert!(error.contains("plan.toml lies there"), "{error}");
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
}

#[test]
fn merged_parts_are_the_bytes_of_the_whole() {
    let (whole, merged) = (Place::new("all"), Place::new("merged"));
    run(&sweep(PLAN, "1/1"), &whole, 2, false, usize::MAX);
    let parts: Vec<Place> = (1..=3).map(|part| Place::new(&format!("part-{part}"))).collect();
    for (part, place) in (1..).zip(&parts) {
        run(&sweep(PLAN, &format!("{part}/3")), place, 1, false, usize::MAX);
    }
    let paths: Vec<&Path> = parts.iter().map(|place| place.0.as_path()).collect();
    merge(&paths, &merged.0).unwrap();
    assert_eq!(whole.csv(), merged.csv());
    let loaded = Results::load(&merged.0).unwrap();
    assert_eq!(loaded.sheet.rows().len(), loaded.meta.runs);
    assert!(loaded.series_of(0).is_ok());
}

#[test]
fn an_unknown_column_in_a_formula_is_named() {
    let plan = Plan::parse("n.toml", &PLAN.replace("up.pktLost /", "up.pktLots /")).unwrap();
    let error = Sweep::new(plan, &Adjustments::default()).unwrap_err().to_string();
    let expected = "n.toml:14: metric `lost`: no parameter, metric or column `up.pktLots`; did";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn every_built_in_plan_can_be_run() {
    for (name, text) in published::plans() {
        for backend in ["sim", "net"] {
            let plan = Plan::parse(name, text).unwrap();
            let backends = vec![backend.to_owned()];
            let adjustments = Adjustments { backends, quick: true, ..Adjustments::default() };
            let sweep = Sweep::new(plan, &adjustments).unwrap();
            assert!(!sweep.runs().is_empty());
        }
    }
    let plan = published::plan("srt-retransmission").unwrap();
    let sweep = Sweep::new(Plan::parse("p", plan).unwrap(), &Adjustments::default()).unwrap();
    assert_eq!(sweep.runs().len(), 72 * 10);
}

#[test]
fn the_command_line_overrides_the_options_of_a_plans_backend() {
    let text = format!("{PLAN}\n[net]\nduration = '9s'\nrepeats = 3\nloss = '5%'");
    let adjustments = Adjustments {
        set: vec!["duration=2s".to_owned(), "repeats=1".to_owned()],
        backends: vec!["sim".to_owned(), "net".to_owned()],
        ..Adjustments::default()
    };
    let sweep = Sweep::new(Plan::parse("n.toml", &text).unwrap(), &adjustments).unwrap();
    let of = |backend: &str| sweep.runs().iter().filter(|run| run.backend == backend).count();
    assert_eq!((of("sim"), of("net")), (4, 2));
    assert!(sweep.runs().iter().all(|run| run.setup.duration.as_secs() == 2));
}

#[test]
fn an_unknown_backend_is_named_before_anything_is_written() {
    let place = Place::new("backend");
    let adjustments = Adjustments { backends: vec!["nett".to_owned()], ..Adjustments::default() };
    let sweep = Sweep::new(Plan::parse("n.toml", PLAN).unwrap(), &adjustments).unwrap();
    let stop = AtomicBool::new(false);
    let progress = |_: usize, _: usize, _: &RunSpec| {};
    let net = crate::backend::net::Net;
    let execution = Execution {
        backends: &[&Sim, &net],
        jobs: 1,
        resume: false,
        stop: &stop,
        progress: &progress,
    };
    let error = sweep.run(&place.0, &execution).unwrap_err();
    assert!(error.contains("no backend `nett`; did you mean `net`?"), "{error}");
    assert!(!place.0.exists());
}
