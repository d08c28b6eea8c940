import { useState } from "react";
import { exported, hasKey, report, start, type About, type Run } from "../api";
import { draft } from "../hooks";
import { link } from "../place";
import type { Tongue } from "../words";
import { Feedback } from "./Feedback";
import { Menu } from "./Menu";
import { copied, READABLE, saved, Share, useDoing } from "./Share";

// The question again in the box where it is asked, to be changed.
export function edit(run: Run): void {
  draft(run.question);
  window.location.hash = "#/";
}

type Given = { run: Run; about: About; again?: () => void; speak: Tongue };

// What can be done with an answer: one row, and the rest in a menu.
export function Actions({ run, about, again, speak }: Given) {
  const { words } = speak;
  const path = `runs/${encodeURIComponent(run.run_id)}`;
  const address = `${path}/report.html`;
  const [told, doing] = useDoing();
  const [judging, judge] = useState(false);
  const beside = async (strategy: string) => {
    const { run_id } = await start({ question: run.question, options: run.options, strategy });
    window.location.hash = link("compare", run.run_id, run_id);
    return "";
  };
  return (
    <>
      <div className="actions row" role="group" aria-label={speak.label(words.actions)}>
        <button onClick={() => doing(() => copied(path, words))}>{words.copy}</button>
        <Menu summary={words.store} look="button">
          {READABLE.filter(([name]) => about.exports.includes(name)).map(([name, label]) => (
            <button key={name} onClick={() => doing(() => saved(exported(path, name)))}>
              {label}
            </button>
          ))}
        </Menu>
        <button onClick={() => window.print()}>{words.print}</button>
        <button aria-expanded={judging} onClick={() => judge(!judging)}>
          {words.feedback}
        </button>
        <button onClick={() => edit(run)}>{words.edit}</button>
        <Menu summary={words.others} look="button">
          <Share path={path} about={about} speak={speak} />
          {again && <button onClick={again}>{words.askAgain}</button>}
          <select aria-label={words.beside} value="" onChange={(event) => doing(() => beside(event.target.value))}>
            <option value="">{words.beside}</option>
            {about.strategies.filter((name) => name !== run.strategy).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          {hasKey() ? (
            <button onClick={() => doing(() => saved(report(address)))}>{words.report}</button>
          ) : (
            <a className="button" href={address}>
              {words.report}
            </a>
          )}
        </Menu>
        <span role="status" className="small">
          {told}
        </span>
      </div>
      {judging && <Feedback key={run.run_id} run={run} speak={speak} />}
    </>
  );
}
