import type { Open } from "./stream";

export interface Locator {
  section: string;
  page: number | null;
  year: number | null;
  url: string;
  code: string;
  kind: string;
  authors: string[];
  journal: string;
  date: string; // month or day, where more than the year is known
  notice: string; // what was published against the work: a retraction, with its date and reason
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
  mark: string; // as the answer cites it: [1], or [R1] of a patient's record
  age: number | null; // in years when it was answered
  superseded: boolean;
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

export interface Usage {
  calls: number;
  prompt_tokens: number;
  cached_tokens: number; // of prompt_tokens
  completion_tokens: number;
  scored_tokens: number;
  searches: number;
  money: { amount: number; currency: string } | null; // null where a price is not set
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
    statements: { text: string; cites: number[]; kind: "claim" | "unconfirmed" | "notice" }[];
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
  usage: Usage | null;
  models: Record<string, string>;
  seconds: number | null;
  snapshot: string;
  ahead: number; // runs that wait for a place before this one does
  outdated: boolean; // the knowledge base has changed since
  changed: { number: number; passage: string; state: "changed" | "gone" | "noticed"; notice: string }[];
  error: { code: string; detail: string } | null;
}

export interface Listed {
  run_id: string;
  status: string;
  created: string;
  strategy: string;
  question: string;
}

export interface Conversation {
  id: string;
  kind: "thread" | "run";
  title: string;
  created: string;
  status: string;
  last_run: string;
  pinned: boolean;
}

export interface Alone {
  standalone: string;
  rewritten_by: string; // rule or user; empty where the question stood alone
}

export interface Turn extends Alone {
  n: number;
  run_id: string;
  question: string;
}

export interface Thread {
  thread_id: string;
  created: string;
  turns: Turn[];
}

export interface Change {
  after: string; // the run of the later answer
  new_statements: string[];
  gone_statements: string[];
  new_passages: string[];
  gone_passages: string[];
  grounding: string[]; // before and after
}

export interface Places {
  sources: string[];
  endings: string[];
  mib: number;
}

export interface Upload {
  source: string;
  name: string;
  bytes: number;
  sent: string;
}

export interface Sent {
  upload: Upload;
  documents: number;
  passages: number;
  drops: Record<string, number>;
  replaced: boolean;
}

export interface LabelPair {
  headings: string[];
  labels: { document: string; title: string; code: string; url: string; effective: string; sections: Record<string, Passage[]> }[];
}

export interface Study {
  title: string;
  year: number | null;
  design: string;
  n: string;
  measure: string;
  value: string;
  unit: string;
  low: string;
  high: string;
  hints: string;
  quote: string;
  passage: string;
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

export interface OpenPatient {
  title: string;
  system: string;
  parts: { heading: string; text: string }[];
  unread: string[];
  ends: string;
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
  exports: string[]; // formats of files that the server can write
  uploads: string[]; // sources that take files of the reader
  version: string;
  models: Record<string, { kind: string; name: string; words_answers: boolean }>;
}

export interface Example {
  question: string;
  options: string[];
  language: "en" | "zh";
}

// A part of the published scoreboard: a heading, words, a list or a table.
export interface Block {
  heading?: string;
  level?: number;
  text?: string;
  list?: string[];
  head?: string[];
  rows?: string[][];
}

export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly danger: Danger | null = null,
  ) {
    super(message);
  }
}

// No reply came: the server is away, or the network is.
export class Away extends Error {}

export const LOCKED = "osler-locked"; // an event: the key is wanted, or holds no more

let key = ""; // kept in memory alone: a reload asks again

export function useKey(given: string): void {
  key = given;
}

export const hasKey = () => key !== "";

function headers(): Record<string, string> {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

// Every request goes out here: no browser's wording comes through.
async function reach(path: string, how: RequestInit = {}): Promise<Response> {
  const sent = { ...how, headers: { ...headers(), ...how.headers } };
  const reply = await fetch(path, sent).catch((error) => {
    throw how.signal?.aborted ? error : new Away();
  });
  if (reply.status === 401) window.dispatchEvent(new Event(LOCKED));
  return reply;
}

async function asked(path: string, how: RequestInit = {}): Promise<Response> {
  const reply = await reach(path, how);
  if (!reply.ok) throw refusal(await reply.json().catch(() => null), reply.status);
  return reply;
}

async function call<T>(path: string, body?: unknown, method = "POST"): Promise<T> {
  const type = { "Content-Type": "application/json" };
  const how = body === undefined ? {} : { method, body: JSON.stringify(body), headers: type };
  const reply = await asked(`api/v1/${path}`, how);
  return reply.status === 204 ? (undefined as T) : reply.json();
}

type Problem = { detail: string; code?: string; fix?: string; danger?: Danger | null } | null;

function refusal(document: Problem, status: number): Refusal {
  const more = document?.fix ? ` (${document.fix})` : "";
  return new Refusal(`${document?.detail ?? ""}${more}`, status, document?.code ?? "", document?.danger);
}

async function remove(path: string): Promise<void> {
  await asked(`api/v1/${path}`, { method: "DELETE" });
}

export type Bytes = { blob: Blob; name: string };

// A file, as bytes: a link could bear no key.
async function bytes(path: string, usual: string): Promise<Bytes> {
  const reply = await asked(path);
  const name = /filename="([^"]+)"/.exec(reply.headers.get("content-disposition") ?? "")?.[1];
  return { blob: await reply.blob(), name: name ?? usual };
}

export const exported = (path: string, to: string) => bytes(`api/v1/${path}/export?to=${of(to)}`, "osler");
export const report = (address: string) => bytes(address, "report.html");

// `fetch` does not tell how much of a body has gone; this does.
export function send(source: string, file: File, progress: (share: number) => void): Promise<Sent> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file);
    request.open("POST", `api/v1/uploads/${of(source)}`);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => progress(loaded / Math.max(1, total));
    request.onerror = () => fail(new Away());
    request.onload = () =>
      request.status < 300 ? done(request.response) : fail(refusal(request.response, request.status));
    request.send(form);
  });
}

const of = encodeURIComponent;

export const start = (body: object) => call<{ run_id: string }>("runs", body);
export const plan = (body: object) => call<Planned>("plan", body);
export const run = (id: string) => call<Run>(`runs/${of(id)}`);
export const runs = (before = "") =>
  call<{ runs: Listed[]; next: string | null }>(`runs?limit=50&before=${of(before)}`);
export const cancel = (id: string) => call<Run>(`runs/${of(id)}/cancel`, {});
export const studies = (id: string) => call<{ rows: Study[] }>(`runs/${of(id)}/studies`);
export const conversations = (find: string, before: string) =>
  call<{ conversations: Conversation[]; next: string | null }>(`conversations?limit=50&find=${of(find)}&before=${of(before)}`);
export const rename = (id: string, title: string) => call<void>(`conversations/${of(id)}`, { title }, "PUT");
export const pin = (id: string, pinned: boolean) => call<void>(`conversations/${of(id)}`, { pinned }, "PUT");
export const deleteConversation = (id: string) => remove(`conversations/${of(id)}`);
export const followUps = (id: string) => call<{ questions: string[] }>(`runs/${of(id)}/follow_ups`);
export const thread = (id: string) => call<Thread>(`threads/${of(id)}`);
export const changes = (id: string) => call<{ changes: Change[] }>(`threads/${of(id)}/changes`);
export const goOn = (run: string) => call<Thread>("threads", { run_id: run });
export const standalone = (id: string, question: string) => call<Alone>(`threads/${of(id)}/standalone`, { question });
export const askIn = (id: string, body: object) => call<{ turn: Turn; danger: Danger | null }>(`threads/${of(id)}/turns`, body);
export const places = () => call<Places>("uploads");
export const uploads = (source: string) => call<{ uploads: Upload[] }>(`uploads/${of(source)}`);
export const reread = (one: Upload) => call<Sent>(`uploads/${of(one.source)}/${of(one.name)}/reread`, {});
export const deleteUpload = (one: Upload) => remove(`uploads/${of(one.source)}/${of(one.name)}`);
export type Verdict = "helpful" | "wrong" | "unsafe";
export const judge = (id: string, verdict: Verdict, note: string) =>
  call<object>(`runs/${of(id)}/feedback`, { verdict, note });
export const about = () => call<About>("transparency");
export const examples = () => call<{ examples: Example[] }>("examples");
export const sources = () => call<{ searched: string[]; sources: Source[] }>("sources");
export const launched = () => call<{ patient: OpenPatient | null }>("launch");
export const closeRecord = () => remove("launch");
export const kb = () => call<Kb>("kb");
export const search = (body: object) => call<{ hits: Hit[] }>("search", body);
export const passage = (id: string, context: number) =>
  call<Found>(`passages/${of(id)}?context=${context}`);
export const labels = (drugs: string[]) =>
  call<LabelPair>(`labels?${drugs.map((one) => `drug=${of(one)}`).join("&")}`);
export const concepts = (term: string) =>
  call<{ concepts: { id: string; name: string }[] }>(`graph/concepts?term=${of(term)}`);
export const concept = (id: string) => call<Concept>(`graph/concepts/${of(id)}`);
export const scoreboard = async (): Promise<Block[]> => (await asked("assets/scoreboard.json")).json();
// Without the laboratory the server has none.
export const evaluations = () =>
  call<{ evaluations: Evaluated[] }>("evaluations").catch((error) => {
    if (error instanceof Refusal && error.status === 404) return { evaluations: [] };
    throw error;
  });
export const evaluation = (name: string) => call<Evaluation>(`evaluations/${of(name)}`);
export const samples = (name: string, strategy: string, task: string) =>
  call<{ samples: Sample[] }>(`evaluations/${of(name)}/samples?strategy=${of(strategy)}&task=${of(task)}`);

export const events =
  (id: string): Open =>
  (after, stop) =>
    reach(`api/v1/runs/${of(id)}/events`, { headers: { "Last-Event-ID": String(after) }, signal: stop });

export const working = (status: string) => status === "queued" || status === "running";
