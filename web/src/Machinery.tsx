import { useState } from "react";
import { columns, round, type Node, type Step, type Told } from "./log";
import type { Words } from "./words";

export function Machinery({ told, words }: { told: Told; words: Words }) {
  return (
    <details className="machinery">
      <summary>{words.machinery}</summary>
      {told.plan.length > 0 && (
        <>
          <h3>{words.sources}</h3>
          <ul>
            {told.plan.map((one, index) => (
              <li key={index}>{`${one.source}: ${one.query}`}</li>
            ))}
          </ul>
        </>
      )}
      {told.film.length > 0 && <Film told={told} words={words} />}
      {told.nodes.length > 0 && <Dag nodes={told.nodes} words={words} />}
      <h3>{words.timeline}</h3>
      <ol className="timeline">
        {told.timeline.map((one) => (
          <li key={one.at}>
            <code>{one.type}</code> <span>{one.said.slice(0, 500)}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function Film({ told, words }: { told: Told; words: Words }) {
  const [chosen, choose] = useState<number | null>(null); // null: the last, while it grows
  const at = Math.min(chosen ?? told.film.length - 1, told.film.length - 1);
  const step = told.film[at];
  if (!step) return null;
  return (
    <>
      <h3>{words.stack}</h3>
      <label>
        {`${words.step} ${at + 1}/${told.film.length}: ${step.what} ${step.label}`}
        <input
          type="range"
          min={0}
          max={told.film.length - 1}
          value={at}
          onChange={(event) => choose(Number(event.target.value))}
        />
      </label>
      <div className="film">
        <ol className="frames" reversed>
          {[...step.frames].reverse().map((frame, index) => (
            <li key={step.frames.length - index}>
              <strong>{frame.kind}</strong> <span>{frame.text}</span>
            </li>
          ))}
        </ol>
        <Plot told={told} at={at} choose={choose} words={words} />
      </div>
    </>
  );
}

const WIDE = 320;
const HIGH = 160;

type Seek = { told: Told; at: number; choose: (n: number) => void; words: Words };

function Plot({ told, at, choose, words }: Seek) {
  const points = told.film.map((step, index) => ({ step, index })).filter(valued);
  if (points.length === 0 || told.sigma === null) return null;
  const top = Math.max(told.sigma, ...points.map(({ step }) => step.value)) * 1.1 || 1;
  const x = (index: number) => 20 + (index / Math.max(1, told.film.length - 1)) * (WIDE - 40);
  const y = (value: number) => HIGH - 10 - (Math.max(0, value) / top) * (HIGH - 20);
  const line = points.map(({ step, index }) => `${x(index)},${y(step.value)}`).join(" ");
  return (
    <figure>
      <svg viewBox={`0 0 ${WIDE} ${HIGH}`} role="img" aria-label={`${told.metric}, σ ${told.sigma}`}>
        <line className="sigma" x1={0} x2={WIDE} y1={y(told.sigma)} y2={y(told.sigma)} />
        <polyline points={line} />
        {points.map(({ step, index }) => (
          <circle
            key={step.at}
            className={index === at ? "now" : ""}
            cx={x(index)}
            cy={y(step.value)}
            r={index === at ? 7 : 5}
            onClick={() => choose(index)}
          >
            <title>{round(step.value)}</title>
          </circle>
        ))}
      </svg>
      <figcaption>{`${told.metric}; ${words.threshold} σ = ${told.sigma}`}</figcaption>
    </figure>
  );
}

function valued(one: { step: Step; index: number }): one is {
  step: Step & { value: number };
  index: number;
} {
  return one.step.value !== undefined && Number.isFinite(one.step.value);
}

const BOX = { wide: 150, high: 46, gapX: 50, gapY: 16 };

function Dag({ nodes, words }: { nodes: Node[]; words: Words }) {
  const [open, choose] = useState<number | null>(null);
  const column = columns(nodes);
  const rows = new Map<number, number>();
  const place = new Map<number, { x: number; y: number }>();
  for (const one of nodes) {
    const c = column.get(one.n) ?? 0;
    const r = rows.get(c) ?? 0;
    rows.set(c, r + 1);
    place.set(one.n, { x: c * (BOX.wide + BOX.gapX) + 4, y: r * (BOX.high + BOX.gapY) + 4 });
  }
  const wide = Math.max(...[...place.values()].map((p) => p.x)) + BOX.wide + 4;
  const high = Math.max(...[...place.values()].map((p) => p.y)) + BOX.high + 4;
  const shown = nodes.find((one) => one.n === open);
  return (
    <>
      <h3>{words.forms}</h3>
      <div className="dag">
        <svg viewBox={`0 0 ${wide} ${high}`} width={wide} height={high}>
          {nodes.flatMap((one) =>
            one.needs.map((m) => {
              const from = place.get(m);
              const to = place.get(one.n);
              if (!from || !to) return null;
              const y = BOX.high / 2;
              const d = `M${from.x + BOX.wide},${from.y + y} L${to.x},${to.y + y}`;
              return <path key={`${m}-${one.n}`} d={d} />;
            }),
          )}
          {nodes.map((one) => {
            const at = place.get(one.n) ?? { x: 0, y: 0 };
            const kind = one.own ? "own" : one.status;
            return (
              <g
                key={one.n}
                className={`node ${kind}`}
                transform={`translate(${at.x},${at.y})`}
                role="button"
                tabIndex={0}
                onClick={() => choose(one.n)}
                onKeyDown={(event) => event.key === "Enter" && choose(one.n)}
              >
                <rect width={BOX.wide} height={BOX.high} rx={6} />
                <text x={8} y={19}>{`${one.n} ${one.fn}`}</text>
                <text x={8} y={36} className="small">
                  {one.own ? words.own : one.status}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
      {shown && (
        <p className="shown" role="status">
          <strong>{`${shown.n} ${shown.fn}`}</strong> {shown.step}
          {shown.answer && ` → ${shown.answer}`}
        </p>
      )}
    </>
  );
}
