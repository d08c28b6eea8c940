import type { Event } from "./log";

export interface Passage {
  id: string;
  source: string;
  title: string;
  text: string;
  licence: string;
  illustrative: boolean;
  locator: { section: string; page: number | null; year: number | null; url: string; kind: string };
}

export interface Evidence {
  number: number;
  passage: Passage;
  quote: string;
  quote_span: [number, number];
}

export interface Run {
  run_id: string;
  status: string;
  strategy: string;
  question: string;
  answer: {
    text: string;
    option: string | null;
    statements: { text: string; cites: number[] }[];
    note: string;
    authorship: string;
  } | null;
  evidence: Evidence[];
  grounding: string | null;
  why: string;
  seconds: number | null;
  snapshot: string;
  error: { code: string; detail: string } | null;
  notice: string;
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

export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
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
  const document = await reply.json();
  if (!reply.ok) {
    const more = document.fix ? ` (${document.fix})` : "";
    throw new Refusal(`${document.detail}${more}`, reply.status);
  }
  return document;
}

export const start = (body: object) => call<{ run_id: string }>("runs", body);
export const plan = (body: object) => call<{ queries: Query[]; sources: string[] }>("plan", body);
export const run = (id: string) => call<Run>(`runs/${encodeURIComponent(id)}`);
export const runs = () => call<{ runs: Listed[] }>("runs?limit=50");
export const cancel = (id: string) => call<Run>(`runs/${encodeURIComponent(id)}/cancel`, {});
export const strategies = () => call<{ strategies: string[]; strategy: string; notice: string }>("transparency");

const PAUSES = [200, 500, 1000, 2000, 4000];

// EventSource can send no key; this reads on from the last event as it would.
export async function follow(
  id: string,
  hear: (at: number, event: Event) => void,
  stop: AbortSignal,
): Promise<void> {
  let seen = 0;
  for (let tries = 0; !stop.aborted; tries += 1) {
    try {
      const reply = await fetch(`api/v1/runs/${encodeURIComponent(id)}/events`, {
        headers: { ...headers(), "Last-Event-ID": String(seen) },
        signal: stop,
      });
      if (!reply.ok || !reply.body) throw new Refusal(reply.statusText, reply.status);
      await read(reply.body, (at, event) => {
        seen = at;
        tries = 0;
        hear(at, event);
      });
      return;
    } catch (error) {
      if (stop.aborted || error instanceof Refusal || tries >= PAUSES.length) throw error;
      await new Promise((wake) => setTimeout(wake, PAUSES[tries]));
    }
  }
}

async function read(
  body: ReadableStream<Uint8Array>,
  hear: (at: number, event: Event) => void,
): Promise<void> {
  const reader = body.getReader();
  const text = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + text.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const at = /^id: (\d+)$/m.exec(block);
      const data = /^data: (.*)$/m.exec(block);
      if (at?.[1] && data?.[1]) hear(Number(at[1]), JSON.parse(data[1]));
    }
  }
}
