import { useState } from "react";
import type { About, Run } from "../api";
import { draft } from "../hooks";
import type { Tongue } from "../words";
import { Feedback } from "./Feedback";
import { copied, saved, Share, USUAL } from "./Share";
import { useDoing } from "./Share";

type Given = { run: Run; about: About; again?: () => void; speak: Tongue };

// What can be done with an answer: one row, and the rest in a menu.
export function Actions({ run, about, again, speak }: Given) {
  const { words } = speak;
  const path = `runs/${encodeURIComponent(run.run_id)}`;
  const [told, doing] = useDoing();
  const [judging, judge] = useState(false);
  const edit = () => {
    draft(run.question);
    window.location.hash = "#/";
  };
  return (
    <>
      <div className="actions row" role="group" aria-label={speak.label(words.actions)}>
        <button onClick={() => doing(() => copied(path, words))}>{words.copy}</button>
        <button onClick={() => doing(() => saved(path, USUAL))}>{words.store}</button>
        <button onClick={() => window.print()}>{words.print}</button>
        <button aria-expanded={judging} onClick={() => judge(!judging)}>
          {words.feedback}
        </button>
        <details className="menu">
          <summary className="button">{words.others}</summary>
          <div>
            <Share path={path} about={about} speak={speak} />
            {again && <button onClick={again}>{words.askAgain}</button>}
            <button onClick={edit}>{words.edit}</button>
            <a className="button" href={`${path}/report.html`}>
              {words.report}
            </a>
          </div>
        </details>
        <span role="status" className="small">
          {told}
        </span>
      </div>
      {judging && <Feedback key={run.run_id} run={run} speak={speak} />}
    </>
  );
}
