import type { Open } from "./stream";

export interface Locator {
  section: string;
  page: number | null;
  year: number | null;
  url: string;
  code: string;
  kind: string;
}

export interface Passage {
  id: string;
  source: string;
  title: string;
  text: string;
  licence: string;
  language: string;
  illustrative: boolean;
  locator: Locator;
}

export interface Evidence {
  number: number;
  passage: Passage;
  quote: string;
  quote_span: [number, number];
  use: string;
  query: string;
  rank: number;
}

export interface Caution {
  rule: string;
  text: string;
  evidence: { passage: Passage; quote: string; quote_span: [number, number] }[];
}

export interface Danger {
  kinds: ("emergency" | "self-harm")[];
  text: string;
  rules: string[];
  language: "en" | "zh";
}

export interface Run {
  danger: Danger | null;
  run_id: string;
  status: string;
  created: string;
  strategy: string;
  question: string;
  options: string[];
  answer: {
    text: string;
    option: string | null;
    statements: { text: string; cites: number[] }[];
    note: string;
    authorship: "extractive" | "written";
    sureness: { probability: number; by: string } | null; // null where nothing can say
  } | null;
  evidence: Evidence[];
  cautions: Caution[];
  grounding: string | null;
  halt: string | null;
  why: string;
  decided: "method" | "reader" | "fallback" | null;
  steps: { n: number; function: string; step: string; answer: string; passages: string[]; computed: string }[];
  usage: { calls: number; prompt_tokens: number; completion_tokens: number; searches: number } | null;
  models: Record<string, string>;
  seconds: number | null;
  snapshot: string;
  error: { code: string; detail: string } | null;
}

export interface Listed {
  run_id: string;
  status: string;
  created: string;
  strategy: string;
  question: string;
}

export interface Query {
  source: string;
  query: string;
}

export interface Planned {
  danger: Danger | null;
  queries: Query[];
  sources: string[];
  dropped: string[];
  planner: string;
}

export interface Source {
  source: string;
  documents: number;
  passages: number;
  files: number;
  licences: string[];
  illustrative: number;
  retracted: number;
  latest: number;
}

export interface Kb {
  snapshot: string;
  built: boolean;
  encoder: string;
  documents: number;
  passages: number;
  graph: boolean;
}

export interface Hit {
  rank: number;
  score: number;
  passage: Passage;
}

export interface Found {
  passage: Passage;
  context: Passage[];
  provenance: {
    document: string;
    origin: string;
    format: string;
    trust: number;
    kinds: string[];
    retracted: boolean;
    version: number;
    checksum: string;
  } | null;
  snapshot: string;
}

export interface Relation {
  subject: string;
  subject_name: string;
  predicate: string;
  object: string;
  object_name: string;
}

export interface Concept {
  id: string;
  name: string;
  names: string[];
  types: string[];
  definitions: [string, string][];
  relations: Relation[];
}

export interface Figure {
  value: number;
  low: number;
  high: number;
  n: number;
}

export interface Cell {
  strategy: string;
  task: string;
  planned: number;
  done: number;
  failed: number;
  missing: number;
  figures: Record<string, Figure>;
}

export interface Pair {
  task: string;
  first: string;
  second: string;
  measure: string;
  change: Figure;
  corrected: number;
  verdict: string;
}

export interface Evaluation {
  name: string;
  head: string;
  strategies: string[];
  tasks: string[];
  measures: { name: string; title: string; percent: boolean; means: Record<string, number | null> }[];
  cells: Cell[];
  compared: Pair[];
  printed: { place: string; task: string; strategy: string; theirs: number; ours: Figure; differs: string }[];
  left_out: string[];
  facts: [string, string][];
}

export interface Evaluated {
  name: string;
  experiment: string;
  version: string;
  strategies: string[];
  tasks: string[];
  damaged: string;
}

export interface Sample {
  id: string;
  question: string;
  options: string[];
  gold: string;
  answer: string;
  score: number | null;
  why: string;
}

export interface About {
  strategies: string[];
  strategy: string;
  notice: string;
  version: string;
  snapshot: string;
  models: Record<string, { kind: string; name: string; words_answers: boolean }>;
}

export interface Example {
  question: string;
  options: string[];
  language: "en" | "zh";
}

export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly danger: Danger | null = null,
  ) {
    super(message);
  }
}

let key = ""; // kept in memory alone: a reload asks again

export function useKey(given: string): void {
  key = given;
}

function headers(): Record<string, string> {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

async function call<T>(path: string, body?: unknown): Promise<T> {
  const post = { method: "POST", body: JSON.stringify(body) };
  const type = { "Content-Type": "application/json" };
  const reply = await fetch(`api/v1/${path}`, {
    ...(body === undefined ? {} : post),
    headers: { ...headers(), ...(body === undefined ? {} : type) },
  });
  const document = await reply.json().catch(() => ({ detail: reply.statusText }));
  if (!reply.ok) {
    const more = document.fix ? ` (${document.fix})` : "";
    throw new Refusal(`${document.detail}${more}`, reply.status, document.danger ?? null);
  }
  return document;
}

const of = encodeURIComponent;

export const start = (body: object) => call<{ run_id: string }>("runs", body);
export const plan = (body: object) => call<Planned>("plan", body);
export const run = (id: string) => call<Run>(`runs/${of(id)}`);
export const runs = (before = "") =>
  call<{ runs: Listed[]; next: string | null }>(`runs?limit=50&before=${of(before)}`);
export const cancel = (id: string) => call<Run>(`runs/${of(id)}/cancel`, {});
export type Verdict = "helpful" | "wrong" | "unsafe";
export const judge = (id: string, verdict: Verdict, note: string) =>
  call<object>(`runs/${of(id)}/feedback`, { verdict, note });
export const about = () => call<About>("transparency");
export const examples = () => call<{ examples: Example[] }>("examples");
export const sources = () => call<{ searched: string[]; sources: Source[] }>("sources");
export const kb = () => call<Kb>("kb");
export const search = (body: object) => call<{ hits: Hit[] }>("search", body);
export const passage = (id: string, context: number) =>
  call<Found>(`passages/${of(id)}?context=${context}`);
export const concepts = (term: string) =>
  call<{ concepts: { id: string; name: string }[] }>(`graph/concepts?term=${of(term)}`);
export const concept = (id: string) => call<Concept>(`graph/concepts/${of(id)}`);
export const evaluations = () => call<{ evaluations: Evaluated[] }>("evaluations");
export const evaluation = (name: string) => call<Evaluation>(`evaluations/${of(name)}`);
export const samples = (name: string, strategy: string, task: string) =>
  call<{ samples: Sample[] }>(`evaluations/${of(name)}/samples?strategy=${of(strategy)}&task=${of(task)}`);

export const events =
  (id: string): Open =>
  (after, stop) =>
    fetch(`api/v1/runs/${of(id)}/events`, {
      headers: { ...headers(), "Last-Event-ID": String(after) },
      signal: stop,
    });

export const working = (status: string) => status === "queued" || status === "running";
