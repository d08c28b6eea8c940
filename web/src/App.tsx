import { type FormEvent, useCallback, useEffect, useState } from "react";
import * as api from "./api";
import { draft, useKept, useKeys } from "./hooks";
import { Ask } from "./pages/Ask";
import { Compare } from "./pages/Compare";
import { Concepts } from "./pages/Concepts";
import { Evaluations } from "./pages/Evaluations";
import { Knowledge } from "./pages/Knowledge";
import { Labels } from "./pages/Labels";
import { PassagePage } from "./pages/PassagePage";
import { RunPage } from "./pages/RunPage";
import { Runs } from "./pages/Runs";
import { Scoreboard } from "./pages/Scoreboard";
import { ThreadPage } from "./pages/Threads";
import { Drop } from "./parts/Drop";
import { OpenRecord } from "./parts/OpenRecord";
import { Sidebar } from "./parts/Sidebar";
import { Wrong } from "./parts/Wrong";
import { usePlace, type Place } from "./place";
import { tongue, type Tongue, type Words } from "./words";

const NOBODY: api.About = { strategies: [], strategy: "", exports: [], uploads: [], version: "", models: {} };

export function App() {
  const at = usePlace();
  const [zh, setZh] = useKept("osler.zh", () => navigator.language.startsWith("zh"));
  const [dark, setDark] = useKept("osler.dark", () => matchMedia("(prefers-color-scheme: dark)").matches);
  const [about, learn] = useState(NOBODY);
  const [locked, lock] = useState(false);
  const [aside, pull] = useState(false); // the list of conversations, where it has no place beside
  const [asks, begin] = useState(0); // questions that were begun anew, each in an empty box
  const [patient, open] = useState<api.OpenPatient | null>(null);
  const speak = tongue(zh);
  const { words } = speak;
  const look = useCallback(() => {
    api.about().then(
      (found) => {
        learn(found);
        lock(false);
        api.launched().then((one) => open(one.patient), () => open(null));
      },
      (error) => lock(error instanceof api.Refusal && error.status === 401),
    );
  }, []);
  useEffect(look, [look]);
  useEffect(() => {
    const close = () => lock(true);
    window.addEventListener(api.LOCKED, close);
    return () => window.removeEventListener(api.LOCKED, close);
  }, []);
  const here = at.parts.join("/");
  useEffect(() => {
    pull(false);
    window.scrollTo(0, 0); // another page begins at its top
  }, [here]);
  useEffect(() => {
    document.documentElement.lang = zh ? "zh" : "en";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }, [zh, dark]);
  useKeys((key) => {
    if (key !== "/") return false;
    const field = document.querySelector<HTMLElement>(here ? ".followup textarea" : "textarea");
    if (field) field.focus();
    else window.location.hash = "#/";
    return true;
  });
  return (
    <>
      <a className="skip" href="#content" onClick={(event) => toContent(event)}>
        {words.skip}
      </a>
      <header>
        <a className="mark" href="#/">
          Osler
        </a>
        <a className="button main" href="#/" onClick={() => (draft(""), begin((times) => times + 1))}>
          {words.newQuestion}
        </a>
        <button className="drawer" aria-expanded={aside} aria-controls="side" onClick={() => pull(!aside)}>
          {words.threads}
        </button>
        <Nav at={at} words={words} />
        <span className="switches">
          <button onClick={() => setZh(!zh)} lang={zh ? "en" : "zh"}>
            {words.language}
          </button>
          <button onClick={() => setDark(!dark)} aria-label={words.theme} title={words.theme}>
            <span aria-hidden="true">◐</span>
          </button>
        </span>
      </header>
      <aside className="notice small">{words.notice}</aside>
      <OpenRecord patient={patient} speak={speak} />
      {!locked && <Drop source={about.uploads[0] ?? ""} speak={speak} />}
      <div className={aside ? "shell open" : "shell"} onClick={({ target }) => (target as Element).closest(".side a") && pull(false)}>
        {!locked && <Sidebar at={at} speak={speak} />}
        <main id="content" tabIndex={-1}>
          {locked ? <Key words={words} done={look} /> : <Here at={at} asks={asks} speak={speak} about={about} />}
        </main>
      </div>
      <footer className="small">
        <span>{about.version && `Osler ${about.version}`}</span>
        <span>{`${words.keys}: ${words.keysAre}`}</span>
      </footer>
    </>
  );
}

function toContent(event: { preventDefault: () => void }) {
  event.preventDefault(); // the address says which page is open
  document.getElementById("content")?.focus();
}

function Nav({ at, words }: { at: Place; words: Words }) {
  const first = at.parts[0] ?? "";
  const pages: [string, string, string[]][] = [
    ["knowledge", words.knowledge, ["knowledge", "passages", "concepts", "labels"]],
    ["evaluations", words.evaluations, ["evaluations", "scoreboard"]],
  ];
  return (
    <nav aria-label={words.pages}>
      {pages.map(([path, name, under]) => (
        <a key={path} href={`#/${path}`} aria-current={under.includes(first) ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

function Here({ at, asks, speak, about }: { at: Place; asks: number; speak: Tongue; about: api.About }) {
  const [first = "", id = "", more = ""] = at.parts;
  switch (first) {
    case "":
      return <Ask key={asks} about={about} speak={speak} />;
    case "runs":
      return id ? <RunPage key={id} id={id} replay={more === "replay"} about={about} speak={speak} /> : <Runs speak={speak} />;
    case "threads":
      return id ? <ThreadPage key={id} id={id} about={about} speak={speak} /> : <Runs speak={speak} />;
    case "compare":
      return <Compare key={`${id} ${more}`} ids={[id, more]} speak={speak} />;
    case "knowledge":
      return <Knowledge asked={at.asked} speak={speak} />;
    case "labels": {
      const drugs: [string, string] = [at.asked.get("a") ?? "", at.asked.get("b") ?? ""];
      return <Labels key={drugs.join("\n")} drugs={drugs} speak={speak} />;
    }
    case "passages":
      return <PassagePage key={id} id={id} speak={speak} />;
    case "concepts":
      return <Concepts id={id} term={at.asked.get("term") ?? ""} speak={speak} />;
    case "evaluations":
      return <Evaluations name={id} speak={speak} />;
    case "scoreboard":
      return <Scoreboard speak={speak} />;
    default:
      return <Wrong text={speak.words.missing} />;
  }
}

function Key({ words, done }: { words: Words; done: () => void }) {
  const [key, setKey] = useState("");
  const send = (event: FormEvent) => {
    event.preventDefault();
    api.useKey(key.trim());
    done();
  };
  return (
    <form onSubmit={send} className="sheet">
      <label>
        {words.key}
        <input type="password" value={key} onChange={(event) => setKey(event.target.value)} />
      </label>
      <button className="main">{words.open}</button>
    </form>
  );
}
