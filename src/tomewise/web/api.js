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

/** The reply of the server; an error is raised. A `body` is sent as JSON. */
async function request(path, query, { body, headers = {}, ...options }) {
  const sent = body === undefined ? { headers } : { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
  let reply;
  try {
    reply = await fetch(address(path, query), { cache: "no-store", ...options, ...sent });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    setState("gone");
    throw new ApiError(0, "gone", "The server does not answer.");
  }
  if (!reply.ok) throw readError(reply.status, await reply.json().catch(() => null)); // a proxy in between may reply without JSON
  setState("here");
  return reply;
}

function readError(status, body) {
  const { error, ...more } = body ?? {};
  if (status === 401) setState("token");
  return new ApiError(status, error?.code ?? "http", error?.message ?? `The server replied ${status}.`, more);
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
  return (await request(path, query, { method, body, signal })).json();
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
      if (sending.status >= 300) return reject(readError(sending.status, sending.response));
      setState("here");
      return resolve(sending.response);
    };
    sending.onerror = () => { setState("gone"); reject(new ApiError(0, "gone", "The server does not answer.")); };
    sending.onabort = () => reject(new DOMException("stopped", "AbortError"));
    signal?.addEventListener("abort", () => sending.abort(), { once: true });
    sending.send(body);
  });
}

/** Server-sent events of one request, each as `{name, data}`, with the data parsed. */
export async function* stream(path, { method = "GET", body, signal } = {}) {
  const reply = await request(path, {}, { method, body, signal, headers: { accept: "text/event-stream" } });
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
