import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { follow, Gone, read, type Watch } from "./stream";

const line = (at: number, type: string) => `id: ${at}\nevent: ${type}\ndata: ${JSON.stringify({ type, t: "甲" })}\n\n`;

function body(...texts: (string | Error)[]): ReadableStream<Uint8Array> {
  const left = [...texts];
  return new ReadableStream({
    pull(to) {
      const next = left.shift();
      if (next === undefined) to.close();
      else if (next instanceof Error) to.error(next);
      else to.enqueue(new TextEncoder().encode(next));
    },
  });
}

const reply = (...texts: (string | Error)[]) => async () => new Response(body(...texts));

function watching(replies: (() => Promise<Response>)[], going: () => boolean = () => true) {
  const seen = { asked: [] as number[], at: [] as number[], lost: [] as (number | null)[] };
  const stop = new AbortController();
  const watch: Watch = {
    open: async (after) => {
      seen.asked.push(after);
      const next = replies.shift();
      if (!next) throw new TypeError("refused");
      return next();
    },
    going: async () => going(),
    hear: (at) => seen.at.push(at),
    lost: (seconds) => seen.lost.push(seconds),
    stop: stop.signal,
  };
  return { seen, stop, watch };
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

async function through<T>(work: Promise<T>): Promise<T> {
  const done = work.then(
    (value) => ({ value }),
    (error) => ({ error }),
  );
  await vi.runAllTimersAsync();
  const told = await done;
  if ("error" in told) throw told.error;
  return told.value;
}

test("a stream that ends with the run's end is read once", async () => {
  const { seen, watch } = watching([reply(line(1, "run.started"), line(2, "run.finished"))]);
  await through(follow(watch));
  expect(seen).toEqual({ asked: [0], at: [1, 2], lost: [null, null] });
});

test("a clean close in mid-run is a loss: it is said, and read on from the last event", async () => {
  const { seen, watch } = watching([
    reply(line(1, "run.started"), line(2, "model.asked")),
    reply(line(3, "run.finished")),
  ]);
  await through(follow(watch));
  expect(seen.asked).toEqual([0, 2]);
  expect(seen.at).toEqual([1, 2, 3]);
  expect(seen.lost).toEqual([null, 0.2, null, null]);
});

test("a run that is over and has no last event is asked for once more, and no further", async () => {
  const { seen, watch } = watching([reply(line(1, "run.started")), reply()], () => false);
  await through(follow(watch));
  expect(seen.asked).toEqual([0, 1]);
  expect(seen.lost.at(-1)).toBeNull();
});

test("a connection that breaks, a busy server and none at all are tried again, each time later", async () => {
  const busy = async () => new Response("", { status: 503 });
  const away = async () => Promise.reject(new TypeError("failed to fetch"));
  const { seen, watch } = watching([
    reply(line(1, "run.started"), new Error("reset")),
    busy,
    away,
    away,
    reply(line(2, "run.finished")),
  ]);
  await through(follow(watch));
  expect(seen.asked).toEqual([0, 1, 1, 1, 1]);
  expect(seen.lost.filter((one) => one !== null)).toEqual([0.2, 0.5, 1, 2]);
  expect(seen.at).toEqual([1, 2]);
});

test("a run that is not there, or not this caller's, is not asked for again", async () => {
  for (const status of [401, 404]) {
    const { seen, watch } = watching([async () => new Response("", { status })]);
    await expect(through(follow(watch))).rejects.toThrow(Gone);
    expect(seen.asked).toEqual([0]);
  }
});

test("a connection that is silent for too long counts as lost", async () => {
  const silent = async () => new Response(new ReadableStream({ start: () => undefined }));
  const { seen, watch } = watching([reply(line(1, "run.finished"))]);
  const calls: AbortSignal[] = [];
  const open = watch.open;
  const hung = { ...watch, quiet: 1000, open: async (after: number, stop: AbortSignal) => {
    calls.push(stop);
    if (calls.length > 1) return open(after, stop);
    const made = await silent();
    const cut = new Promise<never>((_, fail) => stop.addEventListener("abort", () => fail(new Error("aborted"))));
    return { ok: true, body: { getReader: () => ({ read: () => cut }) } } as unknown as Response & typeof made;
  } };
  await through(follow(hung));
  expect(calls[0]?.aborted).toBe(true);
  expect(seen.at).toEqual([1]);
});

test("whoever leaves the page is not followed", async () => {
  const { seen, stop, watch } = watching([]);
  stop.abort();
  await through(follow(watch));
  expect(seen.asked).toEqual([]);
});

test("events are the same however the bytes are cut", async () => {
  const bytes = new TextEncoder().encode(`: ping\n\n${line(1, "a")}${line(2, "b")}`);
  for (let cut = 1; cut < bytes.length; cut += 7) {
    const found: [number, string][] = [];
    const pieces = [bytes.slice(0, cut), bytes.slice(cut)];
    const stream = new ReadableStream<Uint8Array>({
      start(to) {
        for (const piece of pieces) to.enqueue(piece);
        to.close();
      },
    });
    await read(stream, (at, event) => found.push([at, `${event.type} ${event.t}`]));
    expect(found).toEqual([[1, "a 甲"], [2, "b 甲"]]);
  }
});
