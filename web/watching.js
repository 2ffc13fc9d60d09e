// Proof that nothing leaves: count what the browser fetches, forbid it all, and let a person try.

const LOCKED =
  "default-src 'none'; script-src 'none'; style-src 'none'; img-src 'none'; connect-src 'none'; " +
  "media-src 'none'; font-src 'none'; frame-src 'none'; worker-src 'none'; manifest-src 'none'; " +
  "object-src 'none'; form-action 'none'; base-uri 'none'";

/** Counts of requests since the page had loaded. */
export class Watch {
  /** @param {(watch: Watch) => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.blocked = 0;
    this.loaded = 0;
    this.since = Infinity;
    /** @type {string[]} addresses that the browser timed since then; a blocked one may be among them */
    this.timed = [];
    /** @type {Set<string>} */
    this.stopped = new Set();
    document.addEventListener("securitypolicyviolation", (event) => this.#stopped(event));
    new PerformanceObserver((seen) => seen.getEntries().forEach((entry) => this.#saw(entry))).observe({
      type: "resource",
      buffered: true,
    });
  }

  /** How many requests were sent. */
  get sent() {
    return this.timed.filter((address) => !this.stopped.has(address)).length;
  }

  /** From now on the browser lets this page load nothing more, from anywhere, and we count. */
  lock() {
    const rule = document.createElement("meta");
    rule.httpEquiv = "Content-Security-Policy";
    rule.content = LOCKED;
    document.head.append(rule);
    this.since = performance.now();
    this.changed(this);
  }

  /** Try to send something in four ways; return how many of them the browser let through. */
  async attempt() {
    const address = (way) => new URL(`probe-${way}?${Math.floor(performance.now())}`, location.href).href;
    const image = new Promise((through) => {
      const picture = new Image();
      picture.onload = () => through(true);
      picture.onerror = () => through(false);
      picture.src = address("picture");
    });
    const request = fetch(address("request")).then(() => true, () => false);
    const cors = fetch(address("simple"), { mode: "no-cors" }).then(() => true, () => false);
    const socket = new Promise((through) => {
      try {
        const line = new WebSocket(address("socket").replace(/^http/, "ws"));
        line.onopen = () => through(true);
        line.onerror = () => through(false);
      } catch {
        through(false);
      }
    });
    const results = await Promise.all([image, request, cors, socket]);
    return { tried: results.length, through: results.filter(Boolean).length };
  }

  /** @param {SecurityPolicyViolationEvent} event */
  #stopped({ blockedURI, disposition }) {
    if (disposition !== "enforce" || this.since === Infinity) return;
    this.stopped.add(blockedURI);
    this.blocked = this.stopped.size;
    this.changed(this);
  }

  /** @param {PerformanceEntry} entry */
  #saw({ name, startTime }) {
    if (startTime < this.since) this.loaded += 1;
    else this.timed.push(name);
    this.changed(this);
  }
}
