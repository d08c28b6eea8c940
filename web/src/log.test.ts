import { expect, test } from "vitest";
import type { Event, Heard } from "./events";
import { columns, heard, round, told } from "./log";

const EVENTS: Event[] = [
  { type: "run.started", strategy: "tc-rag" },
  { type: "plan.proposed", queries: [{ source: "book", j: 0, query: "x" }], origin: "planner", dropped: ["no"] },
  { type: "stack.push", i: 0, kind: "User_Query", text: "q", depth: 1 },
  { type: "stack.push", i: 1, kind: "Thought", text: "<b>t</b>", depth: 2 },
  { type: "state.updated", i: 1, metric: "cppl", value: 42, sigma: 10, halted: false, note: "" },
  { type: "state.updated", i: 1, metric: "cppl", value: null, sigma: 10, halted: false, note: "" },
  { type: "stack.pop", i: 2, kind: "Thought", by: "Backtrack", depth: 1, restored: null, reason: "no" },
  { type: "stack.pop", i: 3, kind: "", by: "Backtrack", depth: 1, restored: null, reason: "bottom" },
  { type: "retrieval.started", query: "x", k: 2, sources: ["book"] },
  { type: "retrieval.done", query: "x", hits: [{ passage: "a", score: 1, rank: 1 }], failed: ["wiki: away"] },
  { type: "retrieval.done", query: "x", hits: [{ passage: "a", score: 1, rank: 1 }, { passage: "b" }], failed: ["wiki: away"] },
  { type: "lf.parsed", nodes: [{ n: 1, fn: "Retrieval", step: "a", action: "", needs: [] }, { n: 2, fn: "Output", step: "b", action: "", needs: [1] }], warnings: ["odd"] },
  { type: "lf.boundary", n: 1, question: "a", answer: "A", known: true, self_check: null, probability: 0.9, tau: 0.5 },
  { type: "lf.node", n: 1, status: "done", answer: "A", own_knowledge: true, confidence: 0.9, passages: ["a"] },
  { type: "something.new" },
  { type: "run.finished" },
];

const numbered = (events: Event[]): Heard[] => events.map((event, index) => ({ at: index + 1, event }));

test("emergency contacts are known from the first event, before the run has begun", () => {
  const danger = { kinds: ["emergency"], text: "Call 112.", rules: ["r"], language: "en" };
  const first = { type: "run.danger", notice: danger };
  expect(told(numbered([first])).danger).toEqual(danger);
  expect(told(numbered([first, ...EVENTS])).danger).toEqual(danger);
  expect(told(numbered(EVENTS)).danger).toBeNull();
});

test("what a model wrote that may not word medicine stands nowhere but in a note", () => {
  const begun = { type: "run.started", strategy: "tc-rag", notes_of: ["planner", "reader"] };
  const babble = "BACKCRK take arsenic";
  const events = [
    begun,
    { type: "stack.push", i: 1, kind: "Thought", text: babble, depth: 2, writer: "planner" },
    { type: "stack.push", i: 2, kind: "Tool_Observation", text: "a passage", depth: 3, writer: "" },
    { type: "lf.parsed", nodes: [{ n: 1, fn: "Retrieval", step: "a", action: "", needs: [] }] },
    { type: "lf.node", n: 1, status: "done", answer: babble, own_knowledge: true, passages: [] },
    { type: "stack.pop", i: 3, kind: "Tool_Observation", by: "Backtrack", depth: 1, restored: null, reason: babble },
  ];
  const known = told(numbered(events));
  expect(known.frames.map((one) => [one.kind, one.text, one.note])).toEqual([["Thought", "", babble]]);
  expect([known.nodes[0]?.answer, known.nodes[0]?.note]).toEqual(["", babble]);
  expect(known.film.at(-1)?.label).toBe("Backtrack");
  expect(JSON.stringify(known.now)).not.toContain("arsenic");
  const free = told(numbered([{ ...begun, notes_of: [] }, ...events.slice(1)]));
  expect(free.frames[0]?.text).toBe(babble);
});

test("every beginning of a log can be shown, and the stack is what was pushed and not popped", () => {
  for (let n = 0; n <= EVENTS.length; n += 1) expect(told(numbered(EVENTS.slice(0, n))).seen).toBe(n);
  const end = told(numbered(EVENTS));
  expect(end.frames.map((one) => one.kind)).toEqual(["User_Query"]);
  expect(end.film.map((one) => one.frames.length)).toEqual([1, 2, 2, 2, 1, 1]);
  expect(end.film[4]?.gone.map((one) => one.kind)).toEqual(["Thought"]);
  expect(end.film[5]?.gone).toEqual([]);
  expect(end.status).toBe("finished");
  expect(end.nodes[0]).toMatchObject({ status: "done", own: true, answer: "A", passages: ["a"] });
  expect(end.nodes[0]?.notes.map((one) => one.event.type)).toEqual(["lf.boundary"]);
});

test("a step that is solved by a machine of its own has a stack of its own", () => {
  const push = (kind: string): Event => ({ type: "stack.push", i: 0, kind, text: kind, depth: 1 });
  const begun = (n: number): Event => ({ type: "lf.begun", n, question: `q${n}` });
  const end = told(numbered([begun(1), push("User_Query"), push("Thought"), begun(2), push("User_Query")]));
  expect(end.film.map((one) => [one.of, one.frames.length])).toEqual([[1, 1], [1, 2], [2, 1]]);
});

test("what a reader must not miss is kept once: sources that were down, notes, what was found", () => {
  const end = told(numbered(EVENTS));
  expect(end.down).toEqual(["wiki: away"]);
  expect(end.found).toEqual(["a", "b"]);
  expect(end.notes).toEqual(["odd"]);
  expect(end.dropped).toEqual(["no"]);
});

test("a value without bound is no point of the plot, and is written as such", () => {
  expect(told(numbered(EVENTS)).film[3]?.value).toBeUndefined();
  expect([round(null), round(Infinity), round(0.123456)]).toEqual(["∞", "∞", "0.123"]);
});

test("an event that comes twice counts once, whatever pieces it comes in", () => {
  const all = numbered(EVENTS);
  for (let cut = 0; cut < all.length; cut += 1) {
    const first = heard([], all.slice(0, cut + 1));
    expect(heard(first, all.slice(Math.max(0, cut - 2)))).toEqual(all);
    expect(heard(first, all.slice(0, cut))).toBe(first);
  }
});

test("a step stands right of what it waits for, and a circle ends", () => {
  const node = (n: number, needs: number[]) => ({ n, needs });
  const found = columns([node(1, []), node(2, [1]), node(3, [1, 2]), node(9, [77])]);
  expect([...found]).toEqual([[1, 0], [2, 1], [3, 2], [9, 0]]);
  expect(columns([node(1, [2]), node(2, [1])]).size).toBe(2);
});
