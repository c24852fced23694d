// What happened while a question was answered, in words: by the name of an event, what it did and a sentence.
// Events of systems from outside have other names; they are told by their own summary.
import { count, formatCount, shorten } from "./parts.js";

const SHORT = 160; // characters of a text within a sentence

/** Where a loop looked, by the name of its layer. */
const PLACES = {
  passages: "the passages", facts: "the facts", relations: "the relations", gists: "the gists", tree: "the summaries", memtree: "the summaries", semantic: "the summaries",
  episodes: "the course of the text", episodic: "the course of the text", veridical: "the facts and passages", schemata: "the groups of passages", reports: "the reports", entities: "the entities", pages: "the pages", graph: "the graph",
};

function namePlaces(layer) {
  const names = String(layer ?? "").split(/[+,]\s*/).map((each) => PLACES[each.trim()] ?? PLACES[each.trim().split(":")[0]]).filter(Boolean);
  return names.length ? ` in ${[...new Set(names)].join(" and ")}` : "";
}

function quote(text) {
  return text ? `“${shorten(String(text).replaceAll(/\s+/g, " "), SHORT)}”` : "";
}

function list(texts) {
  return Array.isArray(texts) ? texts.slice(0, 3).map(quote).join(", ") + (texts.length > 3 ? ` and ${texts.length - 3} more` : "") : "";
}

function size(value) {
  return Array.isArray(value) ? value.length : 0;
}

function pieces(detail) {
  return count(size(detail.evidence), "piece");
}

const newPieces = (detail) => (size(detail.evidence) ? `${count(size(detail.evidence), "new piece")}.` : "nothing new.");

/** By the name of an event: a function of its detail that gives the word for it and the sentence, or null where the detail is of another form. */
const WORDS = {
  retrieved: (d) => ["Found", d.found === undefined ? `${pieces(d)}.` : `${count(d.found, "piece")}; ${d.cut ? `${formatCount(d.found - d.cut)} had room and were shown to the model.` : "all were shown to the model."}`],
  "reports chosen": (d) => ["Chose reports", `${count(size(d.reports), "report")}${d.rated ? ` of ${formatCount(d.rated)} that were rated` : ""}, in ${count(d.batches, "call")}: ${list(d.reports)}`],
  "points found": (d) => ["Read reports", `${count(size(d.notes), "point")} in ${count(size(d.reports), "report")}. ${list(d.notes)}`],
  "followed up": (d) => ["Asked", `${quote(d.query)} ${quote(d.notes?.[0])} ${count(size(d.follow_ups), "follow-up")}.`],
  "looked up": (d) => ["Looked up", `${count(size(d.pages), "page")} of ${formatCount(d.gists)}. ${d.reasoning ?? ""}`],
  searched: (d) => ["Looked for", `${quote(d.query)}: ${newPieces(d)}`],
  recalled: (d) => ["Looked for", `${quote(d.probe)}${namePlaces(d.layer)}: ${newPieces(d)}`],
  explored: (d) => ["Looked for", `${quote(d.subquery)}${size(d.points) ? ` near ${count(d.points.length, "point")}` : ""}: ${newPieces(d)}`],
  stopped: (d) => ["Stopped", d.reason && `${d.reason}.`],
  skipped: (d) => ["Skipped", `a reply that could not be used: ${d.reason}`],
  chosen: (d) => ["Chose", d.chosen === "none" ? `no other system: ${d.because}` : `the system ${d.chosen}: ${d.because}`],
  thought: (d) => ["Thought", quote(d.thought)],
  decided: (d) => ["Decided", d.finished ? "that it knows enough." : d.search ? `to look for ${quote(d.subquestion)}` : `${quote(d.subquestion)} is known already: ${quote(d.answer)}`],
  found: (d) => ["Found", d.answer ? `${quote(d.asked)}: ${quote(d.answer)}` : `no answer to ${quote(d.asked)}`],
  tried: (d) => ["Tried", d.failed ? `to answer; not yet.${d.missing ? ` Missing: ${d.missing}` : ""}` : `to answer: ${quote(d.answer)}`],
  forced: (d) => ["Guessed", d.failed ? "nothing: it could not." : quote(d.answer)],
  "answered from points": (d) => ["Answered", `from ${count(d.points, "point")} that it had noted${d.answer ? `: ${quote(d.answer)}` : "."}`],
  answered: (d) => ["Answered", `from what it had written down${d.answer ? `: ${quote(d.answer)}` : "."}`],
  probed: (d) => ["Asked itself", list(d.probes)],
  encoded: (d) => ["Noted", d.cue ? `${quote(d.cue)}${namePlaces(d.layer) ? `, from what it found${namePlaces(d.layer)}` : ""}` : `nothing of use${namePlaces(d.layer)}.`],
  fused: (d) => ["Noted", `what its notes say together: ${quote(d.cue)}`],
  updated: (d) => ["Keeps", `${count(d.units, "note")} on ${count(d.nodes, "piece")} in its working memory.`],
  "ledger updated": (d) => ["Keeps", `${count(size(d.pool), "entry", "entries")} in its ledger.`],
  planned: (d) => ["Planned", d.sufficient ? "nothing more: it knows enough." : size(d.concerns) ? `to find out ${list(d.concerns.map((each) => each.concern))}` : "how to go on."],
  "reading planned": (d) => ["Planned", size(d.questions) ? `to look for ${list(d.questions)}` : "how to go on."],
  evolved: (d) => ["Noted", !size(d.inserted) && !size(d.updated) ? "nothing new." : `${count(size(d.inserted), "new point")}${size(d.updated) ? `, changed ${formatCount(size(d.updated))}` : ""}.`],
  merged: (d) => ["Joined", size(d.merged) ? `several points to ${count(size(d.merged), "point")}.` : "no points: none say the same."],
  divided: (d) => ["Reads", `${formatCount(d.tokens)} tokens in ${count(d.chunks, "part")}.`],
  extracted: (d) => ["Noted", `${count(size(d.notes), "fact")} of part ${d.chunk}${d.not_found ? `; ${formatCount(d.not_found)} stood nowhere and were left out` : ""}.`],
  read: (d) => ["Read", `part ${d.chunk}${size(d.notes) ? `, and noted ${quote(d.notes[0])}` : "."}`],
  unread: (d) => ["Skipped", `part ${d.chunk}: the model gave no reply that could be used.`],
  recovered: (d) => ["Reads again", d.open ? `${formatCount(d.tokens)} tokens for ${count(d.open, "open question")}.` : "nothing: no question is open."],
  rephrased: (d) => ["Understood", `${quote(d.asked)} as ${quote(d.question)}`],
  resumed: (d) => ["Remembered", `${count(size(d.known), "note")} of the session ${d.session}${size(d.forgotten) ? `; ${formatCount(size(d.forgotten))} are gone with their sources` : ""}.`],
  session: (d) => ["Used", `${count(size(d.notes), "note")} of the session${size(d.dropped) ? ` and dropped ${formatCount(size(d.dropped))}` : ""}.`],
  waiting: (d) => ["Waited", `${formatCount(d.seconds)} s for the model${d.tries ? `, before try ${d.next} of ${d.tries}` : ""}: ${d.reason}`],
  "asked again": (d) => ["Asked again", `${d.change}: ${d.reason}`],
  fallbacks: (d) => ["Went a simpler way", Object.entries(d.counts).map(([kind, number]) => `${kind}: ${formatCount(number)} times`).join(", ")],
};

/** What an event did: `[word, sentence]`. */
export function describeEvent({ name, summary, detail }) {
  const write = Object.hasOwn(WORDS, name) ? WORDS[name] : null;
  if (write && typeof detail === "object" && detail !== null && Object.keys(detail).length) {
    try {
      const [word, sentence] = write(detail);
      if (typeof sentence === "string" && sentence && !sentence.includes("undefined")) return [word, sentence];
    } catch {
      // an event from outside may bear a name of ours and hold something else
    }
  }
  return [name, summary];
}
