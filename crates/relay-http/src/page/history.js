// The numbers of the last five minutes of each stream, in bounded memory.

/** The seconds that are kept. */
export const SPAN = 300;

/** The most streams with a history. */
const MOST_STREAMS = 500;

/** The columns: a value of the numbers, or a change of a counter since the second before. */
const COLUMNS = {
  in: (now) => now.in_bps / 1e6,
  out: (now) => now.out_bps / 1e6,
  rtt: (now) => now.rtt_ms,
  buffer: (now) => now.buffer_ms,
  loss: (now, before) => share(now, before, "lost"),
  retransmitted: (now, before) => share(now, before, "retransmitted"),
  unrecovered: (now, before) => (before ? Math.max(0, now.unrecovered - before.unrecovered) : null),
};

/** A counter's change in per cent of the packets of the same second. */
function share(now, before, counter) {
  if (!before || now.packets <= before.packets) return null;
  return Math.max(0, 100 * (now[counter] - before[counter]) / (now.packets - before.packets));
}

class StreamHistory {
  constructor() {
    this.before = null;
    this.next = 0;
    this.columns = Object.fromEntries(
      Object.keys(COLUMNS).map((name) => [name, new Float64Array(SPAN).fill(NaN)]),
    );
  }

  push(now) {
    for (const [name, value] of Object.entries(COLUMNS)) {
      this.columns[name][this.next] = value(now, this.before) ?? NaN;
    }
    this.before = now;
    this.next = (this.next + 1) % SPAN;
  }

  /** The values of a column, oldest first; `NaN` where nothing was measured. */
  values(column) {
    const ring = this.columns[column];
    return [...ring.subarray(this.next), ...ring.subarray(0, this.next)];
  }
}

/** The histories of all streams. */
export class Histories {
  #streams = new Map();

  /** Takes the numbers of a second. Streams that are gone lose their history. */
  push(streams) {
    const present = new Map();
    for (const now of streams.slice(0, MOST_STREAMS)) {
      const history = this.#streams.get(now.name) ?? new StreamHistory();
      history.push(now);
      present.set(now.name, history);
    }
    this.#streams = present;
  }

  /** The history of a stream, if there is one. */
  of(name) {
    return this.#streams.get(name);
  }
}
