// The place of the player: in a stream's view, and alone at /watch/NAME, to embed.

import { act, hasToken } from "/page/api.js";
import { h } from "/page/dom.js";
import { play } from "/page/player.js";

/** The addresses for the player; neither a WebSocket nor a video carries a token, but a ticket. */
async function addresses(name) {
  const given = new URLSearchParams(location.search).get("ticket");
  let ticket = given;
  if (!given && hasToken()) {
    ticket = (await (await act("POST", "/v1/tickets", { stream: name })).json()).ticket;
  }
  const query = ticket ? `?ticket=${encodeURIComponent(ticket)}` : "";
  const path = name.split("/").map(encodeURIComponent).join("/");
  return {
    socket: `/v1/play/${encodeURIComponent(name)}${query}`,
    hls: `/hls/${path}/index.m3u8${query}`,
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
      const places = await addresses(name);
      if (!isClosed) player.playing = play(root, places);
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
