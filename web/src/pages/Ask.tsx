import { useRef, useState } from "react";
import * as api from "../api";
import { QUESTION, sendOnEnter, useDraft, useLoaded, why } from "../hooks";
import { Begun, remember } from "../parts/Begun";
import { DangerNotice } from "../parts/Danger";
import { Attach } from "../parts/Drop";
import { chosenFilters, Filter, type Filters } from "../parts/Filter";
import { Dropped } from "../parts/Machinery";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

export function Ask({ about, speak }: { about: api.About; speak: Tongue }) {
  const { words } = speak;
  const field = useRef<HTMLTextAreaElement>(null);
  const [question, setQuestion] = useDraft(QUESTION);
  const [begun, show] = useState(false);
  const [options, setOptions] = useState("");
  const [strategy, setStrategy] = useState("");
  const [sources, setSources] = useState<string[]>([]);
  const [filter, setFilter] = useState<Filters>({});
  const [plan, setPlan] = useState<api.Planned | null>(null);
  const [busy, work] = useState(false);
  const [wrong, setWrong] = useState("");
  const [danger, warn] = useState<api.Danger | null>(null); // of a question that was turned away
  const asked = {
    question,
    options: options.split("\n").map((one) => one.trim()).filter(Boolean),
    ...(sources.length ? { sources } : {}),
  };
  const through = chosenFilters(filter);
  const doing = async (made: () => Promise<void>) => {
    setWrong("");
    work(true);
    await made().catch((error) => {
      setWrong(why(error));
      warn(error instanceof api.Refusal ? error.danger : null);
    });
    work(false);
  };
  const begin = async (more: object) => {
    show(true); // at once: the server's reply may take its time
    await doing(async () => {
      const { run_id } = await api.start({ ...asked, ...through, ...more });
      remember(run_id, question);
      setQuestion("");
      window.location.hash = link("runs", run_id);
    });
    show(false);
  };
  const propose = () => doing(async () => setPlan(await api.plan(asked)));
  const change = (next: string) => (setQuestion(next), setPlan(null), warn(null));
  if (begun) return <Begun question={question} speak={speak} />;
  return (
    <form
      className="ask"
      onSubmit={(event) => {
        event.preventDefault();
        void begin(strategy ? { strategy } : {});
      }}
    >
      <h1 className="unseen">{words.ask}</h1>
      <DangerNotice danger={plan?.danger ?? danger} />
      <div className="sheet">
        <label className="big">
          {words.question}
          <textarea ref={field} required autoFocus rows={3} value={question} onKeyDown={sendOnEnter} onChange={(e) => change(e.target.value)} />
        </label>
        <details className="choices">
          <summary>{words.choices}</summary>
          <label>
            {words.options}
            <textarea rows={3} value={options} onChange={(event) => setOptions(event.target.value)} />
          </label>
          <label>
            {words.strategy}
            <select value={strategy} onChange={(e) => setStrategy(e.target.value)}>
              <option value="">{about.strategy ? `${about.strategy} (${words.usual})` : words.usual}</option>
              {about.strategies.filter((name) => name !== about.strategy).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <Where chosen={sources} choose={setSources} speak={speak} />
        </details>
        <Filter chosen={filter} choose={setFilter} speak={speak} />
        <p className="row">
          <button className="main" disabled={busy}>
            {words.ask}
          </button>
          <button type="button" disabled={busy || !question.trim()} onClick={() => void propose()}>
            {busy ? words.planning : words.plan}
          </button>
        </p>
        <p className="small">
          {words.enterSends} {about.uploads.length > 0 && <Attach words={words} />}
        </p>
        {wrong && (
          <p role="alert">
            {plain(wrong)} {question && words.questionKept}
          </p>
        )}
      </div>
      {plan && (
        <Plan plan={plan} change={setPlan} speak={speak} run={() => void begin({ plan: plan.queries })} />
      )}
      {!question && (
        <Examples
          speak={speak}
          take={(one) => (change(one.question), setOptions(one.options.join("\n")), field.current?.focus())}
        />
      )}
    </form>
  );
}

type Chosen = { chosen: string[]; choose: (sources: string[]) => void; speak: Tongue };

function Where({ chosen, choose, speak }: Chosen) {
  const { found } = useLoaded(api.sources);
  if (!found?.sources.length) return null;
  const toggle = (name: string) =>
    choose(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return (
    <fieldset className="boxes">
      <legend>{speak.words.where}</legend>
      {found.sources.map(({ source, passages }) => (
        <label key={source} className="box">
          <input type="checkbox" checked={chosen.includes(source)} onChange={() => toggle(source)} />
          {`${speak.source(source)} (${passages.toLocaleString()})`}
        </label>
      ))}
    </fieldset>
  );
}

function Examples({ take, speak }: { take: (one: api.Example) => void; speak: Tongue }) {
  const { found } = useLoaded(api.examples);
  const mine = found?.examples.filter((one) => one.language === (speak.zh ? "zh" : "en")) ?? [];
  if (mine.length === 0) return null;
  return (
    <section aria-label={speak.words.examples} className="examples">
      <h2>{speak.words.examples}</h2>
      {mine.map((one) => (
        <button key={one.question} type="button" className="example" onClick={() => take(one)}>
          {plain(one.question)}
        </button>
      ))}
    </section>
  );
}

type Given = { plan: api.Planned; change: (plan: api.Planned) => void; run: () => void; speak: Tongue };

function Plan({ plan, change, run, speak }: Given) {
  const { words } = speak;
  const put = (queries: api.Query[]) => change({ ...plan, queries });
  const edit = (at: number, more: Partial<api.Query>) =>
    put(plan.queries.map((one, n) => (n === at ? { ...one, ...more } : one)));
  const another = () => put([...plan.queries, { source: plan.sources[0] ?? "", query: "" }]);
  const whole = plan.queries.every((one) => one.query.trim());
  return (
    <fieldset className="sheet plan">
      <legend>{words.sources}</legend>
      {plan.queries.length === 0 && <p>{words.emptyPlan}</p>}
      {plan.queries.map((one, index) => (
        <p key={index} className="row query">
          <select
            aria-label={`${words.source} ${index + 1}`}
            value={one.source}
            onChange={(event) => edit(index, { source: event.target.value })}
          >
            {[...new Set([...plan.sources, one.source])].map((name) => (
              <option key={name} value={name}>
                {speak.source(name)}
              </option>
            ))}
          </select>
          <input
            aria-label={speak.source(one.source)}
            value={one.query}
            onChange={(event) => edit(index, { query: event.target.value })}
          />
          <button type="button" onClick={() => put(plan.queries.filter((_, n) => n !== index))}>
            {words.without}
          </button>
        </p>
      ))}
      <Dropped lines={plan.dropped} speak={speak} />
      <p className="row">
        <button type="button" className="main" disabled={!whole} onClick={run}>
          {words.run}
        </button>
        <button type="button" disabled={plan.sources.length === 0} onClick={another}>
          {words.more}
        </button>
      </p>
    </fieldset>
  );
}
