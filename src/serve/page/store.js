// The synopses that were heard, in order, each once.

/** Of one release and key; the oldest go when there are more. */
const MOST = 500;

const time = (text) => new Date(text).getTime();

/** The length of the window that is new in a synopsis, in ms: of a longer sum the newest pane. */
export const stepOf = (meta) => {
  const { start, end } = meta.panes?.newest ?? meta.window;
  return time(end) - time(start);
};

export class Store {
  #series = new Map();
  #seen = new Set();

  /** Takes a synopsis and the text it was read from; whether it is new. */
  add(synopsis, text) {
    const { release, key, ledger } = synopsis.meta;
    const name = JSON.stringify([ledger.id, ledger.sequence, release, key]);
    if (this.#seen.has(name)) return false;
    this.#seen.add(name);
    const id = JSON.stringify([release, key ?? null]);
    if (!this.#series.has(id)) this.#series.set(id, []);
    const series = this.#series.get(id);
    const entry = { synopsis, text, meta: synopsis.meta };
    const place = series.findLastIndex((other) => before(other.meta, entry.meta)) + 1;
    series.splice(place, 0, entry);
    if (series.length > MOST) series.shift();
    return true;
  }

  get isEmpty() {
    return this.#series.size === 0;
  }

  releases() {
    return [...new Set(this.#pairs().map(([release]) => release))].sort();
  }

  keys(release) {
    return this.#pairs().filter(([of]) => of === release).map(([, key]) => key).sort();
  }

  /** Entries `{ synopsis, text, meta }` of a release and key, oldest window first. */
  series(release, key) {
    return this.#series.get(JSON.stringify([release, key ?? null])) ?? [];
  }

  #pairs() {
    return [...this.#series.keys()].map((id) => JSON.parse(id));
  }
}

function before(a, b) {
  const [x, y] = [time(a.window.end), time(b.window.end)];
  if (x !== y) return x < y;
  const [p, q] = [time(a.published), time(b.published)];
  return p === q ? a.ledger.sequence <= b.ledger.sequence : p < q;
}
