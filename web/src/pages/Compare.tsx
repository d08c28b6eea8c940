import { useState } from "react";
import { working, type Run } from "../api";
import { useRun, type Watched } from "../hooks";
import { Answer, Warnings } from "../parts/Answer";
import { Cards } from "../parts/Cards";
import { DangerNotice } from "../parts/Danger";
import { Machinery } from "../parts/Machinery";
import { Opened } from "../parts/Opened";
import { link } from "../place";
import { plain, shortSeconds } from "../plain";
import type { Tongue } from "../words";

export function Compare({ ids, speak }: { ids: [string, string]; speak: Tongue }) {
  const [first, second] = [useRun(ids[0]), useRun(ids[1])];
  const shared = both(first.run, second.run);
  const same = first.run && second.run && first.run.question === second.run.question;
  return (
    <section aria-label={speak.words.compare}>
      <DangerNotice danger={first.run?.danger ?? second.run?.danger} />
      <h1>{same ? plain(first.run?.question ?? "") : speak.words.compare}</h1>
      <div className="pair">
        {[first, second].map((watched, index) => (
          <Side key={index} watched={watched} shared={shared} alone={!same} speak={{ ...speak, label: (name) => `${name} ${index + 1}` }} />
        ))}
      </div>
      <Figures runs={[first.run, second.run]} speak={speak} />
    </section>
  );
}

function both(a: Run | null, b: Run | null): Set<string> {
  const known = new Set(a?.evidence.map((one) => one.passage.id));
  return new Set(b?.evidence.map((one) => one.passage.id).filter((id) => known.has(id)));
}

function Figures({ runs, speak }: { runs: [Run | null, Run | null]; speak: Tongue }) {
  const { words } = speak;
  const rows: [string, (run: Run) => string][] = [
    [words.status, (run) => speak.state(run.status)],
    [words.answer, (run) => run.answer?.option ?? "–"],
    [words.grounding, (run) => speak.state(run.grounding) || "–"],
    [words.halt, (run) => speak.state(run.halt) || "–"],
    [words.evidence, (run) => String(run.evidence.length)],
    [words.callsMade, (run) => String(run.usage?.calls ?? "–")],
    [words.tokens, (run) => (run.usage ? (run.usage.prompt_tokens + run.usage.completion_tokens).toLocaleString() : "–")],
    [words.searchesMade, (run) => String(run.usage?.searches ?? "–")],
    [`${words.time} (${words.seconds})`, (run) => shortSeconds(run.seconds, "–")],
  ];
  const told = rows.filter(([, of]) => runs.some((run) => run && !["0", "–"].includes(of(run))));
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label={words.compare}>
      <table>
        <thead>
          <tr>
            <td />
            {runs.map((run, index) => (
              <th key={index} scope="col">
                {run ? <a href={link("runs", run.run_id)}>{run.strategy}</a> : "…"}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {told.map(([name, of]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {runs.map((run, index) => (
                <td key={index}>{run ? of(run) : "…"}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type Given = { watched: Watched; shared: Set<string>; alone: boolean; speak: Tongue };

function Side({ watched, shared, alone, speak }: Given) {
  const { run, events, log, wrong } = watched;
  const [opened, open] = useState<number | null>(null);
  const [lit, light] = useState<number | null>(null);
  const chosen = run?.evidence.find((one) => one.number === opened);
  const going = run !== null && working(run.status);
  return (
    <article aria-label={run?.strategy ?? ""}>
      {wrong && <p role="alert">{wrong}</p>}
      {run && <h2>{alone ? plain(run.question) : run.strategy}</h2>}
      {going && <p role="status">{`${speak.words.working}: ${log.seen}`}</p>}
      <Warnings log={log} speak={speak} />
      {run && !going && <Answer run={run} speak={speak} lit={{ lit, light, open }} />}
      {run?.answer && <Cards run={run} speak={speak} lit={{ lit, light, open }} shared={shared} />}
      <Machinery run={run} events={events} log={log} speak={speak} over={run !== null && !going} />
      {chosen && <Opened one={chosen} speak={speak} close={() => open(null)} />}
    </article>
  );
}
