import { useCallback, useState } from "react";
import { studies, type Study } from "../api";
import { useLoaded } from "../hooks";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

const COLUMNS = ["title", "year", "design", "n", "measure", "value", "low", "high", "unit", "hints"] as const;
type Column = (typeof COLUMNS)[number];
type Order = { by: Column; down: boolean };

// What the studies behind an answer state: a table of quotes, asked for when it is opened.
export function Studies({ run, speak }: { run: string; speak: Tongue }) {
  const [open, show] = useState(false);
  return (
    <details className="studies" onToggle={(event) => show(event.currentTarget.open)}>
      <summary>{speak.words.studies}</summary>
      {open && <Table run={run} speak={speak} />}
    </details>
  );
}

function Table({ run, speak }: { run: string; speak: Tongue }) {
  const { words } = speak;
  const look = useCallback(() => studies(run), [run]);
  const { found, wrong } = useLoaded(look);
  const [order, sort] = useState<Order>({ by: "title", down: false });
  if (wrong) return <p role="alert">{plain(wrong)}</p>;
  const stated = found?.rows.filter((one) => one.design || one.n || one.value) ?? [];
  if (stated.length === 0) return <p>{found && words.noStudies}</p>;
  return (
    <>
      <p className="small">{words.studiesAre}</p>
      <div className="scroll" tabIndex={0} role="group" aria-label={words.studies}>
        <table>
          <thead>
            <tr>
              {COLUMNS.map((by) => (
                <th key={by} scope="col" aria-sort={order.by === by ? (order.down ? "descending" : "ascending") : undefined}>
                  <button className="plain" onClick={() => sort({ by, down: order.by === by && !order.down })}>
                    {speak.column(by)}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted(stated, order).map((one, index) => (
              <Row key={index} one={one} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Row({ one }: { one: Study }) {
  return (
    <tr title={plain(one.quote)}>
      {COLUMNS.map((by) => (
        <td key={by}>
          {by === "title" ? <a href={link("passages", one.passage)}>{plain(one.title || one.passage)}</a> : plain(String(one[by] ?? ""))}
        </td>
      ))}
    </tr>
  );
}

// Numbers by their size, words by the alphabet; what is not stated stands last.
export function sorted(rows: Study[], { by, down }: Order): Study[] {
  const size = (text: string) => Number(text.replace(/[,\s]/g, "").replace("−", "-"));
  return [...rows].sort((first, second) => {
    const [a, b] = [String(first[by] ?? ""), String(second[by] ?? "")];
    if (!a || !b) return Number(!a) - Number(!b);
    const numbers = Number.isFinite(size(a)) && Number.isFinite(size(b));
    return (numbers ? size(a) - size(b) : a.localeCompare(b)) * (down ? -1 : 1);
  });
}
