import type { About, Evidence, Run } from "../api";
import type { Told } from "../log";
import { asking, link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";
import { Actions, edit } from "./Actions";
import { Cautions } from "./Cautions";

export interface Lit {
  lit: number | null; // the evidence that a pointer or the focus is on
  light: (n: number | null) => void;
  open: (n: number) => void;
}

type Given = { run: Run; speak: Tongue; lit: Lit; about?: About; again?: () => void };

export function Answer({ run, speak, lit, about, again }: Given) {
  const { words } = speak;
  const stopped = run.status === "cancelled" ? words.stopped : run.status === "interrupted" ? words.interrupted : "";
  if (stopped || run.error)
    return (
      <>
        <p role="alert">{stopped || plain(`${words.failed}: ${run.error?.detail}`)}</p>
        <p className="row">
          {again && <button onClick={again}>{words.askAgain}</button>}
          {about && <button onClick={() => edit(run)}>{words.edit}</button>}
        </p>
      </>
    );
  const answer = run.answer;
  if (!answer) return null;
  const look = lookOf(run);
  return (
    <section className={`answer sheet ${look}`} aria-label={speak.label(words.answer)}>
      <h2>{words.answer}</h2>
      {run.outdated && again && (
        <p className="row outdated" role="status">
          {words.outdated} <button onClick={again}>{words.askAgain}</button>
        </p>
      )}
      {answer.option && <Option run={run} letter={answer.option} />}
      {look === "answered" ? <Said run={run} speak={speak} lit={lit} /> : <NoAnswer near={look === "nearest"} run={run} speak={speak} />}
      <Surety run={run} speak={speak} lit={lit} />
      <Steps run={run} speak={speak} />
      <Cautions found={run.cautions} speak={speak} />
      {about && <Actions run={run} about={about} again={again} speak={speak} />}
    </section>
  );
}

// An answer, the passages nearest to one, or none: each looks otherwise.
function lookOf(run: Run): "answered" | "nearest" | "refused" {
  if (run.evidence.length > 0 && run.evidence.every((one) => one.use === "nearest")) return "nearest";
  return run.answer?.option || run.grounding !== "abstained" ? "answered" : "refused";
}

const isQuoted = (run: Run): boolean => run.answer?.authorship === "extractive" && run.answer.statements.length > 0;

// Of quotes the best one, in a reading size: the others stand marked in their passages.
function Said({ run, speak, lit }: { run: Run; speak: Tongue; lit: Lit }) {
  const answer = run.answer;
  if (!answer) return null;
  const shown = isQuoted(run) ? answer.statements.filter((one, at) => at === 0 || !isWholeQuote(one, run)) : answer.statements;
  return (
    <p className={isQuoted(run) ? "said quotes" : "said"}>
      {shown.length === 0 && plain(answer.text)}
      {shown.map((one, index) => (
        <Statement key={index} {...one} run={run} speak={speak} lit={lit} />
      ))}
    </p>
  );
}

type Statement_ = NonNullable<Run["answer"]>["statements"][number];

const isWholeQuote = (one: Statement_, run: Run) => run.evidence.some((each) => one.cites.includes(each.number) && each.quote === one.text);

// The evidence whose quote the answer shows already.
export function leading(run: Run): number | null {
  if (lookOf(run) !== "answered") return null;
  const first = isQuoted(run) ? run.answer?.statements[0] : undefined;
  return run.evidence.find((each) => first?.cites.includes(each.number) && each.quote === first.text)?.number ?? null;
}

// What the server says where no better reason is known; all else is the reason.
const NOTHING = /^$|^(The evidence does not say\.|现有证据没有说明。)/;

function NoAnswer({ near, run, speak }: { near: boolean; run: Run; speak: Tongue }) {
  const { words } = speak;
  return (
    <>
      <p className="abstained">{near ? words.nearest : NOTHING.test(run.answer?.note ?? "") ? words.abstained : plain(run.answer?.note ?? "")}</p>
      <p>{words.tryNext}</p>
      <ul>
        {run.usage?.searches !== 0 && <li>{words.tryWords}</li>}
        <li>
          <a href={asking("knowledge", { q: run.question })}>{words.trySearch}</a>
        </li>
        <li>
          <a href="#/knowledge">{words.tryTexts}</a>
        </li>
      </ul>
    </>
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

// What stands in words of the page's own beside it: that it is quotes, and how sure it is.
const SAID = /Quotations\. No writing model is set up\.|(It is uncertain whether t|T)hese quotations [\w ]*answer the question\.|(以下|均)为原文摘句。未设置用于撰写的模型。|(尚不确定)?这些原文[^。]*回答了该问题。/g;

// How the answer was worded and how sure it is, in a line; figures stand with how it was answered.
function Surety({ run, speak, lit }: { run: Run; speak: Tongue; lit: Lit }) {
  const { words } = speak;
  const { answer } = run;
  if (!answer || lookOf(run) !== "answered") return null;
  const sure = answer.sureness;
  const best = leading(run);
  const usual = run.steps.some((one) => one.computed) ? words.computed : words.quoted;
  const note = plain(answer.note.replace(SAID, "").trim()) || (isQuoted(run) ? usual : "");
  return (
    <>
      <p className="small facts">
        {sure && (
          <span className="sure" title={`${Math.min(99, Math.round(100 * sure.probability))} %`}>
            {words.sureness}: <strong>{speak.sure(sure.probability)}</strong>
          </span>
        )}
        {best !== null && (
          <button className="plain" onClick={() => lit.open(best)}>
            {words.inSection}
          </button>
        )}
        {run.grounding !== "grounded" && <span className={`badge ${run.grounding}`}>{speak.state(run.grounding)}</span>}
      </p>
      {note && <p className="note small">{note}</p>}
    </>
  );
}

function Option({ run, letter }: { run: Run; letter: string }) {
  const text = run.options[letter.length === 1 ? letter.charCodeAt(0) - 65 : -1];
  return <p className="option">{plain(text ? `${letter}. ${text}` : letter)}</p>;
}

type Shown = Statement_ & { run: Run; speak: Tongue; lit: Lit };

function Statement({ text, cites, kind, run, speak, lit }: Shown) {
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

// A quote under the pointer is moved left as far as the window's edge asks for.
function keepInside({ currentTarget }: { currentTarget: HTMLElement }) {
  const tip = currentTarget.querySelector<HTMLElement>(".tip");
  if (!tip) return;
  tip.style.left = "0";
  tip.style.left = `${Math.min(0, document.documentElement.clientWidth - tip.getBoundingClientRect().right - 8)}px`;
}

function Cite({ n, one, lit }: { n: number; one: Evidence | undefined; lit: Lit }) {
  return (
    <span className="cited" onMouseEnter={(event) => (keepInside(event), lit.light(n))} onFocus={keepInside} onMouseLeave={() => lit.light(null)}>
      <button
        className={lit.lit === n ? "cite lit" : "cite"}
        onClick={() => lit.open(n)}
        onFocus={() => lit.light(n)}
        onBlur={() => lit.light(null)}
      >
        {one?.mark ?? `[${n}]`}
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
