import { useCallback, useState } from "react";
import { studies, type Study } from "../api";
import { useLoaded } from "../hooks";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";
import { SortedTable, type Row } from "./SortedTable";

const COLUMNS = ["title", "year", "design", "n", "measure", "value", "low", "high", "unit", "hints"] as const;

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
  if (wrong) return <p role="alert">{plain(wrong)}</p>;
  const stated = found?.rows.filter((one) => one.n || one.value || (one.design && one.design !== one.passage.split(":")[0])) ?? [];
  if (stated.length === 0) return <p>{found && words.noStudies}</p>;
  return (
    <>
      <p className="small">{words.studiesAre}</p>
      <SortedTable name={words.studies} head={COLUMNS.map(speak.column)} rows={stated.map(row)} />
    </>
  );
}

function row(one: Study): Row {
  const cells = COLUMNS.map((by) => ({ text: String(one[by] ?? "") }));
  const title = { text: one.title || one.passage, href: link("passages", one.passage) };
  return { cells: [title, ...cells.slice(1)], title: one.quote };
}
