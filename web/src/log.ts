// What the page shows of a run is a fold over its events: the same of a run that goes on, of one
// that is looked at again, and of any beginning of it.

import type { Danger } from "./api";
import type { Event, Heard } from "./events";
import { splitNote } from "./notes";

export interface Frame {
  kind: string;
  text: string;
  note: string; // what a model wrote that may not word medicine
}

export interface Step {
  at: number;
  what: "push" | "pop" | "state";
  label: string; // the kind of frame, who took it off, or the value
  why: string;
  frames: Frame[]; // the stack after it
  gone: Frame[]; // what it took away
  of: number | null; // the plan's step that this stack solves
  value?: number;
  halted?: boolean;
}

export interface Node {
  n: number;
  fn: string;
  step: string;
  action: string;
  needs: number[];
  status: "waiting" | "done" | "failed";
  answer: string;
  own: boolean;
  confidence: number | null;
  passages: string[];
  notes: { event: Event; note: string }[]; // boundary, focus, calculation
  note: string;
}

export interface Told {
  danger: Danger | null; // emergency contacts, shown before all else
  notesOf: string[]; // roles whose model may not word medicine
  seen: number;
  status: "running" | "finished" | "failed" | "cancelled";
  detail: string;
  now: Event | null; // the last one
  plan: { source: string; query: string }[];
  origin: string;
  dropped: string[];
  frames: Frame[];
  solving: number | null; // the plan's step whose stack it is
  film: Step[];
  sigma: number | null;
  metric: string;
  nodes: Node[];
  down: string[]; // sources that failed, each with its reason
  notes: string[];
  found: string[]; // ids of passages, those that are read first, then in the order in which they were found
}

export const EMPTY: Told = {
  danger: null,
  notesOf: [],
  seen: 0,
  status: "running",
  detail: "",
  now: null,
  plan: [],
  origin: "",
  dropped: [],
  frames: [],
  solving: null,
  film: [],
  sigma: null,
  metric: "",
  nodes: [],
  down: [],
  notes: [],
  found: [],
};

// A stream that was resumed may say an event again: each counts once.
export function heard(before: Heard[], more: Heard[]): Heard[] {
  const last = before.at(-1)?.at ?? 0;
  const fresh = more.filter((one, index) => one.at > Math.max(last, more[index - 1]?.at ?? 0));
  return fresh.length ? [...before, ...fresh] : before;
}

export function told(events: Heard[]): Told {
  return events.reduce(
    (before, { at, event }) => {
      const { bare, note } = splitNote(event, before.notesOf);
      return { ...changed(before, at, bare, note), seen: at, now: bare };
    },
    EMPTY,
  );
}

function changed(before: Told, at: number, event: Event, note: string): Told {
  switch (event.type) {
    case "run.danger":
      return { ...before, danger: event.notice };
    case "run.started":
      return { ...before, notesOf: event.notes_of ?? [] };
    case "plan.proposed":
      return { ...before, plan: event.queries, origin: event.origin, dropped: event.dropped ?? [] };
    case "retrieval.done":
      return retrieved(before, event);
    case "retrieval.ordered":
      return { ...before, found: [...new Set([...event.passages, ...before.found])] };
    case "run.note":
      return { ...before, notes: [...before.notes, event.text] };
    case "stack.push":
    case "stack.pop":
    case "state.updated":
      return filmed(before, at, event, note);
    case "lf.parsed":
      return { ...before, nodes: event.nodes.map(waiting), notes: [...before.notes, ...(event.warnings ?? [])] };
    case "lf.begun": // a stack of its own
      return { ...before, frames: [], solving: event.n };
    case "lf.boundary":
    case "lf.focus":
    case "math.run":
    case "lf.node":
      return { ...before, nodes: before.nodes.map((one) => (one.n === event.n ? solved(one, event, note) : one)) };
    case "run.finished":
      return { ...before, status: "finished" };
    case "run.failed":
      return { ...before, status: "failed", detail: event.detail };
    case "run.cancelled":
      return { ...before, status: "cancelled", detail: event.detail };
    default:
      return before;
  }
}

function retrieved(before: Told, event: Event): Told {
  const ids: string[] = (event.hits ?? []).map((hit: { passage: string }) => hit.passage);
  return {
    ...before,
    found: [...new Set([...before.found, ...ids])],
    down: [...new Set([...before.down, ...(event.failed ?? [])])],
  };
}

function filmed(before: Told, at: number, event: Event, note: string): Told {
  const step: Step = { at, what: "state", label: "", why: "", frames: before.frames, gone: [], of: before.solving };
  let { sigma, metric } = before;
  if (event.type === "stack.push") {
    const frames = [...before.frames, { kind: event.kind, text: event.text, note }];
    Object.assign(step, { what: "push", label: event.kind, frames });
  } else if (event.type === "stack.pop") {
    const kept = event.kind ? Math.max(0, event.depth) : before.frames.length;
    const [frames, gone] = [before.frames.slice(0, kept), before.frames.slice(kept)];
    Object.assign(step, { what: "pop", label: event.by, why: event.reason ?? "", frames, gone });
  } else {
    ({ sigma, metric } = event as unknown as { sigma: number; metric: string });
    const label = round(event.value);
    Object.assign(step, { label, value: event.value ?? undefined, halted: event.halted });
  }
  return { ...before, sigma, metric, frames: step.frames, film: [...before.film, step] };
}

function waiting(given: { n: number; fn: string; step: string; action: string; needs: number[] }): Node {
  return { ...given, status: "waiting", answer: "", own: false, confidence: null, passages: [], notes: [], note: "" };
}

function solved(one: Node, event: Event, note: string): Node {
  if (event.type !== "lf.node") return { ...one, notes: [...one.notes, { event, note }] };
  return {
    ...one,
    note,
    status: event.status,
    answer: event.answer,
    own: event.own_knowledge ?? false,
    confidence: event.confidence ?? null,
    passages: event.passages ?? [],
  };
}

// One event in one line.
export function said(event: Event): string {
  switch (event.type) {
    case "run.danger":
      return event.notice.text;
    case "run.started":
      return event.strategy ?? "";
    case "plan.proposed":
      return event.queries.map((one: { source: string; query: string }) => `${one.source}: ${one.query}`).join("; ");
    case "retrieval.started":
      return `${event.sources.join(", ")}: ${event.query}`;
    case "retrieval.done":
      return `${event.hits.length}${event.failed?.length ? ` (${event.failed.join("; ")})` : ""}`;
    case "retrieval.ordered":
      return event.passages.join(", ");
    case "model.asked":
      return `${event.role}: ${event.prompt}`;
    case "state.updated":
      return `${event.metric} ${round(event.value)}, σ ${event.sigma}${event.note ? `: ${event.note}` : ""}`;
    case "stack.push":
      return `${event.kind}: ${event.text}`;
    case "stack.pop":
      return `${event.by}${event.reason ? `: ${event.reason}` : ""}`;
    case "lf.parsed":
      return event.nodes.map((one: { n: number; fn: string }) => `${one.n} ${one.fn}`).join(", ");
    case "run.finished":
      return event.solution?.why ?? "";
    case "lf.begun":
      return `${event.n}: ${event.question}`;
    default:
      return String(event.text ?? event.answer ?? event.reason ?? event.detail ?? event.value ?? "");
  }
}

export function round(value: number | null | undefined): string {
  return typeof value === "number" && Number.isFinite(value) ? value.toPrecision(3) : "∞";
}

// Columns of the graph: a step stands right of all that it waits for.
export function columns(nodes: Pick<Node, "n" | "needs">[]): Map<number, number> {
  const found = new Map<number, number>();
  const known = new Map(nodes.map((one) => [one.n, one]));
  const place = (n: number, above: Set<number>): number => {
    const before = found.get(n);
    if (before !== undefined) return before;
    const needs = (known.get(n)?.needs ?? []).filter((m) => known.has(m) && !above.has(m));
    const inside = new Set(above).add(n);
    const column = Math.max(-1, ...needs.map((m) => place(m, inside))) + 1;
    found.set(n, column);
    return column;
  };
  for (const one of nodes) place(one.n, new Set());
  return found;
}
