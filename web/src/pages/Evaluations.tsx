import { useCallback, useState } from "react";
import * as api from "../api";
import { useLoaded } from "../hooks";
import { Facts } from "../parts/Machinery";
import { SortedTable } from "../parts/SortedTable";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

export function Evaluations({ name, speak }: { name: string; speak: Tongue }) {
  const { words } = speak;
  const { found, wrong } = useLoaded(api.evaluations);
  return (
    <section aria-label={words.evaluations}>
      <h1>{words.evaluations}</h1>
      <p>
        <a href={link("scoreboard")}>{words.scoreboard}</a> <span className="small">{words.scoreboardIs}</span>
      </p>
      {wrong && <p role="alert">{wrong}</p>}
      {found?.evaluations.length === 0 && (
        <>
          <p>{words.noEvaluations}</p>
          <pre>osler eval run --tasks … --strategies … --log-dir HOME/eval/NAME</pre>
        </>
      )}
      <ul className="tabs">
        {found?.evaluations.map((one) => (
          <li key={one.name}>
            <a href={link("evaluations", one.name)} aria-current={one.name === name ? "page" : undefined}>
              {one.name}
            </a>{" "}
            <span className="small">
              {one.damaged ? plain(`${words.damaged}: ${one.damaged}`) : plain(one.tasks.join(", "))}
            </span>
          </li>
        ))}
      </ul>
      {name && <One key={name} name={name} speak={speak} />}
    </section>
  );
}

function One({ name, speak }: { name: string; speak: Tongue }) {
  const { words } = speak;
  const look = useCallback(() => api.evaluation(name), [name]);
  const { found, wrong } = useLoaded(look);
  const [chosen, choose] = useState("");
  const [cell, open] = useState<[string, string] | null>(null);
  if (wrong) return <p role="alert">{plain(wrong)}</p>;
  const measure = found?.measures.find((one) => one.name === chosen) ?? found?.measures[0];
  if (!found || !measure) return null;
  return (
    <>
      <p className="small">{words.head || found.head}</p>
      <label className="narrow">
        {words.measure}
        <select value={measure.name} onChange={(event) => choose(event.target.value)}>
          {found.measures.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
      </label>
      <Table found={found} measure={measure} open={open} speak={speak} />
      {cell && <Samples key={cell.join("\n")} name={name} cell={cell} speak={speak} />}
      <Compared found={found} speak={speak} />
      <Printed found={found} speak={speak} />
      {found.left_out.length > 0 && <h2>{words.leftOut}</h2>}
      <ul className="small">
        {found.left_out.map((line, index) => (
          <li key={index}>{plain(line)}</li>
        ))}
      </ul>
      <h2>{words.madeWith}</h2>
      <Facts facts={found.facts} />
    </>
  );
}

type Measure = api.Evaluation["measures"][number];
type Shown = {
  found: api.Evaluation;
  measure: Measure;
  open: (cell: [string, string]) => void;
  speak: Tongue;
};

function Table({ found, measure, open, speak }: Shown) {
  const { words } = speak;
  const [by, sort] = useState<string>("");
  const of = (strategy: string, task: string) =>
    found.cells.find((one) => one.strategy === strategy && one.task === task);
  const at = (strategy: string) => of(strategy, by)?.figures[measure.name]?.value ?? -Infinity;
  const rows = by ? [...found.strategies].sort((a, b) => at(b) - at(a)) : found.strategies;
  const most = Math.max(...found.cells.map((one) => one.figures[measure.name]?.high ?? 0), 1e-9);
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label={measure.title}>
      <table className="figures">
        <thead>
          <tr>
            <th scope="col">{words.strategy}</th>
            {found.tasks.map((task) => (
              <th key={task} scope="col" aria-sort={by === task ? "descending" : undefined}>
                <button
                  className="plain"
                  aria-label={`${words.sortBy} ${task}`}
                  onClick={() => sort(by === task ? "" : task)}
                >
                  {`${task}${by === task ? " ▼" : ""}`}
                </button>
              </th>
            ))}
            <th scope="col">{words.average}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((strategy) => (
            <tr key={strategy}>
              <th scope="row">{strategy}</th>
              {found.tasks.map((task) => (
                <td key={task}>
                  <Cell cell={of(strategy, task)} measure={measure} most={most} open={open} speak={speak} />
                </td>
              ))}
              <td className="mean">{mean(measure.means[strategy], measure.percent)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function mean(value: number | null | undefined, percent: boolean): string {
  if (value === null || value === undefined) return "–";
  return percent ? (100 * value).toFixed(1) : value.toPrecision(3);
}

type One = {
  cell: api.Cell | undefined;
  measure: Measure;
  most: number;
  open: Shown["open"];
  speak: Tongue;
};

function Cell({ cell, measure, most, open, speak }: One) {
  const figure = cell?.figures[measure.name];
  if (!cell) return <>–</>;
  return (
    <button className="cell" onClick={() => open([cell.strategy, cell.task])}>
      {figure ? (
        <>
          <span className="value">{shown(figure, measure.percent)}</span>
          <Bar figure={figure} most={measure.percent ? 1 : most} />
        </>
      ) : (
        <span>–</span>
      )}
      <span className="small">
        {`n ${figure?.n ?? 0} · ${cell.done}/${cell.planned}${cell.failed ? ` · ${speak.state("failed")} ${cell.failed}` : ""}`}
      </span>
    </button>
  );
}

function shown({ value, low, high }: api.Figure, percent: boolean): string {
  const told = (one: number) => (percent ? (100 * one).toFixed(1) : one.toPrecision(3));
  return `${told(value)} [${told(low)}, ${told(high)}]`;
}

function signed(change: api.Figure): string {
  return `${change.value > 0 ? "+" : ""}${shown(change, true)}`;
}

const BAR = 120;

function Bar({ figure, most }: { figure: api.Figure; most: number }) {
  const x = (value: number) => (Math.max(0, value) / most) * BAR;
  return (
    <svg className="bar" viewBox={`-4 0 ${BAR + 8} 14`} aria-hidden="true">
      <line className="axis" x1={0} x2={BAR} y1={7} y2={7} />
      <line className="interval" x1={x(figure.low)} x2={x(figure.high)} y1={7} y2={7} />
      <circle cx={x(figure.value)} cy={7} r={4} />
    </svg>
  );
}

function Samples({ name, cell, speak }: { name: string; cell: [string, string]; speak: Tongue }) {
  const { words } = speak;
  const [strategy, task] = cell;
  const look = useCallback(() => api.samples(name, strategy, task), [name, strategy, task]);
  const { found, wrong } = useLoaded(look);
  return (
    <section aria-label={words.samples}>
      <h2>{`${words.samples}: ${strategy}, ${task} (${words.failures})`}</h2>
      {wrong && <p role="alert">{plain(wrong)}</p>}
      {found?.samples.map((one) => (
        <details key={one.id} className="sample">
          <summary>
            <span className={`badge ${one.score === null ? "failed" : ""}`}>
              {one.score === null ? speak.state("failed") : one.score.toPrecision(2)}
            </span>{" "}
            {plain(one.question)}
          </summary>
          <ol className="options">
            {one.options.map((option, index) => (
              <li key={index}>{plain(option)}</li>
            ))}
          </ol>
          <Facts
            facts={[
              [words.gold, one.gold],
              [words.given, one.answer],
              [words.halt, one.why],
            ]}
          />
        </details>
      ))}
    </section>
  );
}

function Compared({ found, speak }: { found: api.Evaluation; speak: Tongue }) {
  const { words } = speak;
  if (found.compared.length === 0) return null;
  const head = [words.data, words.strategy, words.measure, words.change, "n", words.corrected, words.verdict];
  return (
    <>
      <h2>{words.compared}</h2>
      <Grid
        name={words.compared}
        head={head}
        rows={found.compared.map((one) => [
          one.task,
          `${one.first} → ${one.second}`,
          one.measure,
          signed(one.change),
          String(one.change.n),
          one.corrected.toPrecision(3),
          speak.state(one.verdict),
        ])}
      />
    </>
  );
}

function Printed({ found, speak }: { found: api.Evaluation; speak: Tongue }) {
  const { words } = speak;
  if (found.printed.length === 0) return null;
  const head = [words.data, words.strategy, words.theirs, `${words.theirs} (%)`, words.ours, words.differs];
  return (
    <>
      <h2>{words.printed}</h2>
      <Grid
        name={words.printed}
        head={head}
        rows={found.printed.map((one) => [
          one.task,
          one.strategy,
          one.place,
          one.theirs.toFixed(2),
          shown(one.ours, true),
          one.differs,
        ])}
      />
    </>
  );
}

function Grid({ name, head, rows }: { name: string; head: string[]; rows: string[][] }) {
  return <SortedTable name={name} head={head} rows={rows.map((row) => ({ cells: row.map((text) => ({ text })) }))} />;
}
