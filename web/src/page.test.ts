import { expect, test } from "vitest";
import { asking, link, parsed } from "./place";
import type { Event } from "./events";
import { sorted } from "./parts/SortedTable";
import { Away, Refusal } from "./api";
import { explained } from "./errors";
import { outcome } from "./parts/Uploads";
import { stages, stepName } from "./parts/Waiting";
import { costParts, shownMoney } from "./cost";
import { highlighted, marked, plain, shortSeconds } from "./plain";
import { tongue, WORDS } from "./words";

test("what would hide or reorder letters is named, and nothing else changes", () => {
  expect(plain("a\u202eb\u200bc\u{e0041}d")).toBe("a⟨U+202E⟩b⟨U+200B⟩c⟨U+E0041⟩d");
  for (const honest of ["<b>x</b> & 糖尿病？", "e\u0301 👩\u200d⚕️", "عربي\u200f", "hyper\u00adtension", "1 < 2\n\t3"]) expect(plain(honest)).toBe(honest);
});

test("a quote is marked by code points, as the server counts them", () => {
  expect(marked("😀😀quote end", 2, 7)).toEqual(["😀😀", "quote", " end"]);
  expect(marked("a\u202ebc", 1, 2)).toEqual(["a", "⟨U+202E⟩", "bc"]);
});

test("seconds are shown with the digits that matter", () => {
  const shown = [110.453, 10.04, 9.96, 3.249, 0.0531, 0].map((seconds) => shortSeconds(seconds, "?"));
  expect(shown).toEqual(["110", "10", "10", "3.2", "0.053", "0"]);
  expect([shortSeconds(null, "?"), shortSeconds(undefined, "–")]).toEqual(["?", "–"]);
});

test("the cost names calls, tokens and money, each only where it is known", () => {
  const usage = { calls: 2, prompt_tokens: 1200, cached_tokens: 800, completion_tokens: 90, scored_tokens: 10, searches: 1, money: null };
  expect(costParts(usage, WORDS.en)).toEqual(["2 model calls", "1,210 tokens read (800 cached), 90 written"]);
  expect(costParts({ ...usage, cached_tokens: 0, money: { amount: 0.0123, currency: "EUR" } }, WORDS.zh)).toEqual([
    "2 次模型调用",
    "1,210 个词元读入, 90 写出",
    "0.0123 EUR",
  ]);
  expect([costParts({ ...usage, calls: 0 }, WORDS.en), costParts(null, WORDS.en)]).toEqual([[], []]);
  expect([0, 0.00001, 1234.5].map((amount) => shownMoney({ amount, currency: "EUR" }))).toEqual(["0.0000 EUR", "< 0.0001 EUR", "1,234.50 EUR"]);
});

test("an address is read as it was written, whatever is in it", () => {
  for (const id of ["guideline:asthma#2", "a/b c", "糖尿病", "100%", "?q=1"]) {
    expect(parsed(link("passages", id)).parts).toEqual(["passages", id]);
  }
  expect(parsed("#/runs/%E0%A4%A")).toMatchObject({ parts: ["runs", "%E0%A4%A"] });
  const place = parsed(asking("knowledge", { q: "a & b#?", source: "" }));
  expect([...place.asked]).toEqual([["q", "a & b#?"]]);
});

test("both languages have all words, and Chinese is Chinese", () => {
  expect(Object.keys(WORDS.zh)).toEqual(Object.keys(WORDS.en));
  const latin = Object.entries(WORDS.zh).filter(([, text]) => !/[\u4e00-\u9fff]/.test(text));
  expect(latin.map(([name]) => name)).toEqual(["language"]);
  const speak = tongue(true);
  expect([speak.state("grounded"), speak.source("book"), speak.event("stack.pop")]).toEqual(["每句均有引用", "教科书", "放到一边"]);
  expect([speak.source("own"), tongue(false).source("own")]).toEqual(["您的文件", "Your files"]);
  expect([speak.state("unheard_of"), speak.source("mine"), speak.event("x.y")]).toEqual(["unheard of", "mine", "x.y"]);
});

test("words of a query are marked in a passage, Chinese ones by pairs of signs", () => {
  const marks = (text: string, query: string) => highlighted(text, query).filter(([, hit]) => hit).map(([piece]) => piece);
  expect(marks("Warfarin and INR: warfarin (a.b)", "warfarin a.b?")).toEqual(["Warfarin", "warfarin"]);
  expect(marks("华法林与胺碘酮合用", "胺碘酮")).toEqual(["胺碘酮"]);
  expect(highlighted("a\u202eb", "")).toEqual([["a⟨U+202E⟩b", false]]);
});

test("a table is sorted by size or alphabet, and what is not stated stands last", () => {
  const order = (texts: string[], down = false) =>
    sorted(texts.map((text) => ({ cells: [{ text }] })), 0, down).map((row) => row.cells[0]?.text);
  expect(order(["1,200", "", "90", "300"])).toEqual(["90", "300", "1,200", ""]);
  expect(order(["1,200", "", "90", "300"], true)).toEqual(["1,200", "300", "90", ""]);
  expect(order(["77.5 [62.5, 87.7]", "−9 %", "9.1 (n = 3)"])).toEqual(["−9 %", "9.1 (n = 3)", "77.5 [62.5, 87.7]"]);
  expect(order(["rag", "auto", "2Wiki"])).toEqual(["2Wiki", "auto", "rag"]);
  const valued = ["9", "10"].map((value, n) => ({ cells: [{ text: `row ${n}`, value }] }));
  expect(sorted(valued, 0, true)[0]?.cells[0]?.text).toBe("row 1");
});

test("a limit that was reached is said in plain words of either language", () => {
  const note = "a model call was stopped: seconds 90 of 90";
  expect(tongue(false).note(note)).toBe("The limit was reached (seconds: 90); not every step was done.");
  expect(tongue(true).note(note)).toBe("已达到上限（秒数：90），未能完成全部步骤。");
  expect(tongue(true).note("wiki is away")).toBe("wiki is away");
});

test("what goes on is said in plain words", () => {
  const said = (event: Event) => [stepName(event, tongue(false)), stepName(event, tongue(true))];
  expect(said({ type: "retrieval.started", sources: ["book"], query: "x" })).toEqual(["searching book", "正在检索教科书"]);
  expect(said({ type: "retrieval.done", hits: [{}] })[0]).toBe("reading 1 passage");
  expect(said({ type: "lf.begun", n: 2, question: "Its dose?" })[0]).toBe("step 2: Its dose?");
  expect(said({ type: "run.note", text: "x" })).toEqual(["Note", "说明"]);
  expect([0.95, 0.5, 0.48, 0.01].map((p) => tongue(false).sure(p))).toEqual(["very likely", "likely", "uncertain", "probably not"]);
});

test("while an answer is made its stages are told, each once and none of the machine's", () => {
  const events = ["run.started", "retrieval.started", "retrieval.started", "math.run", "run.note", "math.run"].map((type, at) => ({ at, event: { type, sources: ["book"] } }));
  expect(stages(events, tongue(false))).toEqual(["searching book", "calculating"]);
  const found = [[], [{}]].map((hits, at) => ({ at, event: { type: "retrieval.done", hits } }));
  expect(stages(found, tongue(false))).toEqual(["reading 1 passage"]);
});

test("what went wrong is said in a reader's words, and the server's own where it has better ones", () => {
  const said = (error: unknown) => [explained(error, WORDS.en), explained(error, WORDS.zh)];
  expect(said(new Away())).toEqual([WORDS.en.away, WORDS.zh.away]);
  expect(said(new TypeError("Failed to fetch"))[0]).toBe(WORDS.en.pageFailed);
  expect(said(new Refusal("question: Value should have at most 8000 items", 422, "too_long"))[0]).toBe(WORDS.en.tooLong);
  expect(said(new Refusal("", 401, "wrong_key"))[0]).toBe(WORDS.en.keyEnded);
  expect(said(new Refusal("a file of .exe is not accepted", 422, "bad_upload"))[0]).toBe("a file of .exe is not accepted");
  expect(said(new Refusal("", 502, ""))[0]).toBe(WORDS.en.serverFailed);
});

test("a file of which nothing could be read is not called already there", () => {
  const upload = { source: "own", name: "a.csv", bytes: 1, sent: "" };
  const sent = (passages: number, drops: Record<string, number>) => outcome({ upload, documents: passages, passages, drops, replaced: false }, WORDS.en);
  expect(sent(0, {})).toBe("already there");
  expect(sent(0, { "no text": 3 })).toContain("no text");
  expect(sent(0, { "no text": 3 })).not.toContain("there");
  expect(sent(2, { "no text": 1 })).toMatch(/2.*no text/);
  expect(sent(2, {})).not.toContain("replaced");
  expect(outcome({ upload, documents: 1, passages: 1, drops: {}, replaced: true }, WORDS.en)).toContain("earlier file of this name was replaced");
});
