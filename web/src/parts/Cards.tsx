import { useState } from "react";
import type { Evidence, Passage, Run } from "../api";
import { plain } from "../plain";
import type { Tongue } from "../words";
import type { Lit } from "./Answer";

type Given = { run: Run; speak: Tongue; lit: Lit; shared?: Set<string> };

export function Cards({ run, speak, lit, shared }: Given) {
  const { words } = speak;
  const [only, choose] = useState("");
  const sources = [...new Set(run.evidence.map((one) => one.passage.source))];
  const shown = sources.filter((source) => !only || source === only);
  const count = (source: string) => run.evidence.filter((one) => one.passage.source === source).length;
  return (
    <section className="cards" aria-label={words.evidence}>
      <h2>{words.evidence}</h2>
      {sources.length === 0 && <p>{words.nothing}</p>}
      {sources.length > 1 && (
        <p className="tabs">
          {["", ...sources].map((source) => (
            <button key={source} aria-pressed={only === source} onClick={() => choose(source)}>
              {`${source ? speak.source(source) : words.all} ${source ? count(source) : run.evidence.length}`}
            </button>
          ))}
        </p>
      )}
      {shown.map((source) => (
        <div key={source} className="source">
          <h3>{speak.source(source)}</h3>
          {run.evidence
            .filter((one) => one.passage.source === source)
            .map((one) => (
              <Card key={one.number} one={one} run={run} speak={speak} lit={lit} shared={shared} />
            ))}
        </div>
      ))}
    </section>
  );
}

function Card({ one, run, speak, lit, shared }: Given & { one: Evidence }) {
  const { words } = speak;
  const times = run.answer?.statements.filter((said) => said.cites.includes(one.number)).length ?? 0;
  const found = `${words.foundBy} “${plain(one.query)}” · ${words.rank} ${one.rank}`;
  return (
    <button
      id={`card-${one.number}`}
      className={lit.lit === one.number ? "card lit" : "card"}
      onClick={() => lit.open(one.number)}
      onMouseEnter={() => lit.light(one.number)}
      onMouseLeave={() => lit.light(null)}
    >
      <strong>
        <span className="number">{`[${one.number}]`}</span> {plain(one.passage.title || one.passage.id)}
      </strong>
      <span className="quote">{plain(one.quote)}</span>
      <span className="small">{about(one.passage, speak)}</span>
      <span className="small">
        {times > 0 && <span className="badge">{`${words.cited} ×${times}`}</span>}
        {shared?.has(one.passage.id) && <span className="badge both">{words.both}</span>}
        {one.query && found}
      </span>
    </button>
  );
}

export function about(passage: Passage, speak: Tongue): string {
  const { words } = speak;
  const { section, page, year, kind } = passage.locator;
  const at = page && (speak.zh ? `${words.page}${page}页` : `${words.page} ${page}`);
  const parts = [section, at, year, kind, passage.licence, passage.illustrative && words.illustrative];
  return plain(parts.filter(Boolean).join(" · "));
}
