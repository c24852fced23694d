// What the server is asked, and whether it is there. Errors carry the sentence that the server wrote.

const BASE = new URL("./", document.baseURI);
const RETRY = 1500; // milliseconds between two looks for a server that is gone

export class ApiError extends Error {
  /** `code` is the server's, or `gone` where no reply came; `more` are the further fields of the reply. */
  constructor(status, code, message, more = {}) {
    super(message);
    Object.assign(this, { status, code, more });
  }
}

const watchers = new Set();
const connection = { state: "here" }; // or `gone`, or `token`: it is back and wants another token

/** The state of the connection now, and a function that ends the watch. `watch` is called whenever the state changes. */
export function watchConnection(watch) {
  watchers.add(watch);
  return () => watchers.delete(watch);
}

export function connectionState() {
  return connection.state;
}

function setState(state) {
  if (connection.state === state) return;
  connection.state = state;
  if (state === "gone") lookForServer();
  for (const watch of watchers) watch(state);
}

async function lookForServer() {
  while (connection.state === "gone") {
    await sleep(RETRY);
    try {
      const reply = await fetch(address("api/info", { systems: false }), { cache: "no-store" });
      setState(reply.status === 401 ? "token" : "here");
    } catch {
      // still gone
    }
  }
}

/** Resolves as soon as the server is there again; rejects when `signal` is aborted. */
export function waitForServer(signal) {
  if (connection.state === "here") return Promise.resolve();
  if (signal?.aborted) return Promise.reject(signal.reason); // a signal tells only once
  return new Promise((resolve, reject) => {
    const end = watchConnection((state) => {
      if (state === "here") { end(); resolve(); }
    });
    signal?.addEventListener("abort", () => { end(); reject(signal.reason); }, { once: true });
  });
}

function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** The path below a tome, with all parts escaped: `tomePath("novel", "pictures", layer)`. */
export function tomePath(tome, ...parts) {
  return ["api/tomes", ...[tome, ...parts].map(encodeURIComponent)].join("/");
}

function address(path, query = {}) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const each of value) url.searchParams.append(name, each);
    else if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

async function request(path, query, options) {
  let reply;
  try {
    reply = await fetch(address(path, query), { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    setState("gone");
    throw new ApiError(0, "gone", "The server does not answer.");
  }
  if (!reply.ok) throw await readError(reply);
  setState("here");
  return reply;
}

async function readError(reply) {
  let body = {};
  try {
    body = await reply.json();
  } catch {
    // a proxy in between may reply without JSON
  }
  const { error = {}, ...more } = body;
  if (reply.status === 401) setState("token");
  return new ApiError(reply.status, error.code ?? "http", error.message ?? `The server replied ${reply.status}.`, more);
}

/** JSON from the server. While the server is gone it waits, then asks again: reading changes nothing. */
export async function get(path, query = {}, { signal } = {}) {
  for (;;) {
    try {
      return await (await request(path, query, { signal })).json();
    } catch (error) {
      if (!["gone", "stopping"].includes(error.code)) throw error;
      setState("gone");
      await waitForServer(signal);
    }
  }
}

/** The rows `name` of a list that the server gives in pages, all of them. */
export async function getAll(path, name, options) {
  const rows = [];
  for (let after = ""; after !== null;) {
    const page = await get(path, { after, limit: 1000 }, options);
    rows.push(...page[name]);
    after = page.next;
  }
  return rows;
}

/** A module of the page. Where the server is gone, it is loaded as soon as it is back. */
export async function loadModule(file) {
  for (let turn = 0; ; turn += 1) {
    try {
      return await import(turn ? `./${file}?${turn}` : `./${file}`); // a browser may remember that an address failed
    } catch (error) {
      if (turn === 3) throw error;
      await get("api/health");
    }
  }
}

/** Sends JSON, and returns the JSON of the reply. Never repeated by itself. */
export async function send(method, path, body, { query = {}, signal } = {}) {
  const options = { method, signal };
  if (body !== undefined) Object.assign(options, { body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  return (await request(path, query, options)).json();
}

/** Sends a form with files, or the bytes of one. `onProgress(sent, total)` in bytes. `signal` stops it. */
export function upload(path, body, onProgress = () => {}, signal = undefined) {
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest(); // fetch does not tell how much was sent
    sending.open("POST", address(path));
    sending.responseType = "json";
    sending.upload.onprogress = (event) => onProgress(event.loaded, event.total);
    sending.onload = () => {
      const { error, ...more } = sending.response ?? {};
      if (sending.status < 300) setState("here");
      if (sending.status < 300) resolve(sending.response);
      else reject(new ApiError(sending.status, error?.code ?? "http", error?.message ?? `The server replied ${sending.status}.`, more));
    };
    sending.onerror = () => { setState("gone"); reject(new ApiError(0, "gone", "The server does not answer.")); };
    sending.onabort = () => reject(new DOMException("stopped", "AbortError"));
    signal?.addEventListener("abort", () => sending.abort(), { once: true });
    sending.send(body);
  });
}

/** Server-sent events of one request, each as `{name, data}`, with the data parsed. */
export async function* stream(path, { method = "GET", body, signal } = {}) {
  const options = { method, signal, headers: { accept: "text/event-stream" } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  const reply = await request(path, {}, options);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let ended = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      ended = done;
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    setState("gone");
    throw new ApiError(0, "gone", "The server went away while it was answering.");
  } finally {
    if (!ended) reader.cancel().catch(() => {});
  }
}

function parseEvent(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) } : null;
}

const OPEN = ["queued", "waiting", "running"];

export function isOpen(job) {
  return OPEN.includes(job.state);
}

/** Follows a job until it ends, over a server that goes and comes back. `onJob` gets each of its states. */
export async function followJob(id, onJob, signal) {
  for (;;) {
    try {
      let last = null;
      for await (const event of stream(`api/jobs/${id}/events`, { signal })) {
        if (event.name !== "job") continue;
        last = event.data;
        if (isOpen(last)) onJob(last);
      }
      if (last && !isOpen(last)) { // said after the stream has ended, since who follows may leave then
        onJob(last);
        return last;
      }
      await sleep(500); // the server ends its streams when it stops
    } catch (error) {
      if (error.code !== "gone") throw error;
      await waitForServer(signal);
    }
  }
}
