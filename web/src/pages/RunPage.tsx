import { useRef, useState } from "react";
import { goOn, working, type Run, type Thread } from "../api";
import { useKeys, useRun, why } from "../hooks";
import { Answer, Warnings } from "../parts/Answer";
import { Cards } from "../parts/Cards";
import { DangerNotice } from "../parts/Danger";
import { FollowUp } from "../parts/FollowUp";
import { Machinery } from "../parts/Machinery";
import { Opened } from "../parts/Opened";
import { Waiting } from "../parts/Waiting";
import { Wrong } from "../parts/Wrong";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

export function RunPage({ id, replay, speak }: { id: string; replay: boolean; speak: Tongue }) {
  const watched = useRun(id);
  const { run, events, log, wrong } = watched;
  const [opened, open] = useState<number | null>(null);
  const [lit, light] = useState<number | null>(null);
  const going = run !== null && working(run.status);
  const chosen = run?.evidence.find((one) => one.number === opened);
  const begun = useRef<Promise<Thread> | null>(null);
  const open_ = () => (begun.current ??= goOn(id));
  const toThread = (thread: string) => (window.location.hash = link("threads", thread));
  useKeys((key) => {
    if (/^[1-9]$/.test(key)) return open(Number(key)), true;
    if (key === "j" || key === "k") return step(key === "j" ? 1 : -1), true;
    return false;
  });
  return (
    <>
      <DangerNotice danger={run?.danger ?? log.danger} />
      {wrong && run && <p role="alert">{wrong}</p>}
      {wrong && !run && <Wrong text={wrong} />}
      {wrong && !run && (
        <p>
          <a href={link("runs")}>{speak.words.runs}</a>
        </p>
      )}
      {run && <Question run={run} />}
      {going && <Waiting watched={watched} speak={speak} />}
      <Warnings log={log} speak={speak} />
      {run && !going && (
        <div className="columns">
          <Answer run={run} speak={speak} lit={{ lit, light, open }} />
          {run.answer && <Cards run={run} speak={speak} lit={{ lit, light, open }} />}
        </div>
      )}
      {run?.answer && !going && <FollowUp open={open_} asked={toThread} speak={speak} />}
      {run?.answer && !going && <Keep open={open_} kept={toThread} speak={speak} />}
      <Machinery run={run} events={events} log={log} speak={speak} over={run !== null && !going} replay={replay} />
      {chosen && <Opened one={chosen} speak={speak} close={() => open(null)} />}
    </>
  );
}

type Given = { open: () => Promise<Thread>; kept: (thread: string) => void; speak: Tongue };

// The question as a conversation of its own, to be asked again when the knowledge base has changed.
function Keep({ open, kept, speak }: Given) {
  const { words } = speak;
  const [wrong, setWrong] = useState("");
  const keep = () => open().then(({ thread_id }) => kept(thread_id), (error) => setWrong(why(error)));
  return (
    <p className="keep small">
      <button onClick={() => void keep()}>{words.keep}</button> {words.keepMeans}
      {wrong && <span role="alert">{plain(wrong)}</span>}
    </p>
  );
}

export function Question({ run }: { run: Run }) {
  return (
    <>
      <h1 dir="auto">{plain(run.question || run.run_id)}</h1>
      {run.options.length > 0 && (
        <ol className="options" type="A">
          {run.options.map((one, index) => (
            <li key={index} className={run.answer?.option === String.fromCharCode(65 + index) ? "chosen" : ""}>
              {plain(one)}
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

// j and k go through the evidence, as in many readers.
function step(by: number): void {
  const cards = [...document.querySelectorAll<HTMLElement>(".card")];
  const at = cards.indexOf(document.activeElement as HTMLElement);
  const next = cards[at < 0 ? (by > 0 ? 0 : cards.length - 1) : Math.min(cards.length - 1, Math.max(0, at + by))];
  next?.focus();
}

