// The player of a live stream, or of its recordings: fragments of MP4 from a WebSocket go to Media Source Extensions.
//
//   import { play } from "./player.js";
//   const player = play(document.querySelector("#player"), {
//     socket: "/v1/play/live/cam",      // the WebSocket; a path or a whole URL
//     hls: "/hls/live/cam/index.m3u8",  // for browsers without Media Source Extensions; may be absent
//     at: Date.parse("2026-11-27T20:15:00Z"), // plays recordings from then on; absent for the live stream
//     ticket: async () => "…",          // gives the ticket of the next connection; may be absent
//   });
//   player.stop();
//
// The protocol is described in crates/relay-http/src/play.rs: a text message `init` with the codecs,
// a binary initialization segment, then binary fragments, the first a key frame; or `unplayable`.
//
// The delay is what lies between the picture shown and the end of the buffer. The buffer must not run
// empty between two messages, so the player looks at the least that was left in it lately, and plays
// faster while that is more than it needs. After a stall it needs more, and little by little less.

/** Seconds that are left in the buffer before the next message, at the start and at most. */
const LEAST_RESERVE = 0.06;
const MOST_RESERVE = 1;
/** Seconds over which the least is sought. */
const WINDOW = 1;
/** The highest speed while there is delay to work off. */
const TOP_SPEED = 1.5;
/** A delay of so many seconds, after a long stall, is left out at once. */
const LEAP = 6;
/** Seconds behind the picture that are kept, and from which on they are removed. */
const KEPT = 5;
const TRIM_FROM = 15;
/** Bytes that may wait for the buffer. */
const MOST_WAITING = 64 << 20;
/** Milliseconds before the first new attempt to connect, and at most. */
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10000;
/** Close codes after which a new attempt is useless, and one after which it may help. */
const REFUSED = new Set([4401, 4403]);
const BUSY = 4503;
/** The close code after the last picture. */
const ENDED = 4410;

const Source = globalThis.MediaSource ?? globalThis.ManagedMediaSource;

/** Shows a live stream in `container`, and goes on until `stop()`. */
export function play(container, options) {
  return new Player(container, options);
}

class Player {
  constructor(container, { socket, hls, ticket, at }) {
    this.container = container;
    this.url = new URL(socket, location.href);
    this.url.protocol = this.url.protocol.replace("http", "ws");
    this.hls = hls;
    this.ticket = ticket;
    this.at = at;
    this.attempts = 0;
    this.pause = FIRST_PAUSE;
    this.stalls = 0;
    this.#makeElements();
    this.timer = setInterval(() => this.#check(), 500);
    this.#connect();
  }

  /** Ends the connection, and leaves the container empty. */
  stop() {
    this.isStopped = true;
    clearInterval(this.timer);
    clearTimeout(this.retry);
    this.socket?.close();
    this.#closeSource();
    this.container.replaceChildren();
  }

  /** Numbers for those who look after the stream: seconds and counts. */
  get numbers() {
    return {
      ahead: this.#ahead(),
      reserve: this.reserve,
      speed: this.video.playbackRate,
      stalls: this.stalls,
      buffered: this.#bufferedSeconds(),
    };
  }

  /** The time of the picture of a recording, in milliseconds since 1970, but for gaps in it. */
  get time() {
    const played = this.startedAt === undefined ? 0 : this.video.currentTime - this.startedAt;
    return this.at + 1000 * played;
  }

  #isRecording() {
    return this.at !== undefined;
  }

  #makeElements() {
    const video = document.createElement("video");
    video.muted = true;
    video.autoplay = true;
    video.playsInline = true;
    video.disableRemotePlayback = true;
    video.addEventListener("waiting", () => this.#stalled());
    video.addEventListener("playing", () => this.#say(""));
    video.addEventListener("error", () => this.#restart());
    const sound = document.createElement("button");
    sound.type = "button";
    sound.className = "sound";
    sound.hidden = true;
    sound.textContent = "Turn sound on";
    sound.addEventListener("click", () => {
      video.muted = !video.muted;
      sound.textContent = video.muted ? "Turn sound on" : "Turn sound off";
      video.play().catch(() => {});
    });
    const words = document.createElement("p");
    words.className = "words";
    words.setAttribute("role", "status");
    this.container.replaceChildren(video, sound, words);
    Object.assign(this, { video, sound, words });
  }

  /** Says in words why there is no picture, with the command of a program that can show it. */
  #say(text, command) {
    this.words.textContent = text;
    this.words.hidden = !text;
    if (command) {
      const code = document.createElement("code");
      // The relay does not know by which name this browser reaches it.
      code.textContent = command.replace("HOST", location.hostname);
      this.words.append(" ", code);
    }
  }

  // The connection.

  async #connect() {
    if (this.isStopped) return;
    if (!Source) return this.#playHls("This browser has no Media Source Extensions.");
    if (this.ticket && !await this.#takeTicket()) return;
    this.#keepTime();
    if (this.#isRecording()) this.url.searchParams.set("at", new Date(this.at).toISOString());
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      if (socket !== this.socket) return;
      if (typeof data === "string") this.#told(JSON.parse(data));
      else this.#received(data);
    };
    socket.onclose = ({ code, reason }) => {
      if (socket !== this.socket || this.isStopped) return;
      if (REFUSED.has(code)) return this.#say(reason || "You may not watch this stream.");
      if (this.#isRecording() && code >= 4400 && code !== BUSY) return this.#sayEnd(code, reason);
      if (code === 4404) this.#say(reason || "The stream is not there yet.");
      this.#connectLater();
    };
    this.socket = socket;
  }

  /** Says why a recording does not go on, once its last picture is shown. */
  #sayEnd(code, reason) {
    const text = code === ENDED ? "The recording ends here." : reason;
    this.retry = setTimeout(() => this.#say(text), 1000 * this.#ahead());
  }

  /** Keeps the time of the picture of a recording, to go on from there. */
  #keepTime() {
    if (!this.#isRecording()) return;
    this.at = this.time;
    this.startedAt = undefined;
  }

  /** Gets the ticket for a connection. Tells whether to connect now. */
  async #takeTicket() {
    this.attempts += 1;
    const attempt = this.attempts;
    const isLatest = () => attempt === this.attempts && !this.isStopped;
    try {
      const ticket = await this.ticket();
      this.url.searchParams.set("ticket", ticket);
    } catch (error) {
      if (!isLatest()) return false;
      this.#say(error.message);
      this.#connectLater();
      return false;
    }
    return isLatest();
  }

  /** Tries again after a pause that doubles, and differs between viewers. */
  #connectLater() {
    const pause = this.pause * (0.5 + Math.random());
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.#connect(), pause);
  }

  #restart() {
    if (this.isStopped) return;
    const old = this.socket;
    this.socket = undefined;
    old?.close();
    this.#closeSource();
    this.#connectLater();
  }

  #told(message) {
    if (message.type === "init") return this.#begin(message);
    if (message.type === "unplayable") {
      this.#closeSource();
      this.#say(`${message.reason} Open it in a player:`, message.play);
    }
  }

  // The media source.

  /** Begins to play what the next messages bring. */
  #begin(message) {
    if (!Source.isTypeSupported(message.codecs)) return this.#cannotPlay(message);
    const tracks = `${Boolean(message.video)} ${Boolean(message.audio)}`;
    this.sound.hidden = !message.audio;
    if (this.buffer && this.openedBy === this.socket && this.tracks === tracks) {
      // Another codec or size of the same stream; its times go on.
      this.waiting.push({ type: message.codecs });
      return this.#feed();
    }
    this.#closeSource();
    Object.assign(this, { tracks, openedBy: this.socket, waiting: [], waitingBytes: 0 });
    Object.assign(this, { lows: [], reserve: LEAST_RESERVE, hasStarted: false });
    const source = new Source();
    this.source = source;
    source.addEventListener("sourceopen", () => {
      if (source !== this.source) return;
      URL.revokeObjectURL(this.video.src);
      source.duration = Infinity;
      this.buffer = source.addSourceBuffer(message.codecs);
      this.buffer.addEventListener("updateend", () => this.#fed());
      this.#feed();
    }, { once: true });
    this.video.src = URL.createObjectURL(source);
  }

  /** Says what the browser lacks; plays without sound if that is all. */
  #cannotPlay({ video, audio, play }) {
    const picture = video && `video/mp4; codecs="${video.codec}"`;
    if (audio && picture && Source.isTypeSupported(picture) && !this.url.searchParams.has("sound")) {
      this.url.searchParams.set("sound", "no");
      this.pause = 0;
      return this.#restart();
    }
    const names = [video?.name, audio?.name].filter(Boolean).join(" with ");
    // A browser that has Media Source Extensions decodes no more in HLS.
    this.#closeSource();
    this.#say(`This browser does not play ${names}. Open it in a player:`, play);
  }

  #playHls(reason, command) {
    this.#closeSource();
    if (this.hls && this.video.canPlayType("application/vnd.apple.mpegurl")) {
      this.video.src = this.hls;
      this.sound.hidden = false;
      this.socket?.close();
      this.socket = undefined;
      return;
    }
    this.#say(command ? `${reason} Open it in a player:` : reason, command);
  }

  #closeSource() {
    this.#keepTime();
    this.source = undefined;
    this.buffer = undefined;
    this.video.removeAttribute("src");
    this.video.load();
  }

  #received(data) {
    if (!this.source) return;
    this.pause = FIRST_PAUSE;
    this.#noteLow();
    this.waiting.push({ data });
    this.waitingBytes += data.byteLength;
    if (this.waitingBytes > MOST_WAITING) return this.#restart();
    this.#feed();
  }

  /** Hands the waiting fragments to the buffer, all at once. */
  #feed() {
    const buffer = this.buffer;
    if (!buffer || buffer.updating || !this.waiting.length) return;
    try {
      if (this.waiting[0].type) buffer.changeType(this.waiting.shift().type);
      const next = this.waiting.findIndex((item) => item.type);
      const count = next < 0 ? this.waiting.length : next;
      if (!count) return;
      const items = this.waiting.slice(0, count).map((item) => item.data);
      buffer.appendBuffer(items.length === 1 ? items[0] : new Uint8Array(join(items)));
      this.waiting.splice(0, count);
      this.waitingBytes -= items.reduce((sum, item) => sum + item.byteLength, 0);
    } catch (error) {
      if (error.name !== "QuotaExceededError" || !this.#trim(1, 1)) this.#restart();
    }
  }

  #fed() {
    if (!this.buffer) return;
    this.#start();
    this.#leap();
    if (!this.#trim(TRIM_FROM, KEPT)) this.#feed();
  }

  /** Removes what was played. Tells whether there was anything to remove. */
  #trim(from, kept) {
    const { buffered } = this.buffer;
    const now = this.video.currentTime;
    if (this.buffer.updating || !buffered.length || now - buffered.start(0) <= from) return false;
    this.buffer.remove(0, now - kept);
    return true;
  }

  // The place in the stream.

  #range() {
    const { buffered } = this.video;
    if (!buffered.length) return undefined;
    const last = buffered.length - 1;
    return { start: buffered.start(last), end: buffered.end(last) };
  }

  #ahead() {
    const range = this.#range();
    return range ? range.end - this.video.currentTime : 0;
  }

  #bufferedSeconds() {
    const { buffered } = this.video;
    let sum = 0;
    for (let index = 0; index < buffered.length; index++) {
      sum += buffered.end(index) - buffered.start(index);
    }
    return sum;
  }

  /** Starts as near to the end as the buffer allows; a recording at its start. */
  #start() {
    const range = this.#range();
    if (this.hasStarted || !range) return;
    this.hasStarted = true;
    const isRecording = this.#isRecording();
    this.video.currentTime = isRecording ? range.start : Math.max(range.start, range.end - START_BEHIND);
    if (isRecording) this.startedAt = range.start;
    this.video.play().catch(() => {});
  }

  /** Goes over a hole in the stream, and over what a long stall left behind. */
  #leap() {
    const range = this.#range();
    if (!range || this.video.seeking) return;
    const now = this.video.currentTime;
    const isInHole = now < range.start && !this.#isBuffered(now);
    if (isInHole) this.video.currentTime = range.start;
    else if (!this.#isRecording() && range.end - now > LEAP) {
      this.video.currentTime = Math.max(range.start, range.end - START_BEHIND);
      this.lows = [];
    }
  }

  #isBuffered(time) {
    const { buffered } = this.video;
    for (let index = 0; index < buffered.length; index++) {
      const isLast = index === buffered.length - 1;
      const end = buffered.end(index) - (isLast ? 0 : 0.1);
      if (buffered.start(index) <= time && time < end) return true;
    }
    return false;
  }

  /** Notes what is left in the buffer before a message, and sets the speed by it. */
  #noteLow() {
    if (this.#isRecording() || !this.hasStarted || this.video.seeking || this.video.paused) return;
    const now = performance.now() / 1000;
    this.lows.push({ at: now, left: this.#ahead() });
    while (this.lows[0].at < now - WINDOW) this.lows.shift();
    const low = Math.min(...this.lows.map(({ left }) => left));
    const excess = low - this.reserve;
    let speed = 1;
    if (excess > 0.5) speed = TOP_SPEED;
    else if (excess > 0.03) speed = 1 + Math.max(0.05, Math.round(20 * excess) / 20);
    if (speed !== this.video.playbackRate) this.video.playbackRate = speed;
  }

  #stalled() {
    if (!this.hasStarted || this.video.seeking) return;
    this.stalls += 1;
    this.calmSince = performance.now();
    this.reserve = Math.min(MOST_RESERVE, this.reserve * 1.3 + 0.04);
    this.video.playbackRate = 1;
    this.lows = [];
  }

  /** Twice a second: what no event tells. */
  #check() {
    if (!this.buffer) return;
    this.#leap();
    const now = performance.now();
    this.calmSince ??= now;
    if (now - this.calmSince > 20000) {
      this.calmSince = now;
      this.reserve = Math.max(LEAST_RESERVE, 0.85 * this.reserve);
    }
  }
}

/** Seconds before the end of the buffer at which the player starts. */
const START_BEHIND = 0.25;

function join(parts) {
  const size = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const joined = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    joined.set(new Uint8Array(part), at);
    at += part.byteLength;
  }
  return joined;
}
