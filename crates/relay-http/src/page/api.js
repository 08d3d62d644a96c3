// The relay's API: requests with the token of this tab, and server-sent events.

let token = sessionStorage.getItem("token");

/** Keeps the token for this tab; `null` forgets it. */
export function setToken(secret) {
  token = secret;
  if (secret) sessionStorage.setItem("token", secret);
  else sessionStorage.removeItem("token");
}

export function hasToken() {
  return Boolean(token);
}

/** An answer that is no success, with the words of its problem. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function request(method, path, body, headers = {}, signal = undefined) {
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await fetch(path, { method, headers, body: text, signal });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem.detail ?? `${answer.status} ${answer.statusText}`);
}

/** The JSON at a path. */
export async function get(path) {
  return (await request("GET", path)).json();
}

/** Does a request that changes something. */
export async function act(method, path, body) {
  return request(method, path, body);
}

/** The path of a stream: its name is one segment. */
export function streamPath(name) {
  return `/v1/streams/${encodeURIComponent(name)}`;
}

/**
 * Follows the events for ever: `onEvent(kind, data)` for each, `onState(isConnected, error)` at
 * changes. A connection that is lost is made again, with the place of the last event.
 */
export async function follow(onEvent, onState) {
  let place = null;
  for (let pause = 500; ; pause = Math.min(pause * 2, 10_000)) {
    const stop = new AbortController();
    try {
      const headers = place === null ? {} : { "Last-Event-ID": place };
      const path = place === null ? "/v1/events?past=1000" : "/v1/events";
      const answer = await request("GET", path, undefined, headers, stop.signal);
      onState(true);
      pause = 500;
      // Numbers come each second: silence means a connection that is dead.
      let watchdog;
      const heard = () => {
        clearTimeout(watchdog);
        watchdog = setTimeout(() => stop.abort(), 15_000);
      };
      try {
        for await (const event of eventsOf(answer.body, heard)) {
          if (event.id !== null) place = event.id;
          onEvent(event.kind, JSON.parse(event.data));
        }
      } finally {
        clearTimeout(watchdog);
      }
      onState(false, null);
    } catch (error) {
      onState(false, error);
      if (error instanceof Refused && [401, 403].includes(error.status)) return;
    }
    await new Promise((wake) => setTimeout(wake, pause));
  }
}

/** The events of a body: `{ kind, id, data }`. */
async function* eventsOf(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    heard();
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    if (rest.length > 10_000_000) throw new Error("an event without an end");
    for (const block of blocks) {
      const event = { kind: "message", id: null, data: "" };
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) event.kind = line.slice(7);
        else if (line.startsWith("id: ")) event.id = line.slice(4);
        else if (line.startsWith("data: ")) event.data += line.slice(6);
      }
      if (event.data) yield event;
    }
  }
}
