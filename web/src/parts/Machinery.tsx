import { useEffect, useMemo, useState } from "react";
import type { Run } from "../api";
import type { Heard } from "../events";
import { told, type Told } from "../log";
import { costParts } from "../cost";
import { link } from "../place";
import { plain, shortSeconds } from "../plain";
import type { Tongue } from "../words";
import { Dag } from "./Dag";
import { Film } from "./Film";
import { Timeline } from "./Timeline";

interface Given {
  run: Run | null;
  events: Heard[];
  log: Told;
  speak: Tongue;
  over: boolean;
  replay?: boolean; // opened, and played from its beginning
}

export function Machinery({ run, events, log, speak, over, replay = false }: Given) {
  const { words } = speak;
  const [at, seek] = useState<number | null>(null); // null: all that there is
  const shown = at === null ? events : events.slice(0, at);
  const past = useMemo(() => (at === null ? log : told(events.slice(0, at))), [at, events, log]);
  return (
    <details className="machinery" open={replay || undefined}>
      <summary>
        <h2>{words.machinery}</h2>
      </summary>
      {over && events.length > 1 && (
        <Replay count={events.length} at={at} seek={seek} begin={replay} speak={speak} />
      )}
      <Plan log={past} speak={speak} />
      {past.film.length > 0 && <Film key={at === null ? "all" : "past"} log={past} speak={speak} />}
      {past.nodes.length > 0 && <Dag nodes={past.nodes} speak={speak} />}
      <Timeline events={shown} speak={speak} />
      {run && <Unused run={run} log={past} speak={speak} />}
      {run && <MadeWith run={run} speak={speak} />}
    </details>
  );
}

const LONGEST = 15_000; // milliseconds of a whole replay
const SLOWEST = 500; // milliseconds an event

type Seek = {
  count: number;
  at: number | null;
  seek: (at: number | null) => void;
  begin: boolean;
  speak: Tongue;
};

function Replay({ count, at, seek, begin, speak }: Seek) {
  const { words } = speak;
  const [playing, play] = useState(begin);
  const now = at ?? count;
  useEffect(() => {
    if (!playing) return;
    const next = () => (now < count ? seek(now + 1) : play(false));
    const timer = setTimeout(next, Math.min(SLOWEST, LONGEST / count));
    return () => clearTimeout(timer);
  }, [playing, now, count, seek]);
  useEffect(() => {
    if (begin) seek(1);
  }, [begin, seek]);
  const toggle = () => {
    if (!playing && now >= count) seek(1);
    play(!playing);
  };
  return (
    <div className="replay row">
      <button type="button" className="main" onClick={toggle}>
        {playing ? words.pause : words.play}
      </button>
      <label>
        {`${words.replay}: ${words.event} ${now}/${count}`}
        <input
          type="range"
          min={1}
          max={count}
          value={now}
          onChange={(event) => (play(false), seek(Number(event.target.value)))}
        />
      </label>
    </div>
  );
}

function Plan({ log, speak }: { log: Told; speak: Tongue }) {
  if (log.plan.length + log.dropped.length === 0) return null;
  return (
    <section aria-label={speak.label(speak.words.sources)}>
      <h3>{`${speak.words.sources}${log.origin ? ` (${speak.state(log.origin)})` : ""}`}</h3>
      <p className="small">{speak.words.planMeans}</p>
      <ul className="plan">
        {log.plan.map((one, index) => (
          <li key={index}>{plain(`${speak.source(one.source)}: ${one.query}`)}</li>
        ))}
      </ul>
      <Dropped lines={log.dropped} speak={speak} />
    </section>
  );
}

export function Dropped({ lines, speak }: { lines: string[]; speak: Tongue }) {
  if (lines.length === 0) return null;
  return (
    <p className="small">{`${speak.words.notAsked}: ${plain(lines.join("; "))}`}</p>
  );
}

function Unused({ run, log, speak }: { run: Run; log: Told; speak: Tongue }) {
  const used = new Set(run.evidence.map((one) => one.passage.id));
  const rest = log.found.filter((id) => !used.has(id));
  if (rest.length === 0) return null;
  return (
    <section aria-label={speak.label(speak.words.notUsed)}>
      <h3>{`${speak.words.notUsed}: ${rest.length}`}</h3>
      <ul className="ids">
        {rest.slice(0, 50).map((id) => (
          <li key={id}>
            <a href={link("passages", id)}>{plain(id)}</a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function MadeWith({ run, speak }: { run: Run; speak: Tongue }) {
  const { words } = speak;
  const facts: [string, string][] = [
    [words.strategy, run.strategy],
    [words.models, Object.entries(run.models).map(([role, name]) => `${role}: ${name}`).join(", ")],
    [words.searchesMade, String(run.usage?.searches ?? "")],
    [words.snapshot, run.snapshot],
    [words.halt, [speak.state(run.halt), speak.zh ? "" : run.why].filter(Boolean).join(": ")],
    [words.sureness, run.answer?.sureness ? `${Math.min(99, Math.round(100 * run.answer.sureness.probability))} %` : ""],
    [words.cost, costParts(run.usage, words).join(" · ")],
    [words.time, `${moment(run.created, speak)}, ${shortSeconds(run.seconds, "?")} ${words.seconds}`],
  ];
  return (
    <section aria-label={speak.label(words.madeWith)}>
      <h3>{words.madeWith}</h3>
      <Facts facts={facts} />
    </section>
  );
}

// A moment as people of the language write it.
export function moment(given: string, speak: Tongue): string {
  const when = new Date(given);
  return Number.isNaN(when.valueOf()) ? given : when.toLocaleString(speak.zh ? "zh-CN" : "en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export function day(given: string, speak: Tongue): string {
  const when = new Date(given);
  return Number.isNaN(when.valueOf()) ? given : when.toLocaleDateString(speak.zh ? "zh-CN" : "en-GB", { dateStyle: "long" });
}

export function Facts({ facts }: { facts: [string, string][] }) {
  return (
    <dl className="facts">
      {facts
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{plain(value)}</dd>
          </div>
        ))}
    </dl>
  );
}
