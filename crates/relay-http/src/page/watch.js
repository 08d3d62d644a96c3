// The place of the player: in a stream's view, and alone at /watch/NAME, to embed.

import { act, hasToken } from "/page/api.js";
import { h } from "/page/dom.js";
import { play } from "/page/player.js";

/** The ticket in this page's address. */
const given = new URLSearchParams(location.search).get("ticket");

/** A ticket for one stream: neither a WebSocket nor a video carries the token of this tab. */
async function ticketFor(name) {
  const answer = await act("POST", "/v1/tickets", { stream: name });
  return (await answer.json()).ticket;
}

/** The options of the player of a stream. */
async function options(name) {
  const needsTicket = !given && hasToken();
  const ticket = needsTicket ? await ticketFor(name) : given;
  const query = ticket ? `?ticket=${encodeURIComponent(ticket)}` : "";
  const path = name.split("/").map(encodeURIComponent).join("/");
  return {
    socket: `/v1/play/${encodeURIComponent(name)}${query}`,
    hls: `/hls/${path}/index.m3u8${query}`,
    // A ticket expires, and connections are lost later.
    ticket: needsTicket ? () => ticketFor(name) : undefined,
  };
}

/**
 * A box for the picture of a stream, `root`. `offer(isOnline)` begins to play once the stream is
 * online, and says so before; `close()` ends.
 */
export function playerBox(name) {
  const root = h("div", { class: "player" });
  let player = null;
  let isClosed = false;
  const words = (text) => root.replaceChildren(h("p", { class: "words", role: "status" }, text));
  const begin = async () => {
    try {
      const chosen = await options(name);
      if (!isClosed) player.playing = play(root, chosen);
    } catch (error) {
      words(error.message);
    }
  };
  words("…");
  return {
    root,
    offer(isOnline) {
      if (isOnline && !player) {
        player = { playing: null };
        begin();
      } else if (!isOnline && !player) words("The stream is offline. Its picture comes as soon as it is there.");
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
  // The player waits by itself for a stream that is not there.
  box.offer(true);
}
