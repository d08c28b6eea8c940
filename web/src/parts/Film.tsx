import { useState } from "react";
import { round, type Frame, type Step, type Told } from "../log";
import { plain } from "../plain";
import { Note } from "./Note";
import type { Tongue } from "../words";

// TC-RAG's stack, step by step, with the state value against its threshold.
export function Film({ log, speak }: { log: Told; speak: Tongue }) {
  const { words } = speak;
  const [chosen, choose] = useState<number | null>(null); // null: the last, while it grows
  const at = Math.min(chosen ?? log.film.length - 1, log.film.length - 1);
  const step = log.film[at];
  if (!step) return null;
  const of = step.of === null ? "" : ` · ${words.planStep} ${step.of}`;
  const done = [speak.state(step.what), speak.state(step.label), plain(step.why)].filter(Boolean).join(": ");
  const label = `${words.step} ${at + 1}/${log.film.length}${of}: ${done}`;
  return (
    <section aria-label={speak.label(words.stack)}>
      <h3>{words.stack}</h3>
      <p className="small">{words.stackMeans}</p>
      <label>
        {label}
        {step.halted && <strong className="badge">{words.halted}</strong>}
        <input
          type="range"
          min={0}
          max={log.film.length - 1}
          value={at}
          aria-valuetext={label}
          onChange={(event) => choose(Number(event.target.value))}
        />
      </label>
      <div className="film">
        <div>
          {step.gone.length > 0 && <Frames frames={step.gone} gone name={words.taken} speak={speak} />}
          <Frames frames={step.frames} name={words.stack} speak={speak} top={step.what === "push"} />
        </div>
        <Plot log={log} at={at} choose={choose} speak={speak} />
      </div>
    </section>
  );
}

type Shown = { frames: Frame[]; name: string; speak: Tongue; gone?: boolean; top?: boolean };

function Frames({ frames, name, speak, gone = false, top = false }: Shown) {
  return (
    <ol className={gone ? "frames gone" : "frames"} reversed aria-label={name}>
      {[...frames].reverse().map((frame, index) => (
        <li key={frames.length - index} className={top && index === 0 ? "new" : ""}>
          <strong>{gone ? `${name}: ${speak.state(frame.kind)}` : speak.state(frame.kind)}</strong> <span>{plain(frame.text)}</span>
          <Note text={frame.note} speak={speak} />
        </li>
      ))}
    </ol>
  );
}

const WIDE = 420;
const HIGH = 220;
const LEFT = 64;
const LOW = 24;
const FEW = 12; // points that bear their value
const STEEP = 50; // times sigma from which a logarithmic scale tells more

type Seek = { log: Told; at: number; choose: (n: number) => void; speak: Tongue };
type Valued = { step: Step & { value: number }; index: number };

function Plot({ log, at, choose, speak }: Seek) {
  const points = log.film.map((step, index) => ({ step, index })).filter(valued);
  const { sigma, metric } = log;
  if (points.length === 0 || sigma === null) return null;
  const most = Math.max(sigma, ...points.map(({ step }) => step.value));
  const steep = most > STEEP * Math.max(sigma, 1e-9);
  const size = (value: number) => (steep ? Math.log10(1 + Math.max(0, value)) : Math.max(0, value));
  const top = size(most) * 1.1 || 1;
  const x = (index: number) => LEFT + (index / Math.max(1, log.film.length - 1)) * (WIDE - LEFT - 12);
  const y = (value: number) => HIGH - LOW - (size(value) / top) * (HIGH - LOW - 10);
  const line = points.map(({ step, index }) => `${x(index)},${y(step.value)}`).join(" ");
  const told = points.map(({ step, index }) => `${index + 1}: ${round(step.value)}`).join(", ");
  return (
    <figure>
      <svg viewBox={`0 0 ${WIDE} ${HIGH}`} role="img" aria-label={`${metric}, σ ${sigma}; ${told}`}>
        <line className="axis" x1={LEFT} x2={LEFT} y1={6} y2={HIGH - LOW} />
        <line className="axis" x1={LEFT} x2={WIDE} y1={HIGH - LOW} y2={HIGH - LOW} />
        <line className="sigma" x1={LEFT} x2={WIDE} y1={y(sigma)} y2={y(sigma)} />
        <text className="sigma" x={LEFT - 4} y={y(sigma) + 4} textAnchor="end">
          {`σ ${sigma}`}
        </text>
        <text x={LEFT - 4} y={y(most) + 4} textAnchor="end">
          {most === sigma ? "" : round(most)}
        </text>
        <text x={(LEFT + WIDE) / 2} y={HIGH - 6} textAnchor="middle">
          {speak.words.step}
        </text>
        <text x={12} y={(HIGH - LOW) / 2} textAnchor="middle" transform={`rotate(-90 12 ${(HIGH - LOW) / 2})`}>
          {speak.words.unsure}
        </text>
        <line className="now" x1={x(at)} x2={x(at)} y1={6} y2={HIGH - LOW} />
        <polyline points={line} />
        {points.map(({ step, index }) => (
          <circle
            key={step.at}
            className={index === at ? "now" : step.value < sigma ? "under" : ""}
            cx={x(index)}
            cy={y(step.value)}
            r={index === at ? 8 : 6}
            onClick={() => choose(index)}
          >
            <title>{round(step.value)}</title>
          </circle>
        ))}
        {points.length <= FEW &&
          points.map(({ step, index }) => (
            <text key={step.at} x={x(index)} y={y(step.value) - 12} textAnchor="middle">
              {round(step.value)}
            </text>
          ))}
      </svg>
      <figcaption className="small">
        {`${speak.words.plotMeans} (${metric}, ${speak.words.threshold} σ = ${sigma}${steep ? `; ${speak.words.scale}` : ""})`}
      </figcaption>
    </figure>
  );
}

function valued(one: { step: Step; index: number }): one is Valued {
  return one.step.value !== undefined && Number.isFinite(one.step.value);
}
