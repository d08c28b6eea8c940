import { type FormEvent, useCallback, useEffect, useState } from "react";
import * as api from "../api";
import { LISTED, why } from "../hooks";
import { link, type Place } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";
import { BEGUN } from "./Begun";
import { day } from "./Machinery";
import { Menu } from "./Menu";
import { Sure } from "./Uploads";

const PAUSE = 250; // milliseconds after a letter before it is searched for
const AGAIN = 3_000; // milliseconds after which a server that was away is asked again

type Given = { at: Place; speak: Tongue };

// All that was asked, in one list: conversations, and questions that stand alone.
export function Sidebar({ at, speak }: Given) {
  const { words } = speak;
  const [find, look] = useState("");
  const [listed, put] = useState<api.Conversation[]>([]);
  const [next, follow] = useState<string | null>(null);
  const [wrong, setWrong] = useState("");
  const load = useCallback(
    (before = "") =>
      api.conversations(find, before).then(
        (found) => {
          put((known) => [...(before ? known : []), ...found.conversations]);
          follow(found.next);
          setWrong("");
        },
        (error) => setWrong(why(error)),
      ),
    [find],
  );
  useEffect(() => {
    const clear = () => look(""); // what was asked is listed, whatever was searched for
    window.addEventListener(BEGUN, clear);
    return () => window.removeEventListener(BEGUN, clear);
  }, []);
  const here = at.parts.join("/");
  useEffect(() => {
    const timer = setTimeout(load, find ? PAUSE : 0);
    const again = () => void load();
    window.addEventListener(LISTED, again);
    return () => (clearTimeout(timer), window.removeEventListener(LISTED, again));
  }, [load, find, here]);
  useEffect(() => {
    if (!wrong) return;
    const timer = setInterval(() => void load(), AGAIN);
    return () => clearInterval(timer);
  }, [wrong, load]);
  return (
    <nav className="side" id="side" aria-label={words.threads}>
      <input type="search" aria-label={words.findThreads} placeholder={words.findThreads} value={find} onChange={(event) => look(event.target.value)} />
      {wrong && <p className="small">{plain(wrong)}</p>}
      {!wrong && listed.length === 0 && <p className="small">{find ? words.noHits : words.none}</p>}
      {byDay(listed, speak).map(([name, those]) => (
        <div key={name}>
          <p className="small day">{name}</p>
          <ul>
            {those.map((one) => (
              <Line key={one.id} one={one} here={at.parts[1] === one.id} changed={() => void load()} speak={speak} />
            ))}
          </ul>
        </div>
      ))}
      {next && <button onClick={() => void load(next)}>{words.older}</button>}
      <p className="small">
        <a href={link("runs")}>{words.runs}</a>
      </p>
    </nav>
  );
}

function byDay(listed: api.Conversation[], speak: Tongue): [string, api.Conversation[]][] {
  const found = new Map<string, api.Conversation[]>();
  for (const one of listed) {
    const name = one.pinned ? speak.words.pinned : day(one.created, speak);
    found.set(name, [...(found.get(name) ?? []), one]);
  }
  return [...found];
}

type Held = { one: api.Conversation; here: boolean; changed: () => void; speak: Tongue };

function Line({ one, here, changed, speak }: Held) {
  const { words } = speak;
  const [title, rename] = useState<string | null>(null);
  const name = plain(one.title || one.id);
  const save = (event: FormEvent) => {
    event.preventDefault();
    void api.rename(one.id, title ?? "").finally(() => (rename(null), changed()));
  };
  const drop = () =>
    void api.deleteConversation(one.id).finally(() => {
      if (here) window.location.hash = "#/";
      changed();
    });
  if (title !== null)
    return (
      <li>
        <form className="rename" onSubmit={save}>
          <input autoFocus aria-label={words.title} maxLength={200} value={title} onChange={(event) => rename(event.target.value)} />
          <button>{words.store}</button>
        </form>
      </li>
    );
  return (
    <li>
      <a href={link(one.kind === "thread" ? "threads" : "runs", one.id)} aria-current={here ? "page" : undefined} dir="auto" title={name}>
        {name}
      </a>
      {one.status !== "finished" && <span className={`badge ${one.status}`}>{speak.state(one.status)}</span>}
      <Menu summary={<span aria-hidden="true">⋯</span>} name={`${words.changeThread}: ${name}`}>
        <button onClick={() => rename(one.title)}>{words.rename}</button>
        <button onClick={() => void api.pin(one.id, !one.pinned).finally(changed)}>{one.pinned ? words.unpin : words.pin}</button>
        <Sure words={[words.remove, words.sureRemove]} name={name} done={drop} />
      </Menu>
    </li>
  );
}
