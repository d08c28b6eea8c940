import { useCallback, useEffect, useState } from "react";
import * as api from "../api";
import { why } from "../hooks";
import { day, moment } from "../parts/Machinery";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

export function Runs({ speak }: { speak: Tongue }) {
  const { words } = speak;
  const [listed, setListed] = useState<api.Listed[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [wrong, setWrong] = useState("");
  const [words_, filter] = useState("");
  const [status, only] = useState("");
  const [by, group] = useState<Grouping>("day");
  const [picked, pick] = useState<string[]>([]);
  const more = useCallback((before: string) => {
    api.runs(before).then(
      (found) => {
        setListed((known) => [...(before ? (known ?? []) : []), ...found.runs]);
        setNext(found.next);
      },
      (error) => setWrong(why(error)),
    );
  }, []);
  useEffect(() => more(""), [more]);
  const wanted = words_.toLowerCase();
  const shown = (listed ?? []).filter(
    (one) => (!status || one.status === status) && `${one.question} ${one.strategy}`.toLowerCase().includes(wanted),
  );
  const states = [...new Set(listed?.map((one) => one.status))];
  const toggle = (id: string) =>
    pick((known) => (known.includes(id) ? known.filter((one) => one !== id) : [...known.slice(-1), id]));
  return (
    <section aria-label={words.runs}>
      <h1>{words.runs}</h1>
      {wrong && <p role="alert">{wrong}</p>}
      {listed?.length === 0 && <p>{words.none}</p>}
      {listed && listed.length > 0 && (
        <div className="row tools">
          <label>
            {words.filter}
            <input type="search" value={words_} onChange={(event) => filter(event.target.value)} />
          </label>
          <label>
            {words.status}
            <select value={status} onChange={(event) => only(event.target.value)}>
              <option value="">{words.all}</option>
              {states.map((name) => (
                <option key={name} value={name}>
                  {speak.state(name)}
                </option>
              ))}
            </select>
          </label>
          <label>
            {words.groupBy}
            <select value={by} onChange={(event) => group(event.target.value as Grouping)}>
              <option value="day">{words.day}</option>
              <option value="question">{words.sameQuestion}</option>
              <option value="strategy">{words.strategy}</option>
            </select>
          </label>
          <CompareLink picked={picked} speak={speak} />
        </div>
      )}
      {listed && listed.length > 0 && shown.length === 0 && <p>{words.noHits}</p>}
      {grouped(shown, by, speak).map(([name, runs]) => (
        <section key={name} aria-label={name}>
          <h2 dir="auto">{`${name} (${runs.length})`}</h2>
          <ul className="runs">
            {runs.map((one) => (
              <Row key={one.run_id} one={one} picked={picked.includes(one.run_id)} toggle={toggle} speak={speak} />
            ))}
          </ul>
        </section>
      ))}
      {next && <button onClick={() => more(next)}>{words.older}</button>}
    </section>
  );
}

type Grouping = "day" | "question" | "strategy";

function grouped(runs: api.Listed[], by: Grouping, speak: Tongue): [string, api.Listed[]][] {
  const name = (one: api.Listed) =>
    by === "day" ? day(one.created, speak) : by === "question" ? plain(one.question || one.run_id) : one.strategy;
  const found = new Map<string, api.Listed[]>();
  for (const one of runs) found.set(name(one), [...(found.get(name(one)) ?? []), one]);
  return [...found];
}

function CompareLink({ picked, speak }: { picked: string[]; speak: Tongue }) {
  const [a, b] = picked;
  if (!a || !b) return <span className="small">{`${speak.words.compare}: ${speak.words.pickTwo}`}</span>;
  return (
    <a className="button main" href={link("compare", a, b)}>
      {speak.words.compare}
    </a>
  );
}

type Given = { one: api.Listed; picked: boolean; toggle: (id: string) => void; speak: Tongue };

function Row({ one, picked, toggle, speak }: Given) {
  const { words } = speak;
  const told = plain(one.question || one.run_id);
  return (
    <li>
      <input
        type="checkbox"
        checked={picked}
        onChange={() => toggle(one.run_id)}
        aria-label={`${words.pick}: ${told} (${one.strategy})`}
      />
      <div>
        <a href={link("runs", one.run_id)} dir="auto">
          {told}
        </a>
        <span className="small">
          <span className={`badge ${one.status}`}>{speak.state(one.status)}</span>
          {` ${one.strategy} · ${moment(one.created, speak)} · `}
          <a href={link("runs", one.run_id, "replay")}>{words.replay}</a>
        </span>
      </div>
    </li>
  );
}
