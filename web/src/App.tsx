import { type FormEvent, useCallback, useEffect, useState } from "react";
import * as api from "./api";
import { Answer, Cards, Open } from "./Answer";
import { EMPTY, told, type Told } from "./log";
import { Machinery } from "./Machinery";
import { STATES, WORDS, type Words } from "./words";

// "#/" asks, "#/runs" lists, "#/runs/ID" shows one: a reload comes back to the same.
function place(): string {
  return window.location.hash.replace(/^#\/?/, "");
}

export function App() {
  const [at, go] = useState(place);
  const [zh, setZh] = useState(() => navigator.language.startsWith("zh"));
  const [dark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  const [about, learn] = useState({ strategies: [] as string[], strategy: "", notice: "" });
  const [locked, lock] = useState(false);
  const words = WORDS[zh ? "zh" : "en"];
  const look = useCallback(() => {
    api.strategies().then(
      (found) => (learn(found), lock(false)),
      (error) => lock(error instanceof api.Refusal && error.status === 401),
    );
  }, []);
  useEffect(look, [look]);
  useEffect(() => {
    const moved = () => go(place());
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    document.documentElement.lang = zh ? "zh" : "en";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }, [zh, dark]);
  const id = /^runs\/(.+)$/.exec(at)?.[1];
  return (
    <>
      <header>
        <strong>Osler</strong>
        <nav>
          <a href="#/">{words.ask}</a> <a href="#/runs">{words.runs}</a>
        </nav>
        <button onClick={() => setZh(!zh)}>{words.language}</button>
        <button onClick={() => setDark(!dark)} aria-label={words.theme} title={words.theme}>
          ◐
        </button>
      </header>
      <main>
        {locked && <Key words={words} done={look} />}
        {!locked && at === "" && <Ask about={about} words={words} />}
        {!locked && at === "runs" && <Runs words={words} zh={zh} />}
        {!locked && id && <Shown key={id} id={id} words={words} zh={zh} />}
      </main>
      <footer className="small">{words.notice || about.notice}</footer>
    </>
  );
}

function Key({ words, done }: { words: Words; done: () => void }) {
  const [key, setKey] = useState("");
  const send = (event: FormEvent) => {
    event.preventDefault();
    api.useKey(key.trim());
    done();
  };
  return (
    <form onSubmit={send}>
      <label>
        {words.key}
        <input type="password" value={key} onChange={(event) => setKey(event.target.value)} />
      </label>
      <button>OK</button>
    </form>
  );
}

function Ask({ about, words }: { about: { strategies: string[]; strategy: string }; words: Words }) {
  const [question, setQuestion] = useState("");
  const [options, setOptions] = useState("");
  const [strategy, setStrategy] = useState("");
  const [plan, setPlan] = useState<api.Query[] | null>(null);
  const [wrong, setWrong] = useState("");
  const asked = {
    question,
    options: options.split("\n").map((one) => one.trim()).filter(Boolean),
  };
  const doing = (work: Promise<void>) => {
    setWrong("");
    work.catch((error) => setWrong(String(error.message ?? error)));
  };
  const begin = async (more: object) => {
    window.location.hash = `#/runs/${(await api.start({ ...asked, ...more })).run_id}`;
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        doing(begin(strategy ? { strategy } : {}));
      }}
    >
      <label>
        {words.question}
        <textarea
          required
          autoFocus
          rows={4}
          value={question}
          onChange={(event) => (setQuestion(event.target.value), setPlan(null))}
        />
      </label>
      <label>
        {words.options}
        <textarea rows={2} value={options} onChange={(event) => setOptions(event.target.value)} />
      </label>
      <label>
        {words.strategy}
        <select value={strategy || about.strategy} onChange={(e) => setStrategy(e.target.value)}>
          {about.strategies.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <p className="row">
        <button className="main">{words.ask}</button>
        <button
          type="button"
          disabled={!question.trim()}
          onClick={() => doing(api.plan(asked).then((made) => setPlan(made.queries)))}
        >
          {words.plan}
        </button>
      </p>
      {wrong && <p role="alert">{wrong}</p>}
      {plan && (
        <Plan plan={plan} change={setPlan} words={words} run={() => doing(begin({ plan }))} />
      )}
    </form>
  );
}

type Planned = {
  plan: api.Query[];
  change: (plan: api.Query[]) => void;
  run: () => void;
  words: Words;
};

function Plan({ plan, change, run, words }: Planned) {
  return (
    <fieldset>
      <legend>{words.sources}</legend>
      {plan.map((one, index) => (
        <p key={index} className="row">
          <label>
            {one.source}
            <input
              value={one.query}
              onChange={(event) =>
                change(plan.map((p, n) => (n === index ? { ...p, query: event.target.value } : p)))
              }
            />
          </label>
          <button type="button" onClick={() => change(plan.filter((_, n) => n !== index))}>
            {words.without}
          </button>
        </p>
      ))}
      <button type="button" className="main" onClick={run}>
        {words.run}
      </button>
    </fieldset>
  );
}

function Runs({ words, zh }: { words: Words; zh: boolean }) {
  const [listed, setListed] = useState<api.Listed[] | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    api.runs().then(
      (found) => setListed(found.runs),
      (error) => setWrong(error.message),
    );
  }, []);
  return (
    <section aria-label={words.runs}>
      <h2>{words.runs}</h2>
      {wrong && <p role="alert">{wrong}</p>}
      {listed?.length === 0 && <p>{words.none}</p>}
      <ul className="runs">
        {listed?.map((one) => (
          <li key={one.run_id}>
            <a href={`#/runs/${encodeURIComponent(one.run_id)}`}>{one.question || one.run_id}</a>
            <span className="small">{` ${one.strategy} · ${zh ? STATES[one.status] : one.status} · ${one.created}`}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Shown({ id, words, zh }: { id: string; words: Words; zh: boolean }) {
  const [log, setLog] = useState<Told>(EMPTY);
  const [run, setRun] = useState<api.Run | null>(null);
  const [opened, open] = useState<number | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const look = () => api.run(decodeURIComponent(id)).then((found) => !stop.signal.aborted && setRun(found));
    const watch = async () => {
      await look();
      const hear: Parameters<typeof api.follow>[1] = (at, event) =>
        setLog((before) => told(before, at, event));
      await api.follow(decodeURIComponent(id), hear, stop.signal);
      await look();
    };
    watch().catch((error) => !stop.signal.aborted && setWrong(error.message));
    return () => stop.abort();
  }, [id]);
  const going = run !== null && (run.status === "queued" || run.status === "running");
  const chosen = run?.evidence.find((one) => one.number === opened);
  return (
    <>
      {wrong && <p role="alert">{wrong}</p>}
      {run && <h1>{run.question}</h1>}
      {going && (
        <p role="status" className="row">
          {`${words.working}: ${log.seen}`}
          <button onClick={() => api.cancel(decodeURIComponent(id)).then(setRun, (e) => setWrong(e.message))}>
            {words.cancel}
          </button>
        </p>
      )}
      {run && !going && (
        <div className="columns">
          <Answer run={run} words={words} zh={zh} open={open} />
          {run.answer && <Cards run={run} words={words} zh={zh} open={open} />}
        </div>
      )}
      <Machinery told={log} words={words} />
      {chosen && <Open one={chosen} words={words} close={() => open(null)} />}
    </>
  );
}
