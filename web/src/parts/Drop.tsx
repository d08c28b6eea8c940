import { type ChangeEvent, useEffect, useState } from "react";
import * as api from "../api";
import { why } from "../hooks";
import { plain } from "../plain";
import type { Tongue, Words } from "../words";
import { leftOut } from "./Uploads";

const ATTACHED = "osler-attached"; // an event: files were chosen beside the question
const SECONDS = 8; // that good news stays; the rest stays until it is closed

// What became of files: their names, and what was wrong with others.
const NOTHING = { reading: "", ready: [] as string[], there: [] as string[], wrong: [] as string[] };

// Files that are dragged onto any page or chosen beside the question, into the source that takes them.
export function Drop({ source, speak }: { source: string; speak: Tongue }) {
  const { words, steps } = speak;
  const [over, hover] = useState(false);
  const [told, tell] = useState(NOTHING);
  useEffect(() => {
    const drag = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      hover(event.type === "dragover");
      // Entries are gone once the event is over; a folder is one whose files are asked for.
      if (event.type === "drop") void take([...event.dataTransfer.items].map((one) => one.webkitGetAsEntry() ?? one.getAsFile()));
    };
    const attach = (event: Event) => void take((event as CustomEvent<File[]>).detail);
    const take = async (entries: Dragged[]) => {
      tell(source ? NOTHING : { ...NOTHING, wrong: [words.noUploads] });
      if (!source) return;
      const add = (kind: "ready" | "there" | "wrong", line: string) => tell((known) => ({ ...known, reading: "", [kind]: [...known[kind], line] }));
      for await (const file of filesOf(entries)) {
        const name = plain(file.name);
        tell((known) => ({ ...known, reading: name }));
        try {
          const done = await api.send(source, file, () => undefined);
          const left = leftOut(done, words);
          if (left) add("wrong", `${name}: ${left}`);
          if (done.passages || !left) add(done.passages ? "ready" : "there", name);
        } catch (error) {
          add("wrong", `${name}: ${plain(why(error))}`);
        }
      }
    };
    const kinds = ["dragover", "dragleave", "drop"] as const;
    for (const kind of kinds) window.addEventListener(kind, drag);
    window.addEventListener(ATTACHED, attach);
    return () => {
      for (const kind of kinds) window.removeEventListener(kind, drag);
      window.removeEventListener(ATTACHED, attach);
    };
  }, [source, words]);
  useEffect(() => {
    if (told === NOTHING || told.reading || told.wrong.length > 0) return;
    const timer = setTimeout(() => tell(NOTHING), 1_000 * SECONDS);
    return () => clearTimeout(timer);
  }, [told]);
  const { reading, ready, there, wrong } = told;
  const good = [ready.length > 0 && steps.ready(ready), there.length > 0 && steps.there(there), reading && `${reading}: ${words.readingFile}`];
  const lines = [...good, ...wrong].filter(Boolean);
  return (
    <div className="drop" role="status">
      {over && <p>{source ? words.dropHere : words.noUploads}</p>}
      {lines.map((line, index) => (
        <p key={index}>{line}</p>
      ))}
      {lines.length > 0 && <button onClick={() => tell(NOTHING)}>{words.close}</button>}
    </div>
  );
}

// The button beside the question, for who does not know that files can be dragged.
export function Attach({ words }: { words: Words }) {
  const attach = ({ target }: ChangeEvent<HTMLInputElement>) => {
    window.dispatchEvent(new CustomEvent(ATTACHED, { detail: [...(target.files ?? [])] }));
    target.value = "";
  };
  return (
    <>
      <label className="button file">
        {words.addFiles}
        <input type="file" className="unseen" multiple onChange={attach} />
      </label>{" "}
      {words.orDrop}
    </>
  );
}

type Dragged = FileSystemEntry | File | null;

// Files in the order of their folders; what is dragged along that is no file is left out.
async function* filesOf(entries: Dragged[]): AsyncGenerator<File> {
  for (const one of entries) {
    if (one instanceof File) yield one;
    else if (one?.isFile) yield await new Promise<File>((done, failed) => (one as FileSystemFileEntry).file(done, failed));
    if (one instanceof File || !one?.isDirectory) continue;
    const folder = (one as FileSystemDirectoryEntry).createReader();
    const read = () => new Promise<FileSystemEntry[]>((done, failed) => folder.readEntries(done, failed));
    for (let more = await read(); more.length > 0; more = await read()) yield* filesOf(more); // a hundred at a time
  }
}
