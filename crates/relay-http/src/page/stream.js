// The view of one stream: picture, charts, connections, refusals, events.

import { act, get, Refused, streamPath } from "/page/api.js";
import { chart } from "/page/chart.js";
import { bytes, clock, described, h, keyed, millis, rate, say, since, whole } from "/page/dom.js";
import { recordingsPart } from "/page/recordings.js";
import { table } from "/page/table.js";
import { playerBox } from "/page/watch.js";

const STATES = { online: "Online", waiting: "Waiting for its source", offline: "Offline" };

/** Events after which the recordings are read again. */
const RECORDED = new Set(["record-segment-create", "record-segment-complete", "record-failed"]);

/** The most events that the view keeps. */
const MOST_EVENTS = 200;

/** The view of the stream of this name. */
export function streamView(name, relay) {
  const path = streamPath(name);
  const of = `stream=${encodeURIComponent(name)}`;
  const parts = {
    badge: h("span"),
    buttons: h("div", { class: "buttons" }),
    facts: h("dl", { class: "facts" }),
    charts: charts(),
    tracks: table("Tracks", ["PID", "Content", "Language", "*Rate"]),
    health: h("dl", { class: "facts" }),
    forwards: table("Destinations", ["Destination", "State", "*Sent", "*RTT", ""]),
    connections: table("Connections", ["Address", "Part", "User", "*Rate", "*RTT", "*Latency", "*Lost", "*Dropped", "*Since", ""]),
    refusals: table("Refused calls", ["Address", "Reason", "Stream ID", "*Calls", "Time"]),
    events: h("ul", { class: "log" }),
    noEvents: h("p", { class: "empty" }, "Nothing has happened yet."),
  };
  const player = playerBox(name);
  const recordings = recordingsPart(name, player, { tell: relay.tell, backToLive: () => view.refresh() });
  const healthBox = h("section", { class: "card" }, h("h2", {}, "Transport stream"), parts.health);
  const root = h("div", { class: "stack" },
    h("div", { class: "head" }, h("a", { class: "back", href: "#/", "aria-label": "All streams" }, "← Streams"),
      h("h1", {}, name), parts.badge, h("a", { href: watchPath(name), target: "_blank" }, "Player alone"), parts.buttons),
    h("section", { class: "card" }, parts.facts),
    h("div", { class: "two" }, h("div", { class: "stack" }, player.root, recordings.bar), h("div", { class: "stack" }, parts.tracks.root, healthBox)),
    h("div", { class: "charts" }, ...parts.charts),
    parts.connections.root, parts.forwards.root, recordings.root, parts.refusals.root,
    h("section", { class: "card flush" }, h("h2", {}, "Events"), parts.events, parts.noEvents));
  const doing = (button, method, where, body) => perform(relay, button, view.refresh, method, where, body);
  const view = {
    root,
    title: name,
    async refresh() {
      try {
        const [stream, connections, refusals] = await Promise.all([
          get(path), get(`/v1/connections?${of}`), get(`/v1/refusals?${of}`),
        ]);
        showHead(parts, stream, relay, doing, path);
        showFacts(parts.facts, stream);
        parts.tracks.show(stream.tracks, (track) => track.pid, trackCells);
        showHealth(parts.health, stream);
        parts.forwards.show(stream.forwards, (it) => it.id, (it) => forwardCells(it, relay, doing, path));
        parts.connections.show(connections, (it) => it.id, (it) => connectionCells(it, relay, doing));
        parts.refusals.show(refusals.slice(0, 50), (it) => it.at + it.address + it.reason, refusalCells);
        player.offer(stream.state === "online");
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 404) throw error;
        parts.badge.className = "badge";
        say(parts.badge, "There is no such stream now");
        player.offer(false);
      }
    },
    numbers() {
      const history = relay.histories.of(name);
      for (const figure of parts.charts) figure.draw(history);
    },
    event(event) {
      if (event.stream === name && RECORDED.has(event.kind)) recordings.refresh();
      note(parts, event, name);
    },
    close() {
      player.close();
      recordings.close();
    },
  };
  relay.events.forEach((event) => note(parts, event, name));
  recordings.refresh();
  requestAnimationFrame(() => view.numbers());
  return view;
}

/** Adds an event of this stream to its list. */
function note(parts, event, name) {
  if (event.stream !== name) return;
  parts.noEvents.hidden = true;
  parts.events.prepend(h("li", {}, h("time", { datetime: event.at }, clock(event.at)), h("span", { class: "text" }, event.text)));
  while (parts.events.childElementCount > MOST_EVENTS) parts.events.lastElementChild.remove();
}

/** The page with the player alone. */
function watchPath(name) {
  return `/watch/${name.split("/").map(encodeURIComponent).join("/")}`;
}

function charts() {
  const one = (title, unit, column, digits) => chart({ title, unit, digits, lines: [{ column, colour: "one" }] });
  return [
    chart({ title: "Rate", unit: "Mb/s", digits: 2, lines: [{ column: "in", label: "in", colour: "one" }, { column: "out", label: "out", colour: "two" }] }),
    one("Round trip", "ms", "rtt", 1),
    one("Loss", "%", "loss", 2),
    one("Retransmissions", "%", "retransmitted", 2),
    chart({ title: "Unrecovered", unit: "packets/s", digits: 0, lines: [{ column: "unrecovered", colour: "three" }] }),
    one("Receive buffer", "ms", "buffer", 0),
  ];
}

function showHead(parts, stream, relay, doing, path) {
  parts.badge.className = `badge ${stream.state}`;
  say(parts.badge, STATES[stream.state]);
  if (!relay.rights.operate) return;
  const isRecording = stream.recording?.state === "running";
  const items = [
    { name: isRecording ? "Stop recording" : "Record", where: `${path}/record/${isRecording ? "stop" : "start"}` },
    { name: "Reset counters", where: `${path}/reset-counters` },
  ];
  keyed(parts.buttons, items, (it) => it.name, (it) => {
    const button = h("button", { type: "button", class: "quiet", onclick: () => doing(button, "POST", it.where) }, it.name);
    button.show = () => {};
    return button;
  });
}

function showFacts(list, stream) {
  const [input, recording] = [stream.inbound, stream.recording];
  const viewers = stream.viewers.filter((it) => it.viewers > 0).map((it) => `${whole(it.viewers)} ${it.protocol}`).join(", ");
  const facts = [
    ["Source", stream.source ? `${stream.source.address}${stream.source.user ? ` (${stream.source.user})` : ""}` : "–"],
    ["Since", since(stream.since)],
    ["Content", described(stream.tracks)],
    ["Viewers", viewers || "none"],
    ["Received", bytes(input.bytes)],
    ["Sent", bytes(stream.outbound.bytes)],
    ["Lost", `${whole(input.packets_lost)} packets`],
    ["Unrecovered", `${whole(input.packets_unrecovered)} packets`],
    ["Latency", millis(input.latency_ms)],
    ["Counted", `for ${since(stream.counters_since)}`],
  ];
  if (recording) {
    const words = { running: "running", ended: "ended", failed: `failed: ${recording.last_error ?? ""}` };
    facts.push(["Recording", `${words[recording.state]}, ${bytes(recording.bytes)}`]);
  }
  showPairs(list, facts);
}

function showHealth(list, stream) {
  const health = stream.health_in;
  const out = stream.health_out;
  const sum = (of, fields) => whole(fields.reduce((all, field) => all + of[field], 0));
  const both = (...fields) => `${sum(health, fields)} in, ${sum(out, fields)} out`;
  const latest = [health, out].map((it) => it.last_error_at).filter(Boolean).sort().at(-1);
  const facts = [
    ["Continuity errors", both("continuity_errors")],
    ["PAT, PMT errors", both("pat_errors", "pmt_errors")],
    ["PID errors", both("pid_errors")],
    ["Sync losses", both("sync_losses")],
    ["PCR errors", both("pcr_repetition_errors", "pcr_discontinuities", "pcr_accuracy_errors")],
    ["PTS errors", both("pts_errors")],
    ["CRC, transport errors", both("crc_errors", "transport_errors")],
    ["Random access", health.random_access_interval_ms ? `every ${(health.random_access_interval_ms / 1000).toFixed(2)} s` : "–"],
    ["Latest error", latest ? clock(latest) : "none"],
  ];
  showPairs(list, facts);
}

function showPairs(list, pairs) {
  keyed(list, pairs, (pair) => pair[0], ([name]) => {
    const value = h("dd");
    const part = h("div", {}, h("dt", {}, name), value);
    part.show = (pair) => say(value, pair[1]);
    return part;
  });
}

function trackCells(track) {
  const picture = track.width ? `, ${track.width}×${track.height}` : "";
  const fps = track.frame_rate ? `, ${Number(track.frame_rate.toFixed(2))} fps` : "";
  const sound = track.sample_rate_hz ? `, ${track.sample_rate_hz / 1000} kHz` : "";
  const channels = track.channels ? `, ${track.channels} ch` : "";
  const profile = track.profile ? ` ${track.profile}` : "";
  return [String(track.pid), track.codec + profile + picture + fps + sound + channels, track.language ?? "–", rate(track.rate_bps)];
}

function forwardCells(forward, relay, doing, path) {
  const kind = forward.up ? "up" : forward.wanted ? "down" : "";
  const word = forward.up ? "Up" : forward.wanted ? "Down" : "Stopped";
  const state = h("span", { class: `badge ${kind}`, title: forward.last_error }, word);
  const verb = forward.wanted ? "Stop" : "Start";
  const where = `${path}/forward/${encodeURIComponent(forward.id)}/${verb.toLowerCase()}`;
  const button = h("button", { type: "button", class: "quiet small", onclick: () => doing(button, "POST", where) }, verb);
  const error = !forward.up && forward.wanted && forward.last_error;
  return [error ? `${forward.to}: ${forward.last_error}` : forward.to, state, bytes(forward.bytes), millis(forward.rtt_ms), relay.rights.operate ? button : ""];
}

function connectionCells(connection, relay, doing) {
  const its = connection.statistics;
  const isIn = ["publisher", "pull"].includes(connection.role);
  const button = h("button", { type: "button", class: "danger small", "aria-label": `Kick ${connection.address}`, onclick: () => {
    if (confirm(`End the connection of ${connection.address}?`)) doing(button, "DELETE", `/v1/connections/${encodeURIComponent(connection.id)}`);
  } }, "Kick");
  const skips = connection.skips ? `, ${whole(connection.skips)} skips` : "";
  return [
    connection.address,
    `${connection.role} by ${connection.protocol}${linksOf(connection.group)}${skips}`,
    connection.user ?? "–",
    its ? rate(1e6 * (isIn ? its.mbpsRecvRate : its.mbpsSendRate)) : "–",
    millis(its?.msRTT),
    millis(connection.latency?.agreed_ms),
    its ? whole(isIn ? its.pktRcvLoss : its.pktSndLoss) : "–",
    its ? whole(isIn ? its.pktRcvDrop : its.pktSndDrop) : "–",
    since(connection.opened_at),
    relay.rights.operate ? button : "",
  ];
}

/** The kind of a group, and how many of its links are in each state. */
function linksOf(group) {
  if (!group) return "";
  const counts = new Map();
  for (const link of group.links) counts.set(link.state, (counts.get(link.state) ?? 0) + 1);
  const states = [...counts].map(([state, count]) => `${count} ${state.replaceAll("_", " ")}`);
  return `, ${group.kind} group: ${states.join(", ")}`;
}

function refusalCells(refusal) {
  return [refusal.address, refusal.text, refusal.stream_id || "–", whole(refusal.count), clock(refusal.at)];
}

/** Does an act of a button, and shows its result. */
async function perform(relay, button, refresh, method, where, body) {
  button.disabled = true;
  try {
    await act(method, where, body);
    relay.tell(null);
    await refresh();
  } catch (error) {
    relay.tell(error.message, true);
  } finally {
    button.disabled = false;
  }
}
