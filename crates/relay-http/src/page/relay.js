// The page of the relay: the list of streams, and the way to each.

import { follow, get, hasToken, Refused, setToken } from "/page/api.js";
import { described, h, keyed, millis, rate, say, whole } from "/page/dom.js";
import { Histories } from "/page/history.js";
import { streamView } from "/page/stream.js";

const main = document.getElementById("main");
const histories = new Histories();
const relay = { histories, numbers: [], events: [], rights: {}, tell };

/** The view that is shown: `root`, and its methods `refresh`, `numbers`, `event`, `close`. */
let view = null;

/** The state of each stream as a badge says it. */
const STATES = { online: "Online", waiting: "Waiting", offline: "Offline" };

function listView() {
  const rows = h("tbody");
  const empty = h("p", { class: "empty" }, "No stream yet.");
  const start = h("section", { class: "card start", hidden: true });
  const gone = h("section", { class: "card", hidden: true });
  const heads = ["Stream", "State", "Source", "Content"].map((name) => h("th", { scope: "col" }, name));
  const numbers = ["In", "Out", "RTT", "Loss", "Viewers"].map((name) => h("th", { scope: "col", class: "number" }, name));
  const table = h("table", { class: "streams cards" },
    h("thead", {}, h("tr", {}, ...heads, ...numbers)), rows);
  const root = h("div", { class: "stack" }, h("h1", {}, "Streams"),
    h("div", { class: "card flush" }, h("div", { class: "scroll" }, table), empty), gone, start);
  let streams = [];
  let recorded = null;
  const show = () => {
    empty.hidden = streams.length > 0;
    table.hidden = streams.length === 0;
    keyed(rows, streams, (stream) => stream.name, streamRow);
  };
  return {
    root,
    title: "Streams",
    async refresh() {
      const [all, server] = await Promise.all([get("/v1/streams"), get("/v1/server")]);
      streams = all;
      showStart(start, server);
      show();
      // Once, since the relay looks through all folders for it.
      recorded ??= new Set((await get("/v1/recordings").catch(() => [])).map((it) => it.stream));
      showGone(gone, recorded, streams);
    },
    numbers: show,
    event() {},
    close() {},
  };
}

/** The ways to recordings of streams that are not there now. */
function showGone(gone, recorded, streams) {
  const names = [...recorded].filter((name) => streams.every((stream) => stream.name !== name)).sort();
  gone.hidden = names.length === 0;
  const links = names.map((name) => h("li", {}, h("a", { href: streamLink(name) }, name)));
  const list = h("ul", { class: "names" }, ...links);
  if (gone.lastElementChild?.textContent === list.textContent) return;
  gone.replaceChildren(h("h2", {}, "Recordings of other streams"), list);
}

/** The address of a stream's view. */
function streamLink(name) {
  return `#/stream/${encodeURIComponent(name)}`;
}

/** The lines to paste into an encoder and a player. */
function showStart(start, server) {
  const lines = [["Publish to", server.publish_uri], ["Play", server.play_uri]].filter((line) => line[1]);
  start.hidden = lines.length === 0;
  start.replaceChildren(h("h2", {}, "Addresses"), h("dl", {},
    ...lines.flatMap(([name, uri]) => [h("dt", {}, name), h("dd", {}, h("code", {}, uri))])));
}

function streamRow(first) {
  const cell = (label, kind = "") => h("td", { class: kind, "data-label": label });
  const name = h("a", { href: streamLink(first.name) }, first.name);
  const badge = h("span");
  const [state, source, content] = [h("td", { class: "state" }, badge), cell("Source", "wide"), cell("Content", "wide")];
  const [into, out, rtt, loss, viewers] =
    ["In", "Out", "RTT", "Loss", "Viewers"].map((label) => cell(label, "number"));
  const row = h("tr", {}, h("th", { scope: "row", class: "name" }, name), state, source, content,
    into, out, rtt, loss, viewers);
  row.show = (stream) => {
    const now = relay.numbers.find((it) => it.name === stream.name);
    const kind = now?.state ?? stream.state;
    badge.className = `badge ${kind}`;
    say(badge, STATES[kind]);
    say(source, stream.source ? stream.source.address : "–");
    say(content, described(stream.tracks));
    say(into, rate(now?.in_bps ?? stream.inbound.rate_bps));
    say(out, rate(now?.out_bps ?? stream.outbound.rate_bps));
    say(rtt, millis(now ? now.rtt_ms : stream.inbound.rtt_ms));
    const recent = histories.of(stream.name)?.values("loss").slice(-10).filter((it) => !Number.isNaN(it)) ?? [];
    const mean = recent.reduce((sum, it) => sum + it, 0) / recent.length;
    say(loss, recent.length ? `${mean.toFixed(2)} %` : "–");
    say(viewers, whole(now?.viewers ?? stream.viewers.reduce((sum, it) => sum + it.viewers, 0)));
  };
  return row;
}

function showTotals() {
  const online = relay.numbers.filter((it) => it.state === "online").length;
  const sum = (field) => relay.numbers.reduce((all, it) => all + it[field], 0);
  const totals = [["Online", whole(online)], ["Viewers", whole(sum("viewers"))], ["In", rate(sum("in_bps"))], ["Out", rate(sum("out_bps"))]];
  keyed(document.getElementById("totals"), totals, (it) => it[0], ([name]) => {
    const value = h("dd");
    const part = h("div", {}, h("dt", {}, name), value);
    part.show = (it) => say(value, it[1]);
    return part;
  });
}

/** Shows a line over the page; nothing takes it away. */
function tell(text, isBad = false) {
  const notice = document.getElementById("notice");
  notice.hidden = !text;
  notice.classList.toggle("bad", isBad);
  say(notice, text ?? "");
}

async function route() {
  const name = location.hash.match(/^#\/stream\/(.+)$/)?.[1];
  view?.close();
  view = name ? streamView(decodeURIComponent(name), relay) : listView();
  document.title = `${view.title} – Punctual relay`;
  main.replaceChildren(view.root);
  await refresh();
}

async function refresh() {
  const shown = view;
  try {
    await shown.refresh();
  } catch (error) {
    if (shown === view && !(error instanceof TypeError)) failed(error);
  }
}

function failed(error) {
  if (error instanceof Refused && error.status === 401) askForToken();
  else if (error) tell(error.message, true);
}

/** Asks for the caller's rights, and for a token if nothing can be read without. */
async function signIn() {
  relay.rights = await get("/v1/session");
  const isWrong = hasToken() && !relay.rights.read;
  if (isWrong) setToken(null);
  const button = document.getElementById("sign");
  button.hidden = relay.rights.administer && !hasToken();
  say(button, hasToken() ? "Sign out" : "Sign in");
  if (relay.rights.read) return true;
  main.replaceChildren(h("p", { class: "empty" }, "Sign in to see the streams."));
  if (isWrong) say(document.getElementById("hint"), "The relay does not know this token.");
  askForToken();
  return false;
}

function askForToken() {
  const dialog = document.getElementById("token");
  if (!dialog.open) dialog.showModal();
}

function listen() {
  document.getElementById("token").addEventListener("close", (event) => {
    const input = document.getElementById("secret");
    if (event.target.returnValue !== "ok" || !input.value) return;
    setToken(input.value);
    input.value = "";
    location.reload();
  });
  document.getElementById("sign").addEventListener("click", () => {
    if (!hasToken()) return askForToken();
    setToken(null);
    return location.reload();
  });
  window.addEventListener("hashchange", () => {
    route();
    // A screen reader goes to the new view; the window shows its head.
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  });
  // Reports in full, less often than numbers, and not while nobody looks.
  setInterval(() => document.hidden || refresh(), 3000);
}

/** The most events that the page keeps. */
const MOST_EVENTS = 1000;

/** Events that change the list or a stream, so that its report is read again at once. */
const CHANGES = new Set(["online", "offline", "available", "unavailable", "switch", "forward-up", "forward-down", "record-segment-create", "record-failed", "refused", "connect", "disconnect"]);

async function begin() {
  listen();
  if (!await signIn()) return;
  await route();
  let planned = null;
  follow((kind, data) => {
    if (kind === "numbers") {
      relay.numbers = data.streams;
      histories.push(data.streams);
      showTotals();
      if (!document.hidden) view.numbers();
      return;
    }
    if (kind !== "gap") {
      relay.events.push(data);
      if (relay.events.length > MOST_EVENTS) relay.events.shift();
      view.event(data);
    }
    if (CHANGES.has(kind) || kind === "gap") {
      planned ??= setTimeout(() => {
        planned = null;
        refresh();
      }, 300);
    }
  }, (isConnected, error) => {
    if (isConnected) tell(null);
    else if (error instanceof Refused) failed(error);
    else tell("The relay does not answer. Trying again …", true);
  });
}

begin().catch(failed);
