import { useCallback, useEffect, useState } from "react";
import * as api from "../api";
import { useLoaded, useRun, why } from "../hooks";
import { Answer, Warnings, type Lit } from "../parts/Answer";
import { Cards } from "../parts/Cards";
import { DangerNotice } from "../parts/Danger";
import { FollowUp } from "../parts/FollowUp";
import { Opened } from "../parts/Opened";
import { Share } from "../parts/Share";
import { Suggested } from "../parts/Suggested";
import { FirstFound, Waiting } from "../parts/Waiting";
import { Wrong } from "../parts/Wrong";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

const FIRST = 20;
const MORE = 100;

// A conversation: its questions in order, the last one open. A long one begins with its end.
export function ThreadPage({ id, about, speak }: { id: string; about: api.About; speak: Tongue }) {
  const { words } = speak;
  const [thread, put] = useState<api.Thread | null>(null);
  const [wrong, setWrong] = useState("");
  const [count, more] = useState(FIRST);
  const failed = (error: unknown) => setWrong(why(error));
  const look = useCallback(() => {
    api.thread(id).then((found) => (put(found), setWrong("")), failed);
  }, [id]);
  useEffect(look, [look]);
  const turns = thread?.turns ?? [];
  const shown = turns.slice(-count);
  const again = () => void askAgain(id, turns).catch(failed).finally(look);
  useEffect(() => {
    // What was asked last is in sight, however long the answers before it are.
    if (turns.length > 1) document.querySelector("details.turn:last-of-type")?.scrollIntoView();
  }, [turns.length]);
  return (
    <section aria-label={words.thread}>
      {wrong && <Wrong text={wrong} />}
      {turns[0] && <h1 dir="auto">{plain(turns[0].question)}</h1>}
      {shown.length < turns.length && (
        <button onClick={() => more(count + MORE)}>{`${words.earlierTurns}: ${turns.length - shown.length}`}</button>
      )}
      {shown.map((one) => (
        <TurnView key={one.n} turn={one} turns={turns} thread={id} about={about} again={again} look={look} speak={speak} />
      ))}
      {thread && (
        <>
          <FollowUp open={async () => thread} asked={look} moved={look} speak={speak} />
          <Share path={`threads/${encodeURIComponent(id)}`} about={about} speak={speak} />
        </>
      )}
    </section>
  );
}

// The last question once more, in the same words and by the same strategy.
async function askAgain(id: string, turns: api.Turn[]): Promise<void> {
  const last = turns.at(-1);
  if (!last) return;
  const { strategy, options } = await api.run(last.run_id);
  const { question, standalone } = last;
  await api.askIn(id, { question, standalone, strategy, options, after: turns.length });
}

type Given = { turn: api.Turn; turns: api.Turn[]; thread: string; about: api.About; again: () => void; look: () => void; speak: Tongue };

function TurnView({ turn, turns, thread, about, again, look, speak }: Given) {
  const last = turn.n === turns.length;
  const [open, show] = useState(last);
  const repeated = turns[turn.n - 2]?.standalone === turn.standalone;
  return (
    <details className="turn" open={open} onToggle={(event) => show(event.currentTarget.open)}>
      <summary dir="auto">
        <strong>{`${turn.n}. ${plain(turn.question)}`}</strong>
      </summary>
      {turn.rewritten_by && <p className="small alone">{`${speak.words.searchedFor}: ${plain(turn.standalone)}`}</p>}
      {open && (
        <Answered
          id={turn.run_id}
          repeated={repeated ? thread : ""}
          about={about}
          again={last ? again : undefined}
          next={last ? { thread, look } : undefined}
          speak={{ ...speak, label: (name) => `${name} ${turn.n}` }}
        />
      )}
    </details>
  );
}

// What a later answer to the same question has otherwise.
function Changes({ thread, run, speak }: { thread: string; run: string; speak: Tongue }) {
  const { words } = speak;
  const look = useCallback(() => api.changes(thread), [thread]);
  const change = useLoaded(look).found?.changes.find((one) => one.after === run);
  if (!change) return null;
  const [before, now] = change.grounding;
  const lines = [
    before !== now && <>{`${speak.state(before)} → ${speak.state(now)}`}</>,
    ...change.new_statements.map((text) => <ins>{plain(text)}</ins>),
    ...change.gone_statements.map((text) => <del>{plain(text)}</del>),
    ...change.new_passages.map((id) => <ins>{`${words.newEvidence}: ${plain(id)}`}</ins>),
    ...change.gone_passages.map((id) => <del>{`${words.goneEvidence}: ${plain(id)}`}</del>),
  ].filter(Boolean);
  return (
    <section className="sheet changes" aria-label={speak.label(words.whatChanged)}>
      <h3>{words.whatChanged}</h3>
      {lines.length === 0 && <p>{words.asBefore}</p>}
      <ul>
        {lines.map((line, index) => (
          <li key={index}>{line}</li>
        ))}
      </ul>
    </section>
  );
}

type Held = { id: string; repeated: string; about: api.About; again?: () => void; next?: { thread: string; look: () => void }; speak: Tongue };

function Answered({ id, repeated, about, again, next, speak }: Held) {
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
      {run && !going && repeated && <Changes thread={repeated} run={id} speak={speak} />}
      {run && !going && (
        <div className="answered">
          <Answer run={run} about={about} again={again} speak={speak} lit={shown} />
          {run.answer && <Cards run={run} speak={speak} lit={shown} />}
          {next && run.answer && <Suggested run={id} open={() => api.thread(next.thread)} asked={next.look} speak={speak} />}
        </div>
      )}
      <FirstFound watched={watched} speak={speak} />
      <p className="small">
        <a href={link("runs", id)}>{speak.words.machinery}</a>
      </p>
      {chosen && <Opened one={chosen} speak={speak} close={() => open(null)} />}
    </>
  );
}
