import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as api from "./api";
import { explained } from "./errors";
import type { Heard } from "./events";
import { heard, told, type Told } from "./log";
import { follow } from "./stream";
import { WORDS } from "./words";

export const LISTED = "osler-listed"; // an event: what the list of conversations shows has changed

// What went wrong, in the language that the page is in.
export const why = (error: unknown): string =>
  explained(error, WORDS[document.documentElement.lang.startsWith("zh") ? "zh" : "en"]);

// What the server was asked for; again whenever `ask` changes.
export function useLoaded<T>(ask: () => Promise<T>): { found: T | null; wrong: string } {
  const [state, put] = useState<{ found: T | null; wrong: string }>({ found: null, wrong: "" });
  useEffect(() => {
    let here = true;
    ask().then(
      (found) => here && put({ found, wrong: "" }),
      (error) => here && put({ found: null, wrong: why(error) }),
    );
    return () => {
      here = false;
    };
  }, [ask]);
  return state;
}

export interface Watched {
  run: api.Run | null;
  events: Heard[];
  log: Told;
  lost: number | null; // seconds to the next try
  wrong: string;
  stop: () => void;
  look: () => void; // asks again how the run is
}

// A run with its events, as they come or as they were.
export function useRun(id: string): Watched {
  const [run, setRun] = useState<api.Run | null>(null);
  const [events, setEvents] = useState<Heard[]>([]);
  const [lost, setLost] = useState<number | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const end = new AbortController();
    let waiting: Heard[] = [];
    const flush = () => {
      const more = waiting;
      waiting = [];
      if (more.length && !end.signal.aborted) setEvents((before) => heard(before, more));
    };
    // Thousands of events come at once of a run that is over: they are drawn a few times, not each.
    const timer = setInterval(flush, 60);
    const look = async () => {
      const found = await api.run(id);
      if (!end.signal.aborted) setRun(found);
      return found;
    };
    const watch = async () => {
      await look();
      await follow({
        open: api.events(id),
        going: async () => api.working((await look()).status),
        hear: (at, event) => waiting.push({ at, event }),
        lost: (seconds) => !end.signal.aborted && setLost(seconds),
        stop: end.signal,
      });
      flush();
      await look();
      window.dispatchEvent(new Event(LISTED));
    };
    watch().catch((error) => !end.signal.aborted && setWrong(why(error)));
    return () => (clearInterval(timer), end.abort());
  }, [id]);
  const stop = useCallback(() => {
    api.cancel(id).then(setRun, (error) => setWrong(why(error)));
  }, [id]);
  const look = useCallback(() => void api.run(id).then(setRun, () => undefined), [id]);
  const log = useMemo(() => told(events), [events]);
  return { run, events, log, lost, wrong, stop, look };
}

// Keys that no field wants for itself.
export function useKeys(pressed: (key: string) => boolean): void {
  const latest = useRef(pressed);
  latest.current = pressed;
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      const on = event.target as HTMLElement;
      const field = on.closest?.("input, textarea, select, dialog");
      if (field || event.ctrlKey || event.metaKey || event.altKey) return;
      if (latest.current(event.key)) event.preventDefault();
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, []);
}

// Words that are being written: they outlast another page, a reload and a server that is away.
export function useDraft(name: string): [string, (text: string) => void] {
  const [text, put] = useState(() => stored(() => sessionStorage.getItem(name)) ?? "");
  const write = (next: string) => {
    stored(() => (next ? sessionStorage.setItem(name, next) : sessionStorage.removeItem(name)));
    put(next);
  };
  return [text, write];
}

export const QUESTION = "osler.question"; // the draft of the page that asks

export function draft(question: string): void {
  stored(() => sessionStorage.setItem(QUESTION, question));
}

// Enter sends, Shift and Enter break the line; a word that an input method still makes is left alone.
export function sendOnEnter(event: React.KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

// A choice that stays with this browser; where it keeps nothing, with this visit.
export function useKept(name: string, usual: () => boolean): [boolean, (value: boolean) => void] {
  const [value, put] = useState(() => {
    const kept = stored(() => localStorage.getItem(name));
    return kept === null ? usual() : kept === "1";
  });
  const keep = (next: boolean) => {
    stored(() => localStorage.setItem(name, next ? "1" : "0"));
    put(next);
  };
  return [value, keep];
}

function stored<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}
