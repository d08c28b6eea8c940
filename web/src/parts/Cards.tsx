import { useState } from "react";
import type { Evidence, Locator, Passage, Run } from "../api";
import { marked, plain } from "../plain";
import type { Tongue } from "../words";
import { leading, type Lit } from "./Answer";
import { Studies } from "./Studies";

type Given = { run: Run; speak: Tongue; lit: Lit; shared?: Set<string> };

export function Cards({ run, speak, lit, shared }: Given) {
  const { words } = speak;
  const [only, choose] = useState("");
  const sources = [...new Set(run.evidence.map((one) => one.passage.source))];
  const shown = sources.filter((source) => !only || source === only);
  const count = (source: string) => run.evidence.filter((one) => one.passage.source === source).length;
  return (
    <section className="cards" aria-label={speak.label(words.evidence)}>
      <h2>{words.evidence}</h2>
      {sources.length === 0 && <p>{run.usage?.searches === 0 ? words.notSearched : words.nothing}</p>}
      {sources.length > 1 && (
        <p className="tabs">
          {["", ...sources].map((source) => (
            <button key={source} aria-pressed={only === source} onClick={() => choose(source)}>
              {`${source ? speak.source(source) : words.all} ${source ? count(source) : run.evidence.length}`}
            </button>
          ))}
        </p>
      )}
      {run.changed.length > 0 && <p role="alert">{`${words.changed}: ${run.changed.map((one) => run.evidence.find((each) => each.number === one.number)?.mark).join(" ")}`}</p>}
      {shown.map((source) => (
        <div key={source} className="source">
          <h3>{speak.source(source)}</h3>
          {documents(run.evidence.filter((one) => one.passage.source === source)).map((quotes) => (
            <Document key={quotes[0].number} quotes={quotes} run={run} speak={speak} lit={lit} shared={shared} />
          ))}
        </div>
      ))}
      {run.evidence.length > 0 && <Studies run={run.run_id} speak={speak} />}
    </section>
  );
}

type Quotes = [Evidence, ...Evidence[]];

// What was quoted from one document stands together.
function documents(evidence: Evidence[]): Quotes[] {
  const found = new Map<string, Quotes>();
  for (const one of evidence) {
    const id = one.passage.id.split("#")[0] ?? "";
    const known = found.get(id);
    if (known) known.push(one);
    else found.set(id, [one]);
  }
  return [...found.values()];
}

function Document({ quotes, ...given }: Given & { quotes: Quotes }) {
  const { passage } = quotes[0];
  const { kind, url, notice } = passage.locator;
  const { words } = given.speak;
  const { age, superseded } = quotes[0];
  const aged = [age !== null && given.speak.age(age), superseded && words.superseded];
  const facts = [byline(passage.locator, given.speak), ...aged, given.speak.kind(kind), passage.illustrative && words.illustrative, passage.licence];
  return (
    <article className="document">
      <h4 dir="auto">{plain(passage.title || passage.id)}</h4>
      {notice && <p role="alert">{plain(notice)}</p>}
      <p className="small">
        {plain(facts.filter(Boolean).join(" · "))} <Outside url={url} />
      </p>
      {quotes.map((one) => (
        <Card key={one.number} one={one} {...given} />
      ))}
    </article>
  );
}

// An address that the document gave, where it is one of the web.
export function Outside({ url }: { url: string }) {
  if (!/^https?:\/\//i.test(url)) return null;
  return (
    <a href={url} target="_blank" rel="noreferrer noopener">
      {plain(url.replace(/^https?:\/\//i, "").slice(0, 60))}
    </a>
  );
}

function Card({ one, run, speak, lit, shared }: Given & { one: Evidence }) {
  const { words } = speak;
  const lead = leading(run) === one.number;
  const times = run.answer?.statements.filter((said) => said.cites.includes(one.number)).length ?? 0;
  const found = one.query && one.query !== run.question && `${words.foundBy} “${plain(one.query)}”`;
  const now = run.changed.find((each) => each.number === one.number);
  return (
    <button
      id={`card-${one.number}`}
      className={lit.lit === one.number ? "card lit" : "card"}
      onClick={() => lit.open(one.number)}
      onMouseEnter={() => lit.light(one.number)}
      onMouseLeave={() => lit.light(null)}
    >
      <span>
        <strong className="number">{one.mark}</strong> <span className="small">{place(one.passage, speak)}</span>
      </span>
      {lead ? <span className="small">{words.quotedAbove}</span> : <InContext one={one} all={run.evidence} />}
      <span className="small">
        {now && <span className="badge failed">{plain(now.notice) || (now.state === "gone" ? words.goneSince : words.changedSince)}</span>}
        {times > 1 && <span className="badge">{`${words.cited} ×${times}`}</span>}
        {shared?.has(one.passage.id) && <span className="badge both">{words.both}</span>}
        {found}
      </span>
    </button>
  );
}

const AROUND = 160; // letters before and after a quote

// The quoted words, marked among those around them; what another quote of the passage shows is left to it.
function InContext({ one, all }: { one: Evidence; all: Evidence[] }) {
  const letters = [...one.passage.text];
  const [from, to] = one.quote_span;
  const spans = all.filter((each) => each.passage.id === one.passage.id).map((each) => each.quote_span);
  const earlier = spans.map(([, end]) => end).filter((end) => end <= from);
  const later = spans.map(([start]) => start - AROUND).filter((start) => start + AROUND >= to);
  const start = Math.max(0, from - AROUND, ...earlier);
  const end = Math.min(letters.length, to + AROUND, ...later.map((start) => Math.max(to, start)));
  const [before, quote, after] = marked(letters.slice(start, end).join(""), from - start, to - start);
  return (
    <span className="context" dir="auto" lang={one.passage.language}>
      {start > 0 ? `…${before.replace(/^\S*\s/, " ")}` : before}
      <mark className="quote">{quote}</mark>
      {end < letters.length ? `${after.replace(/\s\S*$/, " ")}…` : after}
    </span>
  );
}

// As citations name a work: "Smith JA, Lee K et al. · 2021 · Lancet".
function byline({ authors, year, date, journal }: Locator, { zh }: Tongue): string {
  const named = authors.slice(0, 2).join(", ") + (authors.length > 2 ? (zh ? "等" : " et al.") : "");
  return [named, date || year, journal].filter(Boolean).join(" · ");
}

// Where in its document a passage stands.
function place(passage: Passage, speak: Tongue): string {
  const { section, page } = passage.locator;
  const at = page && (speak.zh ? `${speak.words.page}${page}页` : `${speak.words.page} ${page}`);
  return plain([section, at].filter(Boolean).join(" · "));
}

export function about(passage: Passage, speak: Tongue): string {
  const { kind, notice } = passage.locator;
  const parts = [notice, byline(passage.locator, speak), place(passage, speak), speak.kind(kind), passage.licence, passage.illustrative && speak.words.illustrative];
  return plain(parts.filter(Boolean).join(" · "));
}
