// Builds: what each costs and what is there already; and jobs, with their progress and their reports.
import {
  Button, Empty, ErrorNotice, Fold, Head, Loading, Money, NoSystem, Notice, Progress, Table, Tag, Time, TomeError,
  count, findSystem, formatCount, formatMoney, formatSeconds, html, link, nameDocument, useCallback, useEffect, useGet, useMemo, useState, useRef,
} from "./parts.js";
import { followJob, get, isOpen, send, tomePath } from "./api.js";
import { CostLine } from "./answer.js";
import { describeModel, nameModel, useModel } from "./models.js";
import { describeSystem } from "./systems.js";

// ---------------------------------------------------------------- jobs

/** The jobs of a tome, newest first; the one that works is followed. `onEnd` is called when one ends. */
export function useJobs(tome, onEnd) {
  const [jobs, setJobs] = useState([]);
  const put = useCallback((job) => setJobs((now) => (now.some((each) => each.id === job.id) ? now.map((each) => (each.id === job.id ? job : each)) : [job, ...now])), []);
  const latest = useRef(onEnd);
  latest.current = onEnd;
  const load = useCallback(async () => {
    try {
      setJobs((await get("api/jobs", { limit: 1000 })).jobs.filter((job) => job.tome === tome));
    } catch {
      // the view itself shows what is wrong
    }
  }, [tome]);
  useEffect(() => { load(); }, [tome]);
  const active = jobs.filter(isOpen).at(-1)?.id; // they work one after the other, the oldest first
  useEffect(() => {
    if (!active) return undefined;
    const leaving = new AbortController();
    followJob(active, put, leaving.signal).then(
      (job) => { latest.current?.(job); load(); },
      (error) => error.name !== "AbortError" && load(),
    );
    return () => leaving.abort();
  }, [active]);
  return { jobs, put, load };
}

const JUST = 120_000; // milliseconds for which a job that has ended stays in sight

/** Whether a job is to be seen: it is open, waits to be resumed, or is the latest and ended just now. */
export function isPressing(job, place) {
  return isOpen(job) || job.state === "interrupted" || (place === 0 && Date.now() - new Date(job.ended) < JUST);
}

const STATES = {
  queued: ["waits for its turn", ""], waiting: ["waits: another program writes to this tome", "warn"], running: ["at work", "accent"],
  done: ["done", "good"], failed: ["failed", "error"], cancelled: ["cancelled", ""], interrupted: ["interrupted", "warn"],
};

function describeJob(job) {
  if (job.kind === "build") return `Build for ${job.system ?? "a system"}`;
  return job.files === 1 ? "One file to add" : `${formatCount(job.files)} files to add`;
}

export function JobCard({ job, put, readOnly }) {
  const [error, setError] = useState(null);
  const change = (method, path) => () => send(method, `api/jobs/${job.id}${path}`).then(put, setError);
  const [words, kind] = STATES[job.state];
  const canResume = job.state === "interrupted" && !readOnly;
  return html`<article class="job">
    <header>
      <strong>${describeJob(job)}</strong> <${Tag} kind=${kind}>${words}</${Tag}>
      <span class="soft"><${Time} value=${job.ended ?? job.started ?? job.created} /></span>
      <span class="actions">
        ${canResume ? html`<${Button} small kind="primary" onClick=${change("POST", "/resume")}>Resume</${Button}>` : null}
        ${(isOpen(job) || canResume) && !readOnly ? html`<${Button} small onClick=${change("DELETE", "")}>${canResume ? "Discard" : "Cancel"}</${Button}>` : null}
      </span>
    </header>
    ${job.reason && !isOpen(job) && !job.error ? html`<${Notice} kind=${job.state === "failed" ? "error" : "warn"} title=${job.failed ? `${count(job.failed, "failure")}:` : undefined}>${job.reason}</${Notice}>` : null}
    ${isOpen(job) ? html`<${JobProgress} job=${job} />` : null}
    ${isOpen(job) && job.note ? html`<p class="soft">${job.note}</p>` : null}
    ${canResume ? html`<p class="soft">The server ended before this was done. To resume repeats no finished call of the model.</p>` : null}
    ${job.state === "cancelled" ? html`<p class="soft">What was finished stays.</p>` : null}
    <${ErrorNotice} error=${job.error ?? error} />
    ${job.state === "failed" && job.kind === "build" ? html`<p class="soft">What was finished stays. The next build goes on from there, and repeats no finished call of the model.</p>` : null}
    ${job.report ? html`<${JobReport} job=${job} />` : null}
  </article>`;
}

/** What goes on now, and what is finished. What cannot be counted has a bar that only moves. */
function JobProgress({ job: { state, doing, progress } }) {
  const past = progress.filter((each) => each.label !== doing?.label && each.total && each.done >= each.total);
  return html`${state === "running" ? html`<${Progress} label=${doing?.label ?? "at work"} done=${doing?.done} total=${doing && doing.done < doing.total ? doing.total : 0} />` : null}
    ${past.length ? html`<p class="soft number">Done: ${past.map((each) => `${each.label} (${formatCount(each.total)})`).join(", ")}</p>` : null}`;
}

function JobReport({ job }) {
  const { report, cost } = job;
  if (job.kind === "add") {
    const parts = [["added", "added"], ["replaced", "replaced"], ["unchanged", "unchanged"], ["removed", "removed"]]
      .filter(([name]) => report[name]?.length).map(([name, word]) => `${formatCount(report[name].length)} ${word}`);
    const losses = Object.entries(report.losses);
    return html`<p>${parts.join(", ") || "nothing new"}${report.passages ? ` · ${count(report.passages, "passage")}` : ""}</p>
      ${losses.length ? html`<${Fold} open=${losses.length < 4} summary=${html`<span class="is-warn">${count(losses.length, "file")} not read</span>`}>
        <ul class="reasons">${losses.map(([name, reason]) => html`<li key=${name}><strong dir="auto">${name}</strong> ${reason.startsWith(`${name} `) ? reason.slice(name.length) : reason}</li>`)}</ul></${Fold}>` : null}`;
  }
  return html`<ul class="reasons">${report.layers.map((layer) => html`<li key=${layer.layer}>
      <strong>${layer.layer}</strong> ${[layer.added && `${formatCount(layer.added)} added`, layer.removed && `${formatCount(layer.removed)} removed`].filter(Boolean).join(", ") || "up to date"}
      ${layer.notes.map((note) => html`<p class="soft" key=${note}>${note}</p>`)}
      ${layer.failures.length ? html`<${Fold} summary=${html`<span class="is-warn">${count(layer.failures.length, "failure")}; the next build tries again</span>`}>
        <ul class="reasons">${layer.failures.map((failure) => html`<${BuildFailure} key=${failure.node} tome=${job.tome} failure=${failure} />`)}</ul></${Fold}>` : null}
    </li>`)}${report.layers.length ? null : html`<li>nothing to build</li>`}</ul>
    <p class="soft"><${CostLine} cost=${cost} /></p>`;
}

/** What could not be made, by the passages that it rests on. */
function BuildFailure({ tome, failure: { sources, reason } }) {
  const places = [...new Set(sources.map(({ document }) => document))].map((id) => [id, sources.filter(({ document }) => document === id).map(({ position }) => position + 1)]);
  return html`<li>${places.map(([id, numbers]) => html`<a key=${id} dir="auto" href=${link(tome, "doc", { id })}>${nameDocument(id)}</a>, ${numbers.length === 1 ? "passage" : "passages"} ${numbers.join(", ")} `)}${reason}</li>`;
}

/** The layers above the passages. Those that one build makes stand together: `{name, parts: [{name, nodes, failed}]}`. */
export function groupLayers(layers) {
  const groups = new Map();
  for (const [full, counts] of Object.entries(layers)) {
    if (full === "passages") continue;
    const [part, of] = full.split(":");
    const name = of ? `graph:${of}` : full;
    if (!groups.has(name)) groups.set(name, { name, parts: [] });
    groups.get(name).parts.push({ name: of ? part : "", ...counts });
  }
  return [...groups.values()].sort((a, b) => a.name.localeCompare(b.name));
}

// ---------------------------------------------------------------- build

export function BuildView({ tome, query, info, navigate }) {
  const summary = useGet(tomePath(tome));
  const jobs = useJobs(tome, summary.reload);
  const needing = useMemo(() => info.systems.filter((system) => system.layers?.length), [info]);
  const { data, error } = summary;
  const known = query.system ? findSystem(query.system, info.systems) : needing.find((system) => system.name === "comorag") ?? needing[0];
  const chosen = useMemo(() => known && { ...known, name: query.system || known.name, base: known.name }, [known, query.system]);
  const builds = jobs.jobs.filter((job) => job.kind === "build");
  const shown = builds.filter(isPressing);
  return html`<${Head} title="Build memory">Some systems answer from more than passages. A build reads the documents once, and says first what that costs.</${Head}>
    <${TomeError} error=${error} retry=${summary.reload} />
    ${shown.map((job) => html`<${JobCard} key=${job.id} job=${job} put=${jobs.put} readOnly=${info.read_only} />`)}
    ${!data && !error ? html`<${Loading} />` : null}
    ${data && !data.total ? html`<${Empty} title="Nothing to build from yet" actions=${html`<${Button} kind="primary" href=${link(tome)}>Add documents</${Button}>`}>Add documents first: memory is made from their passages.</${Empty}>` : null}
    ${chosen ? null : html`<${NoSystem} name=${query.system} systems=${needing} onTake=${(name) => navigate(link(tome, "build", { system: name }))} />`}
    ${data?.total ? html`<div class="split even">
      <section class="stack" aria-labelledby="systems"><h2 id="systems">Systems that need memory</h2><${Systems} tome=${tome} systems=${needing} chosen=${chosen?.name} data=${data} /></section>
      ${chosen ? html`<${Estimate} key=${chosen.name} tome=${tome} system=${chosen} data=${data} info=${info} busy=${builds.some(isOpen)} onJob=${jobs.put} />` : null}
    </div>` : null}`;
}

/** Systems with what their builds cost. Those that rest on the same layers cost the same, so each set is asked about once. */
function Systems({ tome, systems, chosen, data }) {
  const [costs, setCosts] = useState({});
  const [model] = useModel();
  useEffect(() => {
    const leaving = new AbortController();
    const ask = async () => {
      const known = {};
      for (const system of systems) {
        const key = system.layers.map((layer) => layer.name).join();
        if (leaving.signal.aborted) return;
        known[key] ??= await send("POST", tomePath(tome, "estimate"), { system: system.name, ...nameModel(model) }, { signal: leaving.signal }).then((costs) => costs.total, (error) => ({ error }));
        setCosts((now) => ({ ...now, [system.name]: known[key] }));
      }
    };
    ask();
    return () => leaving.abort();
  }, [tome, data, model]);
  const isLagging = (row) => data.lagging.includes(row.name);
  const columns = [
    { key: "name", label: "System", wide: true, cell: (row) => html`<a href=${link(tome, "build", { system: row.name })} aria-current=${row.name === chosen ? "true" : undefined}>${row.name}</a>
      ${row.name === data.contents.recommended?.system ? html` <${Tag} kind="good">recommended</${Tag}>` : null}<small class="soft id">${describeSystem(row)}</small>` },
    { key: "calls", label: "Calls", number: true, cell: (row) => { const total = costs[row.name]; return !total ? "…" : total.error ? "–" : data.ready.includes(row.name) ? isLagging(row) ? html`<${Tag} title="It answers, and does not know the newest documents yet.">older</${Tag}> ${formatCount(total.calls)}` : html`<${Tag} kind="good">built</${Tag}>` : formatCount(total.calls); } },
    { key: "tokens", label: "Tokens", number: true, extra: true, cell: (row) => { const total = costs[row.name]; return !total || total.error || data.ready.includes(row.name) ? "" : formatCount(total.input_tokens + total.output_tokens); } },
    { key: "money", label: "Money", number: true, cell: (row) => { const total = costs[row.name]; return !total || total.error || data.ready.includes(row.name) ? "" : html`<${Money} value=${total.dollars} />`; } },
  ];
  return html`<${Table} caption="Systems that need memory" columns=${columns} rows=${systems} rowKey=${(row) => row.name} mark=${(row) => (row.name === chosen ? "chosen" : "")} />`;
}

/** What one build costs, layer by layer; a click accepts that. */
function Estimate({ tome, system, data, info, busy, onJob }) {
  const [state, setState] = useState({});
  const [model] = useModel();
  const estimate = useCallback(() => send("POST", tomePath(tome, "estimate"), { system: system.name, ...nameModel(model) }).then((costs) => setState({ costs }), (error) => setState({ error })), [tome, system, model]);
  useEffect(() => { estimate(); }, [tome, system, data, model]);
  const { costs, error, started } = state;
  const total = costs?.total;
  const accept = async () => {
    setState({ costs, started: true });
    const body = { system: system.name, ...nameModel(model), accept: costs.accept };
    try {
      onJob(await send("POST", tomePath(tome, "builds"), body));
      setState({ costs });
    } catch (problem) {
      setState({ costs: problem.more.estimate ?? costs, error: problem });
    }
  };
  const there = new Map(groupLayers(data.contents.layers).map((group) => [group.name, group.parts.reduce((sum, part) => sum + part.nodes, 0)]));
  const rows = costs ? [...costs.layers.map(({ layer, cost }) => ({ layer, ...cost })), { layer: "In all", ...total, sum: true }] : [];
  const columns = [
    { key: "layer", label: "Layer", wide: true },
    { key: "there", label: "Built", number: true, cell: (row) => (row.sum ? "" : formatCount(there.get(row.layer) ?? data.contents.layers[row.layer]?.nodes ?? 0)) },
    { key: "calls", label: "Calls", number: true },
    { key: "input_tokens", label: "Tokens in", number: true, extra: true },
    { key: "output_tokens", label: "Tokens out", number: true, extra: true },
    { key: "dollars", label: "Money", number: true, cell: (row) => html`<${Money} value=${row.dollars} />` },
    ...(total?.model_seconds ? [{ key: "model_seconds", label: "Time", number: true, cell: (row) => formatSeconds(row.model_seconds) }] : []),
  ];
  const isReady = data.ready.includes(system.base) && !data.lagging.includes(system.base);
  const price = total && (total.dollars === null ? "at a price that is not known" : total.dollars === 0 ? "" : `for about ${formatMoney(total.dollars)}`);
  return html`<section class="stack card" aria-labelledby="estimate"><h2 id="estimate">${system.name}</h2>
    <p class="soft">${describeSystem(system)}</p>
    ${costs ? html`<${Table} caption=${`What a build of ${system.name} costs`} columns=${columns} rows=${rows} rowKey=${(row) => row.layer} mark=${(row) => (row.sum ? "sum" : "")} />` : error ? null : html`<${Loading} what="Estimating" />`}
    <${ErrorNotice} error=${error} />
    ${costs && isReady && !total.calls ? html`<p>Everything is there.</p><${Button} kind="primary" href=${link(tome, "ask", { system: system.name })}>Ask with ${system.name}</${Button}>` : null}
    ${costs && !(isReady && !total.calls) && !info.read_only ? html`
      <p class="soft">With ${costs.model === "extractive" ? "" : "the model "}${describeModel(costs.model)}. Calls that repair a reply come on top; the build stops at a tenth more than this. A build that was stopped repeats no finished call.</p>
      <${Button} kind="primary" disabled=${busy || started} onClick=${accept}>${busy ? "A build is at work" : started ? "Starting…" : `Accept and build: ${count(total.calls, "call")} ${price}`}</${Button}>` : null}
    ${info.read_only ? html`<p class="soft">This server only reads. Build with <code>tome build --system ${system.name}</code>.</p>` : null}
  </section>`;
}
