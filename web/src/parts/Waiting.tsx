import { useCallback, useEffect } from "react";
import * as api from "../api";
import { useLoaded, type Watched } from "../hooks";
import type { Event, Heard } from "../events";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";
import { Elapsed, Stages } from "./Begun";
import { about } from "./Cards";

const AGAIN = 2_000; // milliseconds after which a queued run is asked for its place
const FIRST = 3; // passages
const SHOWN = 5; // stages; of the many of a long method, the last

// What goes on while there is no answer yet: the steps in plain words, and for how long.
export function Waiting({ watched, speak }: { watched: Watched; speak: Tongue }) {
  const { run, events, log, lost, stop, look } = watched;
  const { words } = speak;
  const queued = run?.status === "queued" && log.seen === 0;
  useEffect(() => {
    if (!queued) return;
    const timer = setInterval(look, AGAIN);
    return () => clearInterval(timer);
  }, [queued, look]);
  const done = stages(events, speak);
  const step = queued
    ? `${words.queued}: ${words.placeInQueue} ${(run?.ahead ?? 0) + 1}`
    : `${words.working}: ${done.at(-1) ?? words.begins}`;
  return (
    <div className="sheet working">
      <Stages done={done.slice(-SHOWN, -1)} now={lost === null ? step : `${words.lost} ${lost} ${words.seconds}`} />
      <p className="small">
        <Elapsed since={run?.created ?? ""} speak={speak} />
      </p>
      <button onClick={stop}>{words.cancel}</button>
    </div>
  );
}

// The passages to read while the answer is made; they stay where none came.
export function FirstFound({ watched, speak }: { watched: Watched; speak: Tongue }) {
  const { run, log } = watched;
  const ids = log.found.slice(0, FIRST).join("\n");
  return run && !run.answer && ids ? <Found ids={ids} name={api.working(run.status) ? speak.words.foundSoFar : speak.words.foundBefore} speak={speak} /> : null;
}

function Found({ ids, name, speak }: { ids: string; name: string; speak: Tongue }) {
  const look = useCallback(() => Promise.all(ids.split("\n").map((id) => api.passage(id, 0).catch(() => null))), [ids]);
  const { found } = useLoaded(look);
  if (!found?.some(Boolean)) return null;
  return (
    <section className="sheet first" aria-label={speak.label(name)}>
      <h2>{name}</h2>
      {found.map(
        (one) =>
          one && (
            <article key={one.passage.id}>
              <a href={link("passages", one.passage.id)} dir="auto">
                {plain(one.passage.title || one.passage.id)}
              </a>
              <span className="small"> {about(one.passage, speak)}</span>
              <p dir="auto" lang={one.passage.language}>
                {plain(one.passage.text)}
              </p>
            </article>
          ),
      )}
    </section>
  );
}

const QUIET = /^(run|evidence)\./; // they are told elsewhere

// The steps so far, each once as long as it goes on; a search that found nothing reads nothing.
export function stages(events: Heard[], speak: Tongue): string[] {
  const names = events.filter(({ event }) => !QUIET.test(event.type) && !isEmpty(event)).map(({ event }) => stepName(event, speak));
  return names.filter((name, at) => name !== names[at - 1]);
}

const isEmpty = ({ type, hits, passages }: Event) => type.startsWith("retrieval.") && (hits ?? passages)?.length === 0;

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
