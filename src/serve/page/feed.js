// What the server tells: server-sent events, and how the line to it is.

const RETRY_FIRST = 1000;
const RETRY_MOST = 10_000;
/** A line that was silent for so long is opened anew when the machine wakes up or finds its network again. */
const SILENT = 30_000;

/**
 * Listens for ever. `heard(kind, data)` gets the events `hello`, `synopsis`, `unreadable` and `source`, their data as text;
 * `line(state)` the state of the line: `connecting`, `open` or `lost`.
 */
export function listen(address, heard, line) {
  let source;
  let wait = RETRY_FIRST;
  let last = 0;
  let timer;
  let wasOpen = false;

  const open = () => {
    clearTimeout(timer);
    source?.close();
    line(wasOpen ? "lost" : "connecting");
    source = new EventSource(address);
    last = Date.now();
    source.onopen = () => {
      wait = RETRY_FIRST;
      wasOpen = true;
      line("open");
    };
    source.onerror = () => {
      line(wasOpen ? "lost" : "unreachable");
      // The browser tries again by itself, unless the answer was not a stream.
      if (source.readyState === EventSource.CLOSED) {
        timer = setTimeout(open, wait);
        wait = Math.min(2 * wait, RETRY_MOST);
      }
    };
    for (const kind of ["hello", "synopsis", "unreadable", "source"]) {
      source.addEventListener(kind, (event) => {
        last = Date.now();
        heard(kind, event.data);
      });
    }
  };
  const again = () => {
    if (Date.now() - last > SILENT) open();
  };
  window.addEventListener("online", again);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && again());
  open();
}
