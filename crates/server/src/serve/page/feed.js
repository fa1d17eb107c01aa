// Server-sent events, and the state of the connection.

const RETRY_FIRST = 1000;
const RETRY_MOST = 10_000;
/** A connection that was silent for this long is reopened when the machine wakes up or is online again. */
const SILENT = 30_000;

/**
 * Listens forever. `onEvent(kind, data)` gets the events `hello`, `synopsis`, `unreadable` and `source` with their data as text;
 * `onState(state)` the state of the connection: `connecting`, `open`, `lost` or `unreachable`.
 */
export function listen(address, onEvent, onState) {
  let source;
  let wait = RETRY_FIRST;
  let last = 0;
  let timer;
  let wasOpen = false;

  const open = () => {
    clearTimeout(timer);
    source?.close();
    onState(wasOpen ? "lost" : "connecting");
    source = new EventSource(address);
    last = Date.now();
    source.onopen = () => {
      wait = RETRY_FIRST;
      wasOpen = true;
      onState("open");
    };
    source.onerror = () => {
      onState(wasOpen ? "lost" : "unreachable");
      // The browser reconnects by itself, unless the response was not a stream.
      if (source.readyState === EventSource.CLOSED) {
        timer = setTimeout(open, wait);
        wait = Math.min(2 * wait, RETRY_MOST);
      }
    };
    for (const kind of ["hello", "synopsis", "unreadable", "source"]) {
      source.addEventListener(kind, (event) => {
        last = Date.now();
        onEvent(kind, event.data);
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
