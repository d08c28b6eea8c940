import { expect, test } from "vitest";
import { WORDS } from "./words";

const FILES = import.meta.glob<string>("./**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });

// Modules of the page by what each imports of it.
function graph(): Map<string, string[]> {
  const read = Object.entries(FILES).map(([file, text]): [string, string[]] => {
    const named = [...text.matchAll(/ from "(\.[^"]+)"/g)].map(([, path]) => new URL(path ?? "", `file:///${file}`).pathname);
    return [bare(new URL(file, "file:///").pathname), named];
  });
  return new Map(read);
}

const bare = (path: string) => path.replace(/\.tsx?$/, "");

// A circle is what is left once every module that imports nothing more is taken away.
function circle(modules: Map<string, string[]>): string[] {
  const left = new Map(modules);
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const [name, needs] of left) if (!needs.some((one) => left.has(one))) left.delete(name);
  }
  return [...left.keys()];
}

test("no modules import each other in a circle", () => {
  const modules = graph();
  expect(modules.get("/log")).toContain("/events");
  expect(circle(modules)).toEqual([]);
  expect(circle(new Map([["a", ["b"]], ["b", ["a"]], ["c", []]]))).toEqual(["a", "b"]);
});

test("every word and every export is used", () => {
  const used = Object.entries(FILES).filter(([file]) => !/\.test\.ts$/.test(file));
  const texts = used.map(([, text]) => text).join("\n");
  const times = (name: string) => texts.match(new RegExp(`\\b${name}\\b`, "g"))?.length ?? 0;
  const exported = [...texts.matchAll(/^export (?:async )?(?:const|function|class|interface|type) (\w+)/gm)].map(([, name]) => name ?? "");
  expect(exported.filter((name) => times(name) < 2)).toEqual([]);
  const others = used.filter(([file]) => file !== "./words.ts").map(([, text]) => text).join("\n");
  expect(Object.keys(WORDS.en).filter((name) => !new RegExp(`(\\.${name}\\b|"${name}")`).test(others))).toEqual([]);
});
