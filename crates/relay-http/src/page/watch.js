// The place of the player: in a stream's view, and alone at /watch/NAME, to embed.

import { act, hasToken } from "/page/api.js";
import { h } from "/page/dom.js";
import { play } from "/page/player.js";

/** What this page's address says: a ticket, and the time of a recording. */
const address = new URLSearchParams(location.search);
const given = address.get("ticket");

/**
 * A ticket for one stream, or for its recordings: neither a WebSocket nor a video carries the token
 * of this tab.
 */
export async function ticketFor(name, recordings) {
  const answer = await act("POST", "/v1/tickets", { stream: name, recordings });
  return (await answer.json()).ticket;
}

/** The options of the player of a stream, or of its recordings from a time on. */
async function options(name, at) {
  const isRecording = at !== undefined;
  const needsTicket = !given && hasToken();
  const ticket = needsTicket ? await ticketFor(name, isRecording) : given;
  const query = ticket ? `?ticket=${encodeURIComponent(ticket)}` : "";
  const path = name.split("/").map(encodeURIComponent).join("/");
  return {
    socket: `/v1/play/${encodeURIComponent(name)}${query}`,
    hls: isRecording ? undefined : `/hls/${path}/index.m3u8${query}`,
    at,
    // A ticket expires, and connections are lost later.
    ticket: needsTicket ? () => ticketFor(name, isRecording) : undefined,
  };
}

/**
 * A box for the picture of a stream, `root`. `offer(isOnline)` begins to play once the stream is
 * online, and says so before. `show(at)` plays its recordings from this time on, in milliseconds
 * since 1970, up to `show(undefined)`; `time` is that of their picture. `close()` ends.
 */
export function playerBox(name) {
  const root = h("div", { class: "player" });
  let player = null;
  let from;
  let isClosed = false;
  const words = (text) => root.replaceChildren(h("p", { class: "words", role: "status" }, text));
  const begin = async () => {
    const begun = { playing: null };
    player = begun;
    try {
      const chosen = await options(name, from);
      if (!isClosed && player === begun) begun.playing = play(root, chosen);
    } catch (error) {
      if (player === begun) words(error.message);
    }
  };
  words("…");
  return {
    root,
    offer(isOnline) {
      if (isOnline && !player) begin();
      else if (!isOnline && !player) words("The stream is offline. Its picture comes as soon as it is there.");
    },
    show(at) {
      player?.playing?.stop();
      player = null;
      from = at;
      words("…");
      if (at !== undefined) begin();
    },
    get time() {
      return player?.playing?.time;
    },
    close() {
      isClosed = true;
      player?.playing?.stop();
    },
  };
}

const place = document.getElementById("player");
if (place && document.body.classList.contains("watch")) {
  const name = decodeURIComponent(location.pathname.slice("/watch/".length));
  document.title = name;
  const box = playerBox(name);
  place.replaceWith(h("main", {}, box.root));
  const at = Date.parse(address.get("at"));
  if (at) box.show(at);
  // The player waits by itself for a stream that is not there.
  else box.offer(true);
}
