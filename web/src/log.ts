// What the page shows of a run is a fold over its events: the same of a run that goes on, of one
// that is looked at again, and of any beginning of it.

export interface Frame {
  kind: string;
  text: string;
}

export interface Step {
  at: number; // number of the event
  what: "push" | "pop" | "state";
  label: string;
  frames: Frame[]; // the stack after it
  value?: number;
}

export interface Node {
  n: number;
  fn: string;
  step: string;
  needs: number[];
  status: "waiting" | "done" | "failed";
  answer: string;
  own: boolean;
}

export interface Told {
  seen: number;
  status: "running" | "finished" | "failed" | "cancelled";
  detail: string;
  timeline: { at: number; type: string; said: string }[];
  plan: { source: string; query: string }[];
  frames: Frame[];
  film: Step[];
  sigma: number | null;
  metric: string;
  nodes: Node[];
}

export const EMPTY: Told = {
  seen: 0,
  status: "running",
  detail: "",
  timeline: [],
  plan: [],
  frames: [],
  film: [],
  sigma: null,
  metric: "",
  nodes: [],
};

// deno-lint-ignore no-explicit-any -- an event is JSON whose shape its type names
export type Event = { type: string } & Record<string, any>;

export function told(before: Told, at: number, event: Event): Told {
  if (at <= before.seen) return before; // a stream that was resumed may say it again
  const timeline = [...before.timeline, { at, type: event.type, said: said(event) }];
  return { ...changed(before, at, event), seen: at, timeline };
}

function changed(before: Told, at: number, event: Event): Told {
  switch (event.type) {
    case "plan.proposed":
      return { ...before, plan: event.queries };
    case "stack.push": {
      const frames = [...before.frames, { kind: event.kind, text: event.text }];
      return filmed({ ...before, frames }, at, "push", event.kind);
    }
    case "stack.pop": {
      if (!event.kind) return filmed(before, at, "pop", event.reason || event.by);
      const frames = before.frames.slice(0, Math.max(0, event.depth));
      return filmed({ ...before, frames }, at, "pop", `${event.by} ${event.reason || ""}`.trim());
    }
    case "state.updated": {
      const next = { ...before, sigma: event.sigma, metric: event.metric };
      const label = `${event.metric} ${round(event.value)}`;
      return filmed(next, at, "state", label, event.value);
    }
    case "lf.parsed":
      return { ...before, nodes: event.nodes.map(waiting) };
    case "lf.node":
      return { ...before, nodes: before.nodes.map((one) => solved(one, event)) };
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

function filmed(now: Told, at: number, what: Step["what"], label: string, value?: number): Told {
  const step: Step = { at, what, label, frames: now.frames, value };
  return { ...now, film: [...now.film, step] };
}

function waiting(given: { n: number; fn: string; step: string; needs: number[] }): Node {
  return { ...given, status: "waiting", answer: "", own: false };
}

function solved(one: Node, event: Event): Node {
  if (one.n !== event.n) return one;
  return { ...one, status: event.status, answer: event.answer, own: event.own_knowledge };
}

function said(event: Event): string {
  switch (event.type) {
    case "run.started":
      return event.strategy;
    case "retrieval.started":
      return `${event.sources.join(", ")}: ${event.query}`;
    case "retrieval.done":
      return `${event.hits.length}${event.failed.length ? ` (${event.failed.join("; ")})` : ""}`;
    case "model.asked":
      return `${event.role}: ${event.prompt}`;
    case "state.updated":
      return `${event.metric} ${round(event.value)}, σ ${event.sigma}${event.note ? `: ${event.note}` : ""}`;
    case "run.note":
      return event.text;
    default:
      return event.text ?? event.answer ?? event.reason ?? event.detail ?? event.value ?? "";
  }
}

export const round = (value: number): string => value.toPrecision(3);

// Columns of the graph: a step stands right of all that it waits for.
export function columns(nodes: Node[]): Map<number, number> {
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
