import { type FormEvent, useCallback, useState } from "react";
import * as api from "../api";
import { useLoaded } from "../hooks";
import { Outside } from "../parts/Cards";
import { Wrong } from "../parts/Wrong";
import { asking, link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

// Two drugs' labels side by side, word for word and without a verdict.
export function Labels({ drugs, speak }: { drugs: [string, string]; speak: Tongue }) {
  const { words } = speak;
  return (
    <section aria-label={words.labels}>
      <h1>{words.labels}</h1>
      <LabelForm drugs={drugs} speak={speak} />
      {drugs[0] && drugs[1] && <Pair drugs={drugs} speak={speak} />}
    </section>
  );
}

export function LabelForm({ drugs, speak }: { drugs: [string, string]; speak: Tongue }) {
  const { words } = speak;
  const [given, put] = useState(drugs);
  const send = (event: FormEvent) => {
    event.preventDefault();
    window.location.hash = asking("labels", { a: given[0].trim(), b: given[1].trim() });
  };
  return (
    <form className="row tools sheet" onSubmit={send}>
      {([0, 1] as const).map((at) => (
        <label key={at}>
          {`${words.drug} ${at + 1}`}
          <input
            required
            maxLength={200}
            value={given[at]}
            onChange={({ target }) => put(at ? [given[0], target.value] : [target.value, given[1]])}
          />
        </label>
      ))}
      <button className="main">{words.sideBySide}</button>
    </form>
  );
}

function Pair({ drugs: [a, b], speak }: { drugs: [string, string]; speak: Tongue }) {
  const look = useCallback(() => api.labels([a, b]), [a, b]);
  const { found, wrong } = useLoaded(look);
  const { words } = speak;
  // 404 is told of no one drug: both are named.
  if (wrong) return <Wrong text={wrong === words.notThere ? `${words.noLabel}${a}, ${b}` : wrong} />;
  if (!found) return null;
  return (
    <>
      <div className="pair">
        {found.labels.map((label) => (
          <p key={label.document} className="small">
            <strong>{plain(label.title)}</strong>
            {` · ${plain(label.code)}${label.effective && ` · ${label.effective}`} `}
            <Outside url={label.url} />
          </p>
        ))}
      </div>
      {found.headings.map((heading) => (
        <section key={heading} aria-label={heading}>
          <h2>{heading}</h2>
          <div className="pair around">
            {found.labels.map((label) => (
              <Side key={label.document} passages={label.sections[heading] ?? []} speak={speak} />
            ))}
          </div>
        </section>
      ))}
    </>
  );
}

function Side({ passages, speak }: { passages: api.Passage[]; speak: Tongue }) {
  if (passages.length === 0) return <p className="small">{speak.words.noSection}</p>;
  return (
    <div>
      {passages.map((one) => (
        <p key={one.id} className="text" dir="auto" lang={one.language}>
          {plain(one.text)} <a href={link("passages", one.id)}>{speak.words.passage}</a>
        </p>
      ))}
    </div>
  );
}
