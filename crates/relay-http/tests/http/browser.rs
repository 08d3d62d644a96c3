//! The page in Chromium.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interop::{Chromium, Folder, Page, Tool, Window, have_all};
use punctual_relay_http::report::EventKind;
use punctual_relay_http::{Access, Limits, Settings};

use crate::client::Service;
use crate::stand_in::{ByToken, Open};

/// A busy machine draws late.
const SOON: Duration = Duration::from_secs(60);

/// Runs a test with a service, which is called by the name `relay.test`, and a browser.
async fn in_browser(
    name: &str,
    access: impl Access,
    test: impl FnOnce(&Service, &mut Chromium, &str) + Send + 'static,
) {
    if !have_all(&[Tool::Chromium]) {
        return;
    }
    let origins = vec!["http://relay.test".to_owned()];
    let settings = Settings { origins, ..Settings::default() };
    let service = Service::start(Arc::new(access), settings, Limits::default(), None).await;
    let folder = Folder::of(name);
    let address = format!("http://relay.test:{}", service.address.port());
    let run = move || test(&service, &mut Chromium::start(&folder, "relay.test"), &address);
    tokio::task::spawn_blocking(run).await.unwrap();
}

/// Keeps the picture of a page for people.
fn keep(page: &mut Page, name: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("page");
    std::fs::create_dir_all(&folder).unwrap();
    page.screenshot(&folder.join(format!("{name}.png")));
}

/// Fails if the page is wider than its window, or a script failed.
fn assert_fits(page: &mut Page, name: &str) {
    let wider = page.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert!(wider.as_f64().unwrap() <= 0.0, "{name} is {wider} pixels too wide");
    assert!(page.faults().is_empty(), "{name}: {:?}", page.faults());
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_charts_fit_desks_and_phones_in_light_and_dark() {
    in_browser("page-windows", Open, |service, browser, address| {
        for (name, window, ground) in [
            ("desk-light", Window::DESK, "rgb(244, 245, 247)"),
            ("desk-dark", Window::DESK.dark(), "rgb(14, 17, 21)"),
            ("phone-light", Window::PHONE, "rgb(244, 245, 247)"),
            ("phone-dark", Window::PHONE.dark(), "rgb(14, 17, 21)"),
        ] {
            let mut page = browser.open(address, window);
            page.wait_for("document.querySelectorAll('.streams tbody tr').length === 5", SOON);
            page.wait_for("document.body?.innerText.includes('192 kb/s')", SOON);
            assert_eq!(page.evaluate("getComputedStyle(document.body).backgroundColor"), ground);
            assert_fits(&mut page, name);
            keep(&mut page, &format!("list-{name}"));
            page.evaluate("location.hash = '#/stream/live%2Fstudio'; true");
            page.wait_for("document.querySelectorAll('.chart canvas').length === 6", SOON);
            page.wait_for(LINE_IS_DRAWN, SOON);
            page.wait_for("document.body?.innerText.includes('SCTE-35')", SOON);
            page.wait_for(GROUP_IS_SHOWN, SOON);
            service.relay.tell(EventKind::Skip, "live/studio", &format!("{name} was too slow"));
            page.wait_for(&format!("document.body?.innerText.includes('{name} was')"), SOON);
            assert_fits(&mut page, name);
            keep(&mut page, &format!("stream-{name}"));
        }
    })
    .await;
}

const GROUP_IS_SHOWN: &str =
    "document.body?.innerText.includes('viewer by srt, backup group: 1 active, 1 standby')";

/// Whether the first chart has a point in the colour of its first line.
const LINE_IS_DRAWN: &str = "(() => {
    const canvas = document.querySelector('.chart canvas');
    if (!canvas?.width) return false;
    const name = getComputedStyle(canvas).getPropertyValue('--one').trim();
    const wanted = [1, 3, 5].map((at) => parseInt(name.slice(at, at + 2), 16));
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] > 200 && wanted.every((it, i) => Math.abs(it - data[at + i]) < 12)) return true;
    }
    return false;
})()";

#[tokio::test(flavor = "multi_thread")]
async fn a_button_acts_and_its_focus_outlives_new_reports() {
    in_browser("page-buttons", Open, |service, browser, address| {
        let url = format!("{address}/#/stream/live%2Fstudio");
        let mut page = browser.open(&url, Window::DESK);
        page.wait_for("document.querySelectorAll('button.danger').length === 12", SOON);
        page.evaluate("window.confirm = () => true; document.querySelector('.danger').focus(); 1");
        page.evaluate("document.activeElement.click(); 1");
        page.wait_for("!document.querySelector('.danger').disabled", SOON);
        let done = || service.relay.done();
        assert!(done().iter().any(|it| it.starts_with("kick ")), "{:?}", done());
        let is_record = "[...document.querySelectorAll('button')].find((it) => \
                         it.textContent === 'Stop recording')";
        page.evaluate(&format!("window.kept = {is_record}; window.kept.focus(); 1"));
        // Two readings of the report later.
        page.evaluate("new Promise((wake) => setTimeout(wake, 6500))");
        assert_eq!(page.evaluate("document.activeElement === window.kept"), true);
        page.evaluate("document.activeElement.click(); 1");
        page.wait_for("!document.activeElement.disabled", SOON);
        assert!(done().contains(&"live/studio: Record(false)".to_owned()), "{:?}", done());
        assert_fits(&mut page, "buttons");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_for_and_decides_about_buttons() {
    in_browser("page-token", ByToken, |service, browser, address| {
        let mut page = browser.open(address, Window::DESK);
        for (token, shown) in [
            ("wrong", "document.getElementById('hint')?.innerText.includes('does not know')"),
            ("reader", "document.querySelectorAll('.streams tbody tr').length === 5"),
        ] {
            page.wait_for("document.getElementById('token')?.open", SOON);
            // The Enter key takes the first button of a form.
            page.evaluate(&format!(
                "document.getElementById('secret').value = '{token}';
                 document.querySelector('#token button').click(); 1"
            ));
            page.wait_for(shown, SOON);
        }
        page.evaluate("location.hash = '#/stream/live%2Fstudio'; true");
        page.wait_for("document.body?.innerText.includes('192.0.2.18')", SOON);
        let buttons =
            page.evaluate("document.querySelectorAll('main .danger, .head button').length");
        assert_eq!(buttons, 0, "a reader has no button");
        // The stream ends at once, and the player calls again, with a ticket each time.
        let calls = || service.relay.done().iter().filter(|it| *it == "play live/studio").count();
        let begun = Instant::now();
        while calls() < 2 {
            assert!(begun.elapsed() < SOON, "{:?}", service.relay.done());
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(page.faults().is_empty(), "{:?}", page.faults());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_stand_for_a_picture_that_cannot_be_played() {
    in_browser("page-words", Open, |_, browser, address| {
        let mut page = browser.open(&format!("{address}/watch/tower"), Window::PHONE);
        page.wait_for("document.querySelector('.words')?.innerText.includes('HEVC')", SOON);
        let command = page.evaluate("document.querySelector('.words code').innerText");
        assert!(command.as_str().unwrap().starts_with("ffplay 'srt://"), "{command}");
        assert_fits(&mut page, "watch");
        keep(&mut page, "watch-phone");
        let mut page = browser.open(&format!("{address}/watch/nothing"), Window::DESK);
        page.wait_for("document.querySelector('.words')?.innerText.includes('no stream')", SOON);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_numbers_takes_no_more_room_than_five_minutes() {
    in_browser("page-day", Open, |_, browser, address| {
        let mut page = browser.open(address, Window::DESK);
        let kept = page.evaluate(
            "import('/page/history.js').then(({ Histories, SPAN }) => {
                const all = new Histories();
                const stream = { name: 'a', in_bps: 5e6, out_bps: 0, rtt_ms: 20, buffer_ms: 9,
                                 packets: 0, lost: 0, retransmitted: 0, unrecovered: 0 };
                for (let second = 0; second < 86400; second += 1) {
                    stream.packets += 500;
                    stream.lost += 5;
                    all.push([{ ...stream }, { ...stream, name: `short ${second}` }]);
                }
                const gone = all.of('short 5') === undefined;
                const loss = all.of('a').values('loss');
                return [SPAN, loss.length, loss[0], loss[SPAN - 1], gone];
            })",
        );
        assert_eq!(kept, serde_json::json!([300, 300, 1, 1, true]));
    })
    .await;
}
