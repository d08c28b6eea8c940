import { useEffect, useRef } from "react";
import type { Evidence, Run } from "./api";
import { SOURCES, STATES, type Words } from "./words";

export function Answer(props: { run: Run; words: Words; zh: boolean; open: (n: number) => void }) {
  const { run, words, zh, open } = props;
  const grounding = run.grounding ?? "";
  const answer = run.answer;
  if (run.status === "cancelled") return <p role="alert">{words.stopped}</p>;
  if (run.error) return <p role="alert">{`${words.failed}: ${run.error.detail}`}</p>;
  if (!answer) return null;
  return (
    <section className="answer" aria-label={words.answer}>
      <h2>{words.answer}</h2>
      {run.grounding === "abstained" && <p className="abstained">{words.abstained}</p>}
      {answer.option && <p className="option">{answer.option}</p>}
      <p>
        {answer.statements.length === 0 && answer.text}
        {answer.statements.map((one, index) => (
          <span key={index} className={one.cites.length ? "" : "uncited"}>
            {one.text}{" "}
            {one.cites.map((n) => (
              <button key={n} className="cite" onClick={() => open(n)} title={quote(run, n)}>
                {`[${n}]`}
              </button>
            ))}{" "}
          </span>
        ))}
      </p>
      {answer.note && <p className="note">{answer.note}</p>}
      <p className="small">
        {`${words.grounding}: ${zh ? STATES[grounding] : grounding} · ${run.strategy} · ${run.seconds ?? "?"} ${words.seconds} · `}
        <a href={`runs/${encodeURIComponent(run.run_id)}/report.html`}>{words.report}</a>
      </p>
    </section>
  );
}

function quote(run: Run, n: number): string {
  return run.evidence.find((one) => one.number === n)?.quote ?? "";
}

export function Cards(props: { run: Run; words: Words; zh: boolean; open: (n: number) => void }) {
  const { run, words, zh, open } = props;
  const sources = [...new Set(run.evidence.map((one) => one.passage.source))];
  return (
    <section aria-label={words.evidence}>
      <h2>{words.evidence}</h2>
      {sources.length === 0 && <p>{words.nothing}</p>}
      {sources.map((source) => (
        <div key={source} className="source">
          <h3>{zh ? (SOURCES[source] ?? source) : source}</h3>
          {run.evidence
            .filter((one) => one.passage.source === source)
            .map((one) => (
              <button key={one.number} className="card" onClick={() => open(one.number)}>
                <strong>{`[${one.number}] ${one.passage.title || one.passage.id}`}</strong>
                <span className="quote">{one.quote}</span>
                <span className="small">{about(one, words)}</span>
              </button>
            ))}
        </div>
      ))}
    </section>
  );
}

function about({ passage }: Evidence, words: Words): string {
  const { section, page, year, kind } = passage.locator;
  const parts = [section, page && `p. ${page}`, year, kind, passage.licence];
  return [...parts, passage.illustrative && words.illustrative].filter(Boolean).join(" · ");
}

// The passage with its quote marked. Text is text: nothing in it is read as markup.
export function Open({ one, words, close }: { one: Evidence; words: Words; close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  const letters = [...one.passage.text]; // the spans count code points, as Python does
  const [from, to] = one.quote_span;
  return (
    <dialog ref={box} onClose={close} aria-label={words.passage}>
      <h2>{`[${one.number}] ${one.passage.title || one.passage.id}`}</h2>
      <p className="small">{`${one.passage.id} · ${about(one, words)}`}</p>
      <p className="passage">
        {letters.slice(0, from).join("")}
        <mark>{letters.slice(from, to).join("")}</mark>
        {letters.slice(to).join("")}
      </p>
      {/^https?:\/\//.test(one.passage.locator.url) && (
        <p className="small">{one.passage.locator.url}</p>
      )}
      <button onClick={() => box.current?.close()}>{words.close}</button>
    </dialog>
  );
}
