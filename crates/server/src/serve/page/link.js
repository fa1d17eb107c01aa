// The address as a view: what is shown, so that a link shows the same to someone else.

const SWITCHES = { previous: true, plausible: false, table: false };

/** The view of an address's fragment; undefined for what it does not say. */
export function read(hash) {
  const about = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (name) => (about.has(name) ? about.get(name) : undefined);
  const numbers = (name, sign = ",") => {
    const found = text(name)?.split(sign).map(Number);
    return found?.length > 0 && found.every(Number.isFinite) ? found : undefined;
  };
  const ends = numbers("range", "..");
  const switches = Object.fromEntries(Object.entries(SWITCHES).map(([name, usual]) => [name, about.has(name) ? text(name) === "yes" : usual]));
  return {
    view: text("view"), pipeline: text("pipeline"), release: text("release"), key: text("key"), until: text("until"),
    at: numbers("at"), by: text("by"), row: text("row"), part: text("part"), others: about.getAll("with"), switches, regions: text("regions"),
    range: ends?.length === 2 && ends[0] <= ends[1] ? { axis: Number(text("axis") ?? 0), ends } : undefined,
    overtime: text("over") === "range" ? "range" : "at", function: numbers("function")?.[0], smoothing: numbers("smoothing"),
  };
}

const time = (date) => new Date(date).getTime();

/** Whether a window of an address is this one: it is named by its end, which running sums do not share. */
export const isUntil = (until, { window }) => time(until) === time(window.end);

/** The fragment for a view; what is as usual is left out. */
export function write(view) {
  const about = new URLSearchParams();
  const put = (name, value) => value !== undefined && value !== null && about.set(name, value);
  put("view", view.view);
  put("release", view.release);
  put("key", view.key);
  put("pipeline", view.pipeline);
  put("until", view.until);
  put("at", view.at?.map((x) => Number(x.toPrecision(8))).join(","));
  put("by", view.by);
  put("row", view.row);
  put("part", view.part);
  for (const key of view.others ?? []) about.append("with", key);
  if (view.range) {
    put("range", view.range.ends.map((x) => Number(x.toPrecision(12))).join(".."));
    if (view.range.axis > 0) put("axis", view.range.axis);
  }
  if (view.overtime === "range") put("over", "range");
  put("function", view.function);
  put("smoothing", view.smoothing?.join(","));
  put("regions", view.regions);
  for (const [name, usual] of Object.entries(SWITCHES)) {
    if (view.switches?.[name] !== undefined && view.switches[name] !== usual) put(name, view.switches[name] ? "yes" : "no");
  }
  return `#${about}`;
}

/** Milliseconds between two changes of the address that are no step of their own: browsers limit them. */
const REST = 300;

/** Keeps the address: `step` adds an entry to the history, `adjust` changes the last one. */
export class Address {
  #timer;
  #pending;

  /** `changed(view)` is called when the address is another: by back, forward, or a hand. */
  constructor(changed) {
    const again = () => {
      clearTimeout(this.#timer);
      this.#pending = undefined;
      changed(read(location.hash));
    };
    window.addEventListener("popstate", again);
  }

  step(view) {
    this.flush();
    const hash = write(view);
    if (hash !== location.hash) history.pushState(null, "", hash);
  }

  adjust(view) {
    this.#pending = write(view);
    this.#timer ??= setTimeout(() => this.flush(), REST);
  }

  /** Puts what waits into the address. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#pending !== undefined && this.#pending !== location.hash) history.replaceState(null, "", this.#pending);
    this.#pending = undefined;
  }
}
