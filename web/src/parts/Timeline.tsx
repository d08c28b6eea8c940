import { useState } from "react";
import type { Heard } from "../events";
import { said } from "../log";
import { splitNote } from "../notes";
import { plain } from "../plain";
import { Note } from "./Note";
import type { Tongue } from "../words";

const FIRST = 200;
const MORE = 500;
const LINE = 300;

export function Timeline({ events, speak }: { events: Heard[]; speak: Tongue }) {
  const { words } = speak;
  const [count, more] = useState(FIRST); // a long run has more lines than a page can bear at once
  const shown = events.slice(-count);
  const begun = events.slice(0, 2).find((one) => one.event.type === "run.started");
  const notesOf: string[] = begun?.event.notes_of ?? [];
  return (
    <section aria-label={speak.label(words.timeline)}>
      <h3>{`${words.timeline}: ${events.length}`}</h3>
      {shown.length < events.length && (
        <button type="button" onClick={() => more(count + MORE)}>
          {`${words.earlier}: ${events.length - shown.length}`}
        </button>
      )}
      <ol className="timeline" tabIndex={0} start={shown[0]?.at ?? 1}>
        {shown.map((one) => (
          <Line key={one.at} one={one} notesOf={notesOf} speak={speak} />
        ))}
      </ol>
    </section>
  );
}

function Line({ one, notesOf, speak }: { one: Heard; notesOf: string[]; speak: Tongue }) {
  const [open, show] = useState(false);
  const { bare, note } = splitNote(one.event, notesOf);
  const line = plain(said(bare)).slice(0, LINE);
  return (
    <li value={one.at}>
      <details onToggle={(event) => show(event.currentTarget.open)}>
        <summary>
          <strong>{speak.event(one.event.type)}</strong> <span>{line}</span>
        </summary>
        {open && <Note text={note} speak={speak} />}
        {open && <pre>{plain(JSON.stringify(bare, null, 2))}</pre>}
      </details>
    </li>
  );
}
