import * as api from "../api";
import { plain } from "../plain";
import type { Tongue } from "../words";

// The patient that a record system opened; closed, nothing of the record stays.
export function OpenRecord({ patient, speak }: { patient: api.OpenPatient | null; speak: Tongue }) {
  const { words, zh } = speak;
  if (!patient) return null;
  const ends = new Date(patient.ends).toLocaleTimeString(zh ? "zh" : "en", { hour: "2-digit", minute: "2-digit" });
  const close = async () => {
    await api.closeRecord();
    window.location.reload();
  };
  return (
    <aside className="notice small" aria-label={words.record}>
      <details className="choices">
        <summary>{`${words.record}: ${plain(patient.title)} (${words.openUntil} ${ends})`}</summary>
        <p>{words.recordSearched}</p>
        {patient.parts.map((part) => (
          <section key={part.text}>
            <p>
              <strong>{plain(part.heading)}</strong>
            </p>
            <ul>
              {part.text.split("\n").map((line) => (
                <li key={line}>{plain(line.replace(/^- /, ""))}</li>
              ))}
            </ul>
          </section>
        ))}
        {patient.unread.length > 0 && <p>{`${words.notReleased}: ${patient.unread.join(", ")}`}</p>}
        <button onClick={() => void close()}>{words.closeRecord}</button>
      </details>
    </aside>
  );
}
