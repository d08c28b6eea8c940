import { useEffect, useState } from "react";
import { plain } from "../plain";
import type { Tongue } from "../words";

// Questions of this visit by their runs: a page of a run shows its question before the server has.
const ASKED = new Map<string, string>();

export const BEGUN = "osler-begun"; // an event: a question was asked
export const remember = (run: string, question: string) => {
  ASKED.set(run, question);
  window.dispatchEvent(new Event(BEGUN));
};
export const remembered = (run: string): string => ASKED.get(run) ?? "";

// A question stands on the page at once, whatever the rest still does.
export function Begun({ question, speak }: { question: string; speak: Tongue }) {
  const { words } = speak;
  return (
    <>
      <h1 dir="auto">{plain(question)}</h1>
      <div className="sheet working">
        <Stages done={[]} now={`${words.working}: ${words.begins}`} />
      </div>
    </>
  );
}

export function Stages({ done, now }: { done: string[]; now: string }) {
  return (
    <div className="stages">
      {done.length > 0 && (
        <ol>
          {done.map((name, index) => (
            <li key={index}>{name}</li>
          ))}
        </ol>
      )}
      <p className="now" role="status">
        {now}
      </p>
    </div>
  );
}

export function Elapsed({ since, speak }: { since: string; speak: Tongue }) {
  const [now, tick] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => tick(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.round((now - Date.parse(since)) / 1_000)) || 0;
  return <span className="elapsed">{`${seconds} ${speak.words.seconds}`}</span>;
}
