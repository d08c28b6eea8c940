import { useCallback, useEffect, useState } from "react";
import * as api from "../api";
import { why } from "../hooks";
import { moment } from "../parts/Machinery";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

export function Runs({ speak }: { speak: Tongue }) {
  const { words } = speak;
  const [listed, setListed] = useState<api.Listed[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [wrong, setWrong] = useState("");
  const [words_, filter] = useState("");
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
  const shown = listed?.filter((one) => `${one.question} ${one.strategy}`.toLowerCase().includes(wanted));
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
          <CompareLink picked={picked} speak={speak} />
        </div>
      )}
      <ul className="runs">
        {shown?.map((one) => (
          <Row key={one.run_id} one={one} picked={picked.includes(one.run_id)} toggle={toggle} speak={speak} />
        ))}
      </ul>
      {next && <button onClick={() => more(next)}>{words.older}</button>}
    </section>
  );
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
