// The recordings of one stream: to play in the place of its picture, and to download.

import { get, hasToken } from "/page/api.js";
import { bytes, h, lasting, say, whole } from "/page/dom.js";
import { table } from "/page/table.js";
import { ticketFor } from "/page/watch.js";

/** The most recordings that are listed. */
const MOST = 100;

/**
 * The recordings of a stream: a table, `root`, and a bar below the picture, `bar`, to seek in the
 * one that is played. `tell(text, isBad)` shows a fault, and `backToLive()` follows the end of a
 * recording.
 */
export function recordingsPart(name, player, { tell, backToLive }) {
  const list = table("Recordings", ["Start", "*Duration", "*Size", "*Files", ""]);
  const bar = seekBar(player, backToLive);
  let latest = new Map();
  const cells = (recording) => {
    const key = recording.started_at;
    const isRunning = !recording.ended_at;
    const start = new Date(key).toLocaleString([], { hour12: false });
    const doing = (label, work) => h("button", {
      type: "button", class: "quiet small", "aria-label": `${label} the recording of ${start}`,
      onclick: () => work(latest.get(key)).catch((error) => tell(error.message, true)),
    }, label);
    const buttons = h("div", { class: "buttons" },
      doing("Play", async (it) => bar.play(it)), doing("Download", (it) => download(name, it)));
    const duration = isRunning ? "running" : lasting(Date.parse(recording.ended_at) - Date.parse(key));
    return [start, duration, bytes(recording.bytes), whole(recording.segments), buttons];
  };
  return {
    root: list.root,
    bar: bar.root,
    async refresh() {
      const all = await get(`/v1/recordings?stream=${encodeURIComponent(name)}`).catch(() => []);
      latest = new Map(all.map((it) => [it.started_at, it]));
      list.show(all.slice(0, MOST), (it) => it.started_at, cells);
    },
    close: bar.close,
  };
}

/** Lets the browser save a recording as one file. */
async function download(name, recording) {
  const query = new URLSearchParams({ from: recording.started_at });
  if (recording.ended_at) query.set("until", recording.ended_at);
  if (hasToken()) query.set("ticket", await ticketFor(name, true));
  h("a", { href: `/v1/recordings/${encodeURIComponent(name)}?${query}`, download: true }).click();
}

/** A bar with the time of the picture, a slider, and the way back to the stream as it is now. */
function seekBar(player, backToLive) {
  const time = h("output");
  const slider = h("input", { type: "range", min: "0", step: "1", "aria-label": "Time in the recording" });
  const live = h("button", { type: "button", class: "quiet small" }, "Back to live");
  const root = h("div", { class: "seek", hidden: true }, time, slider, live);
  let recording = null;
  let isDragged = false;
  let timer;
  const start = () => Date.parse(recording.started_at);
  const show = () => {
    const end = recording.ended_at ? Date.parse(recording.ended_at) : Date.now();
    slider.max = String(Math.max(1, Math.floor((end - start()) / 1000)));
    if (!isDragged) slider.value = String(Math.round(((player.time ?? start()) - start()) / 1000));
    const shown = new Date(start() + 1000 * Number(slider.value)).toLocaleTimeString([], { hour12: false });
    say(time, shown);
    slider.setAttribute("aria-valuetext", shown);
  };
  const close = () => {
    clearInterval(timer);
    root.hidden = true;
    recording = null;
  };
  slider.addEventListener("input", () => {
    isDragged = true;
    show();
  });
  slider.addEventListener("change", () => {
    isDragged = false;
    player.show(start() + 1000 * Number(slider.value));
  });
  live.addEventListener("click", () => {
    close();
    player.show(undefined);
    backToLive();
  });
  return {
    root,
    play(chosen) {
      recording = chosen;
      root.hidden = false;
      player.show(start());
      clearInterval(timer);
      timer = setInterval(show, 500);
      show();
      player.root.scrollIntoView({ block: "nearest" });
    },
    close,
  };
}
