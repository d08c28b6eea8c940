import { useEffect, useState } from "react";
import type { Watched } from "../hooks";
import type { Event } from "../events";
import { plain } from "../plain";
import type { Tongue } from "../words";

const AGAIN = 2_000; // milliseconds after which a queued run is asked for its place

// What goes on while there is no answer yet: the step in plain words, and for how long.
export function Waiting({ watched, speak }: { watched: Watched; speak: Tongue }) {
  const { run, log, lost, stop, look } = watched;
  const { words } = speak;
  const queued = run?.status === "queued" && log.seen === 0;
  useEffect(() => {
    if (!queued) return;
    const timer = setInterval(look, AGAIN);
    return () => clearInterval(timer);
  }, [queued, look]);
  const step = queued
    ? `${words.queued}: ${words.placeInQueue} ${(run?.ahead ?? 0) + 1}`
    : `${words.working}: ${log.now ? stepName(log.now, speak) : words.begins}`;
  return (
    <div className="sheet working">
      <p role="status">{lost === null ? step : `${words.lost} ${lost} ${words.seconds}`}</p>
      <p className="small">
        <Elapsed since={run?.created ?? ""} speak={speak} />
      </p>
      <button onClick={stop}>{words.cancel}</button>
    </div>
  );
}

function Elapsed({ since, speak }: { since: string; speak: Tongue }) {
  const [now, tick] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => tick(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.round((now - Date.parse(since)) / 1_000)) || 0;
  return <span className="elapsed">{`${seconds} ${speak.words.seconds}`}</span>;
}

// The step that an event begins or ends, as a reader would say it.
export function stepName(event: Event, speak: Tongue): string {
  const { steps } = speak;
  const sources = (event.sources ?? []).map(speak.source).join(", ");
  switch (event.type) {
    case "plan.proposed":
      return steps.planned(event.queries.length);
    case "retrieval.started":
      return steps.searching(sources);
    case "retrieval.done":
      return steps.reading(event.hits.length);
    case "retrieval.ordered":
      return steps.reading(event.passages.length);
    case "lf.parsed":
      return steps.split(event.nodes.length);
    case "lf.begun":
      return steps.solving(event.n, plain(String(event.question)).slice(0, 120));
    case "math.run":
      return steps.computing;
    case "state.updated":
    case "lf.focus":
    case "lf.boundary":
      return steps.judging;
    case "stack.push":
    case "stack.pop":
    case "model.asked":
      return steps.thinking;
    default:
      return speak.event(event.type);
  }
}
