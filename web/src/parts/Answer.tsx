import type { Evidence, Run } from "../api";
import { costParts } from "../cost";
import type { Told } from "../log";
import { link } from "../place";
import { plain, shortSeconds } from "../plain";
import type { Tongue } from "../words";
import { Cautions } from "./Cautions";
import { Feedback } from "./Feedback";
import { Share } from "./Share";

export interface Lit {
  lit: number | null; // the evidence that a pointer or the focus is on
  light: (n: number | null) => void;
  open: (n: number) => void;
}

export function Answer({ run, speak, lit }: { run: Run; speak: Tongue; lit: Lit }) {
  const { words } = speak;
  if (run.status === "cancelled") return <p role="alert">{words.stopped}</p>;
  if (run.status === "interrupted") return <p role="alert">{words.interrupted}</p>;
  if (run.error) return <p role="alert">{plain(`${words.failed}: ${run.error.detail}`)}</p>;
  const answer = run.answer;
  if (!answer) return null;
  return (
    <section className="answer sheet" aria-label={speak.label(words.answer)}>
      <h2>{words.answer}</h2>
      {run.grounding === "abstained" && <p className="abstained">{words.abstained}</p>}
      {answer.option && <Option run={run} letter={answer.option} />}
      <p className={answer.authorship === "extractive" ? "said quotes" : "said"}>
        {answer.statements.length === 0 && plain(answer.text)}
        {answer.statements.map((one, index) => (
          <Statement key={index} {...one} run={run} speak={speak} lit={lit} />
        ))}
      </p>
      <Steps run={run} speak={speak} />
      <Cautions found={run.cautions} speak={speak} />
      <Aside run={run} speak={speak} />
      <Facts run={run} speak={speak} />
      <Share path={`runs/${encodeURIComponent(run.run_id)}`} speak={speak} />
      <Feedback key={run.run_id} run={run} speak={speak} />
    </section>
  );
}

// The proof: what each step came to, and the passages under it. One search alone is none.
function Steps({ run, speak }: { run: Run; speak: Tongue }) {
  const steps = (run.steps ?? []).filter((one) => one.function !== "Output");
  if (!steps.some((one) => one.answer) || (steps.length === 1 && !steps[0]?.computed)) return null;
  return (
    <details className="small steps">
      <summary>{speak.words.bySteps}</summary>
      <ol>
        {steps.map((one) => (
          <li key={one.n} value={one.n}>
            {`${plain(one.step)} → ${plain(one.answer) || "?"} `}
            {one.computed && <code>{plain(one.computed)} </code>}
            {one.passages.map((id) => (
              <a key={id} href={link("passages", id)}>
                {plain(id)}{" "}
              </a>
            ))}
          </li>
        ))}
      </ol>
    </details>
  );
}

// How sure it is stands in words of the page's own beside it.
const ESTIMATE = /Estimated probability that this evidence answers the question: \d+ %\.|据估计，这些证据能回答该问题的概率为 \d+%。/;

// How the answer was worded; an answer that is none says so already.
function Aside({ run, speak }: { run: Run; speak: Tongue }) {
  const answer = run.answer;
  if (!answer || run.grounding === "abstained") return null;
  const quoted = answer.authorship === "extractive" && answer.statements.length > 0;
  const note = plain(answer.note.replace(ESTIMATE, "").trim()) || (quoted ? speak.words.quoted : "");
  return note ? <p className="note">{note}</p> : null;
}

function Option({ run, letter }: { run: Run; letter: string }) {
  const text = run.options[letter.length === 1 ? letter.charCodeAt(0) - 65 : -1];
  return <p className="option">{plain(text ? `${letter}. ${text}` : letter)}</p>;
}

type Said = NonNullable<Run["answer"]>["statements"][number] & { run: Run; speak: Tongue; lit: Lit };

function Statement({ text, cites, kind, run, speak, lit }: Said) {
  const bare = cites.length === 0 && kind !== "notice"; // a notice is Osler's own words
  return (
    <span className={bare ? "statement uncited" : "statement"} title={bare ? speak.words.uncited : undefined}>
      <bdi>{plain(text)}</bdi> {kind === "unconfirmed" && <em className="small">{speak.words.unconfirmed} </em>}
      {cites.map((n) => (
        <Cite key={n} n={n} one={run.evidence.find((found) => found.number === n)} lit={lit} />
      ))}{" "}
    </span>
  );
}

function Cite({ n, one, lit }: { n: number; one: Evidence | undefined; lit: Lit }) {
  return (
    <span className="cited" onMouseEnter={() => lit.light(n)} onMouseLeave={() => lit.light(null)}>
      <button
        className={lit.lit === n ? "cite lit" : "cite"}
        onClick={() => lit.open(n)}
        onFocus={() => lit.light(n)}
        onBlur={() => lit.light(null)}
      >
        {`[${n}]`}
      </button>
      {one && (
        <span className="tip" role="tooltip">
          <strong>{plain(one.passage.title || one.passage.id)}</strong>
          <span>{plain(one.quote)}</span>
        </span>
      )}
    </span>
  );
}

function Facts({ run, speak }: { run: Run; speak: Tongue }) {
  const { words } = speak;
  const sure = run.answer?.sureness;
  const parts = [
    sure && `${words.sureness} ${speak.sure(sure.probability)} (${Math.min(99, Math.round(100 * sure.probability))} %)`,
    ...costParts(run.usage, words),
    `${shortSeconds(run.seconds, "?")} ${words.seconds}`,
  ];
  return (
    <p className="small facts">
      <span className={`badge ${run.grounding}`} title={words.grounding}>
        {speak.state(run.grounding)}
      </span>
      {parts.filter(Boolean).join(" · ")}{" "}
      <a href={`runs/${encodeURIComponent(run.run_id)}/report.html`}>{words.report}</a>
    </p>
  );
}

// The note that names the method: it stands among all events, not under the answer.
const METHOD = "Method: ";

// What a reader must not miss: sources that were down, and notes.
export function Warnings({ log, speak }: { log: Told; speak: Tongue }) {
  const notes = log.notes.filter((one) => !one.startsWith(METHOD));
  if (log.down.length + notes.length === 0) return null;
  return (
    <ul className="warnings" aria-label={speak.event("run.note")}>
      {log.down.map((one) => (
        <li key={one} className="down">{`${speak.words.down}: ${plain(one)}`}</li>
      ))}
      {notes.map((one, index) => (
        <li key={index}>{plain(speak.note(one))}</li>
      ))}
    </ul>
  );
}
