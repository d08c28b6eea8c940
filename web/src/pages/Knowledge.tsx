import { type FormEvent, useCallback, useState } from "react";
import * as api from "../api";
import { useLoaded } from "../hooks";
import { about } from "../parts/Cards";
import { DATE, bound } from "../parts/Filter";
import { Uploads } from "../parts/Uploads";
import { LabelForm } from "./Labels";
import { asking, link } from "../place";
import { highlighted, plain } from "../plain";
import type { Tongue } from "../words";

export function Knowledge({ asked, speak }: { asked: URLSearchParams; speak: Tongue }) {
  const { words } = speak;
  const [changes, change] = useState(0); // of the texts, by this page
  const counted = useCallback(() => api.sources(), [changes]);
  const known = useLoaded(counted);
  const kb = useLoaded(api.kb);
  return (
    <section aria-label={words.knowledge}>
      <h1>{words.knowledge}</h1>
      {(known.wrong || kb.wrong) && <p role="alert">{known.wrong || kb.wrong}</p>}
      {kb.found && !kb.found.built && <p className="note">{words.notBuilt}</p>}
      <Form key={asked.toString()} asked={asked} sources={known.found?.sources ?? []} speak={speak} />
      {asked.get("q") && <Hits key={`hits ${asked}`} asked={asked} speak={speak} />}
      <Uploads changed={() => change((times) => times + 1)} speak={speak} />
      {kb.found?.graph && (
        <details className="choices">
          <summary>{words.inGraph}</summary>
          <ConceptForm speak={speak} />
        </details>
      )}
      {known.found?.sources.some(({ source }) => source === "label") && (
        <details className="choices">
          <summary>{words.labels}</summary>
          <LabelForm drugs={["", ""]} speak={speak} />
        </details>
      )}
      <Sources sources={known.found?.sources ?? []} kb={kb.found} speak={speak} />
    </section>
  );
}

type Given = { asked: URLSearchParams; sources: api.Source[]; speak: Tongue };

function Form({ asked, sources, speak }: Given) {
  const { words } = speak;
  const [value, put] = useState(() => Object.fromEntries(asked));
  const field = (name: string) => ({
    value: value[name] ?? "",
    onChange: (event: { target: { value: string } }) => put({ ...value, [name]: event.target.value }),
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    window.location.hash = asking("knowledge", value);
  };
  return (
    <form className="sheet" role="search" onSubmit={send}>
      <label className="big">
        {words.searchFor}
        <input type="search" required maxLength={2000} {...field("q")} />
      </label>
      <div className="row tools">
        <label>
          {words.source}
          <select {...field("source")}>
            <option value="">{words.anySource}</option>
            {sources.map(({ source }) => (
              <option key={source} value={source}>
                {speak.source(source)}
              </option>
            ))}
          </select>
        </label>
        <label>
          {words.language2}
          <select {...field("language")}>
            <option value="">{words.anyLanguage}</option>
            <option value="en">English</option>
            <option value="zh">中文</option>
          </select>
        </label>
        <label>
          {words.from}
          <input pattern={DATE} placeholder="2015" {...field("from")} />
        </label>
        <label>
          {words.to}
          <input pattern={DATE} placeholder="2024-06" {...field("to")} />
        </label>
        <button className="main">{words.search}</button>
      </div>
    </form>
  );
}

const K = 10;

function Hits({ asked, speak }: { asked: URLSearchParams; speak: Tongue }) {
  const { words } = speak;
  const text = asked.toString();
  const look = useCallback(() => {
    const given = new URLSearchParams(text);
    const [source, language] = [given.get("source"), given.get("language")];
    const [from, to] = [given.get("from"), given.get("to")];
    return api.search({
      query: given.get("q"),
      k: K,
      ...(source ? { sources: [source] } : {}),
      ...(language ? { languages: [language] } : {}),
      ...(from ? { since: bound(from) } : {}),
      ...(to ? { until: bound(to) } : {}),
    });
  }, [text]);
  const { found, wrong } = useLoaded(look);
  return (
    <section aria-label={words.passages} aria-live="polite">
      {wrong && <p role="alert">{plain(wrong)}</p>}
      {found?.hits.length === 0 && <p>{words.noHits}</p>}
      <ol className="hits">
        {found?.hits.map(({ passage }) => (
          <li key={passage.id}>
            <a href={link("passages", passage.id)}>{plain(passage.title || passage.id)}</a>
            <span className="small">{` ${speak.source(passage.source)} · ${about(passage, speak)}`}</span>
            <p className="excerpt" dir="auto">
              <Highlighted text={passage.text} query={asked.get("q") ?? ""} />
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Highlighted({ text, query }: { text: string; query: string }) {
  return <>{highlighted(text, query).map(([piece, hit], at) => (hit ? <mark key={at}>{piece}</mark> : piece))}</>;
}

export function ConceptForm({ speak, term = "" }: { speak: Tongue; term?: string }) {
  const { words } = speak;
  const [value, put] = useState(term);
  const send = (event: FormEvent) => {
    event.preventDefault();
    window.location.hash = asking("concepts", { term: value.trim() });
  };
  return (
    <form className="row tools sheet" onSubmit={send}>
      <label>
        {words.conceptFor}
        <input required maxLength={500} value={value} onChange={(event) => put(event.target.value)} />
      </label>
      <button>{words.concept}</button>
    </form>
  );
}

type Held = { sources: api.Source[]; kb: api.Kb | null; speak: Tongue };

function Sources({ sources, kb, speak }: Held) {
  const { words } = speak;
  if (sources.length === 0) return null;
  return (
    <>
      <div className="scroll" tabIndex={0} role="group" aria-label={words.source}>
        <table>
          <thead>
            <tr>
              <th scope="col">{words.source}</th>
              <th scope="col">{words.documents}</th>
              <th scope="col">{words.passages}</th>
              <th scope="col">{words.licence}</th>
            </tr>
          </thead>
          <tbody>
            {sources.map((one) => (
              <tr key={one.source}>
                <th scope="row">{speak.source(one.source)}</th>
                <td className="n">{one.documents.toLocaleString()}</td>
                <td className="n">{one.passages.toLocaleString()}</td>
                <td>
                  {plain(one.licences.join(", "))}{" "}
                  <span className="small">
                    {one.illustrative > 0 && words.illustrative}
                    {one.retracted > 0 && ` ${words.retracted}: ${one.retracted}`}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {kb && <p className="small">{`${words.snapshot} ${kb.snapshot} · ${kb.encoder}`}</p>}
    </>
  );
}
