import { useState } from "react";
import { columns, round, said, type Node } from "../log";
import { link } from "../place";
import { plain } from "../plain";
import { Note } from "./Note";
import type { Tongue } from "../words";

const BOX = { wide: 170, high: 50, gapX: 56, gapY: 18 };

type At = { x: number; y: number };

// KAG-Thinker's logical form: what waits for what, and what each step came to.
export function Dag({ nodes, speak }: { nodes: Node[]; speak: Tongue }) {
  const { words } = speak;
  const [open, choose] = useState<number | null>(null);
  const place = placed(nodes);
  const wide = Math.max(...[...place.values()].map((p) => p.x)) + BOX.wide + 4;
  const high = Math.max(...[...place.values()].map((p) => p.y)) + BOX.high + 4;
  const shown = nodes.find((one) => one.n === open);
  return (
    <section aria-label={speak.label(words.forms)}>
      <h3>{words.forms}</h3>
      <p className="small">{words.formsMean}</p>
      <div className="dag" tabIndex={0} role="group" aria-label={words.forms}>
        <svg viewBox={`0 0 ${wide} ${high}`} width={wide} height={high}>
          {nodes.flatMap((one) => one.needs.map((m) => <Edge key={`${m}-${one.n}`} from={place.get(m)} to={place.get(one.n)} />))}
          {nodes.map((one) => (
            <Box key={one.n} one={one} at={place.get(one.n)} speak={speak} choose={choose} open={open === one.n} />
          ))}
        </svg>
      </div>
      {shown && <Details one={shown} speak={speak} />}
    </section>
  );
}

function placed(nodes: Node[]): Map<number, At> {
  const column = columns(nodes);
  const rows = new Map<number, number>();
  const place = new Map<number, At>();
  for (const one of nodes) {
    const c = column.get(one.n) ?? 0;
    const r = rows.get(c) ?? 0;
    rows.set(c, r + 1);
    place.set(one.n, { x: c * (BOX.wide + BOX.gapX) + 4, y: r * (BOX.high + BOX.gapY) + 4 });
  }
  return place;
}

function Edge({ from, to }: { from: At | undefined; to: At | undefined }) {
  if (!from || !to) return null;
  const y = BOX.high / 2;
  const [a, b] = [from.x + BOX.wide, to.x];
  const half = (a + b) / 2;
  return <path d={`M${a},${from.y + y} C${half},${from.y + y} ${half},${to.y + y} ${b},${to.y + y}`} />;
}

type Boxed = { one: Node; at: At | undefined; speak: Tongue; choose: (n: number) => void; open: boolean };

function Box({ one, at, speak, choose, open }: Boxed) {
  const kind = one.own ? "own" : one.status;
  const state = one.own ? speak.words.own : speak.state(one.status);
  const pressed = (event: { key: string; preventDefault: () => void }) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(one.n);
  };
  return (
    <g
      className={`node ${kind}`}
      transform={`translate(${at?.x ?? 0},${at?.y ?? 0})`}
      role="button"
      tabIndex={0}
      aria-expanded={open}
      aria-description={plain(one.step)}
      onClick={() => choose(one.n)}
      onKeyDown={pressed}
    >
      <rect width={BOX.wide} height={BOX.high} rx={8} />
      <text x={10} y={21}>{`${one.n} ${speak.state(one.fn)} `}</text>
      <text x={10} y={39} className="small">
        {state}
      </text>
    </g>
  );
}

function Details({ one, speak }: { one: Node; speak: Tongue }) {
  const { words } = speak;
  return (
    <div className="shown" role="status" aria-label={words.details}>
      <p>
        <strong>{`${one.n} ${speak.state(one.fn)}`}</strong> {plain(one.step)}
        {one.answer && ` → ${plain(one.answer)}`}
      </p>
      <Note text={one.note} speak={speak} />
      {one.action && <pre>{plain(one.action)}</pre>}
      {one.confidence !== null && <p className="small">{`${words.confidence} ${round(one.confidence)}`}</p>}
      {one.notes.map(({ event, note: folded }, index) => (
        <div key={index} className="small">
          <strong>{speak.event(event.type)}</strong> {plain(note(event))}
          {event.type === "math.run" && <pre>{plain(event.code)}</pre>}
          <Note text={folded} speak={speak} />
        </div>
      ))}
      {one.passages.length > 0 && (
        <p className="small">
          {`${words.basis}: `}
          {one.passages.map((id) => (
            <a key={id} href={link("passages", id)}>
              {plain(id)}{" "}
            </a>
          ))}
        </p>
      )}
    </div>
  );
}

function note(event: Node["notes"][number]["event"]): string {
  switch (event.type) {
    case "lf.boundary":
      return `${event.known ? "✓" : "✗"} ${event.answer} (p ${round(event.probability)}, τ ${event.tau})`;
    case "lf.focus":
      return `${event.turn}: ${event.enough ? "✓" : "✗"} ${event.reason}`;
    case "math.run":
      return event.error || `= ${event.value}`;
    default:
      return said(event);
  }
}
