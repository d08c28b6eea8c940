import { expect, test } from "vitest";
import { columns, EMPTY, told, type Event } from "./log";

const EVENTS: Event[] = [
  { type: "run.started", strategy: "tc-rag" },
  { type: "plan.proposed", queries: [{ source: "book", j: 0, query: "x" }] },
  { type: "stack.push", i: 0, kind: "User_Query", text: "q", depth: 1 },
  { type: "stack.push", i: 1, kind: "Thought", text: "<b>t</b>", depth: 2 },
  { type: "state.updated", i: 1, metric: "cppl", value: 42, sigma: 10, halted: false, note: "" },
  { type: "stack.pop", i: 2, kind: "Thought", by: "Backtrack", depth: 1, restored: null, reason: "no" },
  { type: "stack.pop", i: 3, kind: "", by: "Backtrack", depth: 1, restored: null, reason: "bottom" },
  { type: "lf.parsed", nodes: [{ n: 1, fn: "Retrieval", step: "a", action: "", needs: [] }, { n: 2, fn: "Output", step: "b", action: "", needs: [1] }] },
  { type: "lf.node", n: 1, status: "done", answer: "A", own_knowledge: true },
  { type: "something.new" },
  { type: "run.finished" },
];

const fold = (events: Event[]) =>
  events.reduce((before, event, index) => told(before, index + 1, event), EMPTY);

test("every beginning of a log can be shown, and the stack is what was pushed and not popped", () => {
  for (let n = 0; n <= EVENTS.length; n += 1) expect(fold(EVENTS.slice(0, n)).seen).toBe(n);
  const end = fold(EVENTS);
  expect(end.frames.map((one) => one.kind)).toEqual(["User_Query"]);
  expect(end.film.map((one) => one.frames.length)).toEqual([1, 2, 2, 1, 1]);
  expect(end.status).toBe("finished");
  expect(end.nodes[0]).toMatchObject({ status: "done", own: true, answer: "A" });
});

test("an event that comes twice counts once", () => {
  const once = fold(EVENTS);
  const again = EVENTS.reduce((before, event, index) => told(before, index + 1, event), once);
  expect(again).toEqual(once);
});

test("a step stands right of what it waits for, and a circle ends", () => {
  const node = (n: number, needs: number[]) => ({ n, fn: "", step: "", needs, status: "waiting" as const, answer: "", own: false });
  const found = columns([node(1, []), node(2, [1]), node(3, [1, 2]), node(9, [77])]);
  expect([...found]).toEqual([[1, 0], [2, 1], [3, 2], [9, 0]]);
  expect(columns([node(1, [2]), node(2, [1])]).size).toBe(2);
});
