import { useRef, useState } from "react";
import { askIn, goOn, working, type About, type Run, type Thread } from "../api";
import { useKeys, useRun, why } from "../hooks";
import { Answer, Warnings } from "../parts/Answer";
import { Begun, remember, remembered } from "../parts/Begun";
import { Cards } from "../parts/Cards";
import { DangerNotice } from "../parts/Danger";
import { FollowUp } from "../parts/FollowUp";
import { Machinery } from "../parts/Machinery";
import { Opened } from "../parts/Opened";
import { Suggested } from "../parts/Suggested";
import { FirstFound, Waiting } from "../parts/Waiting";
import { Wrong } from "../parts/Wrong";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

type Given = { id: string; replay: boolean; about: About; speak: Tongue };

export function RunPage({ id, replay, about, speak }: Given) {
  const watched = useRun(id);
  const { run, events, log, wrong } = watched;
  const [opened, open] = useState<number | null>(null);
  const [lit, light] = useState<number | null>(null);
  const going = run !== null && working(run.status);
  const chosen = run?.evidence.find((one) => one.number === opened);
  const begun = useRef<Promise<Thread> | null>(null);
  const open_ = () => (begun.current ??= goOn(id));
  const toThread = (thread: string) => (window.location.hash = link("threads", thread));
  const [failed, setFailed] = useState("");
  const again = () =>
    askAgain(run, open_).then(toThread, (error) => setFailed(why(error)));
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
      {!run && !wrong && remembered(id) && <Begun question={remembered(id)} speak={speak} />}
      {run && <Question run={run} />}
      {going && <Waiting watched={watched} speak={speak} />}
      <Warnings log={log} speak={speak} />
      {run && !going && (
        <div className="answered">
          <Answer run={run} about={about} again={() => void again()} speak={speak} lit={{ lit, light, open }} />
          {failed && <p role="alert">{plain(failed)}</p>}
          {run.answer && <Cards run={run} speak={speak} lit={{ lit, light, open }} />}
          {run.answer && <Suggested run={id} open={open_} asked={toThread} speak={speak} />}
        </div>
      )}
      <FirstFound watched={watched} speak={speak} />
      {run?.answer && !going && <FollowUp open={open_} asked={toThread} speak={speak} />}
      <Machinery run={run} events={events} log={log} speak={speak} over={run !== null && !going} replay={replay} />
      {chosen && <Opened one={chosen} speak={speak} close={() => open(null)} />}
    </>
  );
}

// The same question by the same strategy, as the next turn of its conversation.
async function askAgain(run: Run | null, open: () => Promise<Thread>): Promise<string> {
  if (!run) return "";
  const { question, strategy, options } = run;
  const { thread_id, turns } = await open();
  const { turn } = await askIn(thread_id, { question, standalone: question, strategy, options, after: turns.length });
  remember(turn.run_id, question);
  return thread_id;
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

