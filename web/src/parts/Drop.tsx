import { useEffect, useState } from "react";
import * as api from "../api";
import { why } from "../hooks";
import { plain } from "../plain";
import type { Tongue } from "../words";
import { outcome } from "./Uploads";

// Files that are dragged onto any page, where the server takes documents.
export function Drop({ speak }: { speak: Tongue }) {
  const { words } = speak;
  const [over, hover] = useState(false);
  const [source, learn] = useState<string | null>(null); // that takes documents; "" where none does
  const [lines, tell] = useState<string[]>([]);
  useEffect(() => {
    let asked: Promise<string> | null = null; // when it is wanted: not everybody may
    const ask = () => (asked ??= api.places().then(({ sources }) => sources[0] ?? "").catch(() => ""));
    const drag = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      void ask().then(learn);
      hover(event.type === "dragover");
      // Entries are gone once the event is over; a folder is one whose files are asked for.
      if (event.type === "drop") void take([...event.dataTransfer.items].map((one) => one.webkitGetAsEntry() ?? one.getAsFile()));
    };
    const take = async (entries: Dragged[]) => {
      const source = await ask();
      asked = null;
      if (!source) return tell([words.noUploads]);
      for await (const file of filesOf(entries)) {
        const name = plain(file.name);
        tell((known) => [...known, `${name}: ${words.readingFile}`]);
        const said = await api.send(source, file, () => undefined).then((done) => outcome(done, speak), why);
        tell((known) => [...known.slice(0, -1), `${name}: ${plain(said)}`]);
      }
    };
    const kinds = ["dragover", "dragleave", "drop"] as const;
    for (const kind of kinds) window.addEventListener(kind, drag);
    return () => {
      for (const kind of kinds) window.removeEventListener(kind, drag);
    };
  }, [speak, words]);
  return (
    <div className="drop" role="status">
      {over && source !== null && <p>{source ? words.dropHere : words.noUploads}</p>}
      {lines.map((line, index) => (
        <p key={index}>{line}</p>
      ))}
      {lines.length > 0 && <button onClick={() => tell([])}>{words.close}</button>}
    </div>
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
