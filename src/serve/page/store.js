// The synopses that were heard, in order, each once.

/** Of one pipeline, release and key; the oldest go when there are more. */
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
    const { pipeline, release, key, ledger } = synopsis.meta;
    const name = JSON.stringify([ledger.id, ledger.sequence, release, key]);
    if (this.#seen.has(name)) return false;
    this.#seen.add(name);
    const id = JSON.stringify([pipeline, release, key ?? null]);
    if (!this.#series.has(id)) this.#series.set(id, []);
    const series = this.#series.get(id);
    const entry = { synopsis, text, name, meta: synopsis.meta };
    const place = series.findLastIndex((other) => before(other.meta, entry.meta)) + 1;
    series.splice(place, 0, entry);
    // A page on a wall stays open for months.
    if (series.length > MOST) this.#seen.delete(series.shift().name);
    return true;
  }

  get isEmpty() {
    return this.#series.size === 0;
  }

  pipelines() {
    return [...new Set(this.#names().map(([pipeline]) => pipeline))].sort();
  }

  releases(pipeline) {
    return [...new Set(this.#names().filter(([of]) => of === pipeline).map(([, release]) => release))].sort();
  }

  keys(pipeline, release) {
    return this.#names().filter(([of, is]) => of === pipeline && is === release).map(([, , key]) => key).sort();
  }

  /** Entries `{ synopsis, text, meta }` of a pipeline, release and key, oldest window first. */
  series(pipeline, release, key) {
    return this.#series.get(JSON.stringify([pipeline, release, key ?? null])) ?? [];
  }

  #names() {
    return [...this.#series.keys()].map((id) => JSON.parse(id));
  }
}

function before(a, b) {
  const [x, y] = [time(a.window.end), time(b.window.end)];
  if (x !== y) return x < y;
  const [p, q] = [time(a.published), time(b.published)];
  return p === q ? a.ledger.sequence <= b.ledger.sequence : p < q;
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const lengthOf = ({ window: { start, end } }) => time(end) - time(start);

/** Whether two synopses have the same axes and units, and one scale does for both. */
export const isOfOneScale = (a, b) => same([Object.keys(a.target), a.domain, a.meaning], [Object.keys(b.target), b.domain, b.meaning]);

/** What must be equal for two windows to hold the same function of their records; the rest is noise and its price. */
const FORM = [
  ({ target, basis, offset, degree, order, domain, meaning }) => [target, basis, offset ?? 0, degree, order, domain, meaning],
  ({ privacy: { unit, adjacency } }) => [unit, adjacency],
  ({ panes }) => [panes?.over, panes?.step !== undefined],
  // It changes with a price too, which leaves the function as it is: one comparison is lost, and none is wrong. It alone tells
  // of filters and of what happens to records outside of the domain.
  ({ digests }) => digests.configuration,
];

/**
 * Why `now` cannot be compared with the window `then` before it; nothing where a difference beyond both bands is one of the
 * records.
 */
export function whyApart(now, then) {
  if (!(time(then.window.end) < time(now.window.end))) return "both end at the same time";
  const taken = ({ choices }) => (choices ?? []).map((one) => Object.entries(one).map(([kind, own]) => [kind, own.taken]));
  if (!same(taken(now), taken(then))) return "what was chosen from their records, privately, is not the same";
  if (FORM.some((of) => !same(of(now), of(then)))) return "the settings are not the same";
  if (now.synthetic !== then.synthetic) return "the records of one were simulated";
  if (now.incomplete || then.incomplete) return "records may be missing";
  const [step, before_] = [now.panes?.step, then.panes?.step];
  // A sum counts its synopses, one a pane: where the count does not fit the time between, it has begun anew.
  const panes = (time(now.panes?.newest.end) - time(then.panes?.newest.end)) / stepOf(now);
  if (step !== undefined && (step - before_ !== panes || now.ledger.id !== then.ledger.id)) return "the running sum has begun anew";
  return lengthOf(now) === lengthOf(then) ? undefined : "they are not of the same length";
}
