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
  const [lines, tell] = useState<string[]>([]);
  useEffect(() => {
    const drag = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      hover(event.type === "dragover");
      if (event.type === "drop") void take([...event.dataTransfer.files]);
    };
    const take = async (files: File[]) => {
      const places = await api.places().catch(() => null); // asked when it is wanted: not everybody may
      const source = places?.sources[0];
      if (!source) return tell([words.noUploads]);
      for (const file of files) {
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
      {over && <p>{words.dropHere}</p>}
      {lines.map((line, index) => (
        <p key={index}>{line}</p>
      ))}
      {lines.length > 0 && <button onClick={() => tell([])}>{words.close}</button>}
    </div>
  );
}
