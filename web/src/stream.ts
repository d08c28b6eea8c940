// The events of a run as they come, read on from the last one whenever the connection is lost.

import { END, type Event } from "./events";

export type Open = (after: number, stop: AbortSignal) => Promise<Response>;

export interface Watch {
  open: Open;
  going: () => Promise<boolean>; // whether the run still works, asked when the stream just ended
  hear: (at: number, event: Event) => void;
  lost: (seconds: number | null) => void; // seconds to the next try; null: connected again
  stop: AbortSignal;
  quiet?: number; // milliseconds without a byte after which a connection counts as lost
}

export const PAUSES = [0.2, 0.5, 1, 2, 4, 8]; // seconds; the last again and again
const TRIES = 40;
const QUIET = 60_000; // the server says something every 15 s unless it is set otherwise

export class Gone extends Error {
  constructor(readonly status: number) {
    super(`the events cannot be read (${status})`);
  }
}

// EventSource can send no key and tells no end from a loss; this does both.
export async function follow(watch: Watch): Promise<void> {
  let seen = 0;
  let over = false;
  for (let tries = 0; !watch.stop.aborted; tries += 1) {
    const before = seen;
    try {
      await once(watch, seen, (at, event) => {
        seen = at;
        over ||= END.test(event.type);
        watch.hear(at, event);
      });
      // Of a run that is over, a piece that was cut off is still to be had.
      if (over || (seen === before && !(await watch.going()))) return watch.lost(null);
    } catch (error) {
      if (watch.stop.aborted) return;
      if (error instanceof Gone && !passing(error.status)) throw error;
    }
    if (seen > before) tries = 0;
    if (tries >= TRIES) throw new Gone(0);
    const pause = PAUSES[Math.min(tries, PAUSES.length - 1)] ?? 8;
    watch.lost(pause);
    await waited(pause, watch.stop);
  }
}

const passing = (status: number) => status === 429 || status >= 500;

function waited(seconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((wake) => {
    const timer = setTimeout(wake, seconds * 1000);
    stop.addEventListener("abort", () => (clearTimeout(timer), wake()), { once: true });
  });
}

async function once(watch: Watch, seen: number, hear: Watch["hear"]): Promise<void> {
  const here = new AbortController();
  const end = () => here.abort();
  watch.stop.addEventListener("abort", end, { once: true });
  let timer = setTimeout(end, watch.quiet ?? QUIET);
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(end, watch.quiet ?? QUIET);
  };
  try {
    const reply = await watch.open(seen, here.signal);
    if (!reply.ok || !reply.body) throw new Gone(reply.status);
    watch.lost(null);
    await read(reply.body, hear, alive);
  } finally {
    clearTimeout(timer);
    watch.stop.removeEventListener("abort", end);
  }
}

export async function read(
  body: ReadableStream<Uint8Array>,
  hear: Watch["hear"],
  alive: () => void = () => undefined,
): Promise<void> {
  const reader = body.getReader();
  const text = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const blocks = (rest + text.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const at = /^id: (\d+)$/m.exec(block);
      const data = /^data: (.*)$/m.exec(block);
      if (at?.[1] && data?.[1]) hear(Number(at[1]), JSON.parse(data[1]));
    }
  }
}
