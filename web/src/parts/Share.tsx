import { useState } from "react";
import { exported } from "../api";
import { why } from "../hooks";
import type { Tongue } from "../words";

const FORMATS: [string, string][] = [
  ["markdown", "Markdown"],
  ["html", "HTML"],
  ["pdf", "PDF"],
  ["docx", "Word"],
  ["ris", "RIS"],
  ["bibtex", "BibTeX"],
  ["csv", "CSV"],
  ["studies", "CSV (studies)"],
  ["fhir", "FHIR"],
];

// An answer or a conversation in other programs: copied with its citations, or as a file.
export function Share({ path, speak }: { path: string; speak: Tongue }) {
  const { words } = speak;
  const [to, choose] = useState("pdf");
  const [told, tell] = useState("");
  const doing = (work: () => Promise<string>) => void work().then(tell, (error) => tell(why(error)));
  const copy = async () => {
    copyText(await (await exported(path, "markdown")).blob.text());
    return words.copied;
  };
  const save = async () => {
    const { blob, name } = await exported(path, to);
    const made = document.createElement("a");
    made.href = URL.createObjectURL(blob);
    made.download = name;
    made.click();
    setTimeout(() => URL.revokeObjectURL(made.href), 10_000);
    return name;
  };
  return (
    <div className="share row">
      <button type="button" onClick={() => doing(copy)}>
        {words.copy}
      </button>
      <select aria-label={words.format} value={to} onChange={(event) => choose(event.target.value)}>
        {FORMATS.map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
      <button type="button" onClick={() => doing(save)}>
        {words.save}
      </button>
      <span role="status" className="small">
        {told}
      </span>
    </div>
  );
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
