import { useCallback, useEffect, useState } from "react";
import * as api from "../api";
import { useLoaded, useRun, why } from "../hooks";
import { Answer, Warnings, type Lit } from "../parts/Answer";
import { Cards } from "../parts/Cards";
import { DangerNotice } from "../parts/Danger";
import { FollowUp } from "../parts/FollowUp";
import { moment } from "../parts/Machinery";
import { Opened } from "../parts/Opened";
import { Share } from "../parts/Share";
import { Sure } from "../parts/Uploads";
import { Waiting } from "../parts/Waiting";
import { Wrong } from "../parts/Wrong";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

export function Threads({ speak }: { speak: Tongue }) {
  const { words } = speak;
  const { found, wrong } = useLoaded(api.threads);
  return (
    <section aria-label={words.threads}>
      <h1>{words.threads}</h1>
      {wrong && <p role="alert">{plain(wrong)}</p>}
      {found?.threads.length === 0 && <p>{words.noThreads}</p>}
      <ul className="runs threads">
        {found?.threads.map((one) => (
          <li key={one.thread_id}>
            <div>
              <a href={link("threads", one.thread_id)} dir="auto">
                {plain(one.turns[0]?.question ?? one.thread_id)}
              </a>
              <span className="small">{moment(one.created, speak)}</span>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

// A conversation: its questions in order, the last one open.
export function ThreadPage({ id, speak }: { id: string; speak: Tongue }) {
  const { words } = speak;
  const [thread, put] = useState<api.Thread | null>(null);
  const [wrong, setWrong] = useState("");
  const look = useCallback(() => {
    api.thread(id).then(put, (error) => setWrong(why(error)));
  }, [id]);
  useEffect(look, [look]);
  const drop = () => api.deleteThread(id).then(() => (window.location.hash = link("threads")), (error) => setWrong(why(error)));
  const last = thread?.turns.length ?? 0;
  const first = thread?.turns[0];
  return (
    <section aria-label={words.thread}>
      {wrong && <Wrong text={wrong} />}
      <p className="small">
        <a href={link("threads")}>{words.threads}</a>
      </p>
      {first && <h1 dir="auto">{plain(first.question)}</h1>}
      {thread?.turns.map((one) => <TurnView key={one.n} turn={one} last={one.n === last} speak={speak} />)}
      {thread && (
        <>
          <FollowUp open={async () => thread} asked={look} moved={look} speak={speak} />
          <div className="row">
            <Share path={`threads/${encodeURIComponent(id)}`} speak={speak} />
            <Sure words={[words.remove, words.sureRemove]} name={words.thread} done={drop} />
          </div>
        </>
      )}
    </section>
  );
}

function TurnView({ turn, last, speak }: { turn: api.Turn; last: boolean; speak: Tongue }) {
  const [open, show] = useState(last);
  return (
    <details className="turn" open={open} onToggle={(event) => show(event.currentTarget.open)}>
      <summary dir="auto">
        <strong>{`${turn.n}. ${plain(turn.question)}`}</strong>
      </summary>
      {turn.rewritten_by && <p className="small alone">{`${speak.words.searchedFor}: ${plain(turn.standalone)}`}</p>}
      {open && <Answered id={turn.run_id} speak={{ ...speak, label: (name) => `${name} ${turn.n}` }} />}
    </details>
  );
}

function Answered({ id, speak }: { id: string; speak: Tongue }) {
  const watched = useRun(id);
  const { run, log, wrong } = watched;
  const [opened, open] = useState<number | null>(null);
  const [lit, light] = useState<number | null>(null);
  const going = run !== null && api.working(run.status);
  const chosen = run?.evidence.find((one) => one.number === opened);
  const shown: Lit = { lit, light, open };
  return (
    <>
      <DangerNotice danger={run?.danger ?? log.danger} />
      {wrong && <p role="alert">{plain(wrong)}</p>}
      {going && <Waiting watched={watched} speak={speak} />}
      <Warnings log={log} speak={speak} />
      {run && !going && (
        <div className="columns">
          <Answer run={run} speak={speak} lit={shown} />
          {run.answer && <Cards run={run} speak={speak} lit={shown} />}
        </div>
      )}
      <p className="small">
        <a href={link("runs", id)}>{speak.words.machinery}</a>
      </p>
      {chosen && <Opened one={chosen} speak={speak} close={() => open(null)} />}
    </>
  );
}
