import { useState } from "react";
import { exported, type About, type Bytes } from "../api";
import { why } from "../hooks";
import type { Tongue, Words } from "../words";

const USUAL = "html"; // every installation writes it, and every machine opens it
export const READABLE: [string, string][] = [
  ["docx", "Word"],
  ["pdf", "PDF"],
  ["html", "HTML"],
  ["markdown", "Markdown"],
];
const FORMATS: [string, string][] = [
  ...READABLE,
  ["ris", "RIS"],
  ["bibtex", "BibTeX"],
  ["csv", "CSV"],
  ["studies", "CSV"],
  ["fhir", "FHIR"],
];

// An answer or a conversation as a file, in one of the formats that the server can write.
export function Share({ path, about, speak }: { path: string; about: About; speak: Tongue }) {
  const { words } = speak;
  const [to, choose] = useState(USUAL);
  const [told, doing] = useDoing();
  return (
    <div className="share row">
      <select aria-label={words.format} value={to} onChange={(event) => choose(event.target.value)}>
        {FORMATS.filter(([name]) => about.exports.includes(name)).map(([name, label]) => (
          <option key={name} value={name}>
            {name === "studies" ? `${label} (${words.studies})` : label}
          </option>
        ))}
      </select>
      <button type="button" onClick={() => doing(() => saved(exported(path, to)))}>
        {words.save}
      </button>
      <span role="status" className="small">
        {told}
      </span>
    </div>
  );
}

// What a click came to, in a line beside it.
export function useDoing(): [string, (work: () => Promise<string>) => void] {
  const [told, tell] = useState("");
  return [told, (work) => void work().then(tell, (error) => tell(why(error)))];
}

export async function copied(path: string, words: Words): Promise<string> {
  copyText(await (await exported(path, "markdown")).blob.text());
  return words.copied;
}

export async function saved(file: Promise<Bytes>): Promise<string> {
  const { blob, name } = await file;
  const made = document.createElement("a");
  made.href = URL.createObjectURL(blob);
  made.download = name;
  made.click();
  setTimeout(() => URL.revokeObjectURL(made.href), 10_000);
  return name;
}

// The clipboard's own way works over HTTPS and on this machine alone; a selection works everywhere.
function copyText(text: string): void {
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
