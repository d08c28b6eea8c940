import { useCallback, useState } from "react";
import * as api from "../api";
import { useLoaded, why } from "../hooks";
import { plain } from "../plain";
import type { Tongue } from "../words";
import { remember } from "./Begun";

type Given = { run: string; open: () => Promise<api.Thread>; asked: (thread: string) => void; speak: Tongue };

// Questions to ask next with one click: each names a section that was found.
export function Suggested({ run, open, asked, speak }: Given) {
  const { words } = speak;
  const look = useCallback(() => api.followUps(run), [run]);
  const { found } = useLoaded(look);
  const [wrong, setWrong] = useState("");
  const [busy, work] = useState(false);
  if (!found?.questions.length) return null;
  const ask = async (question: string) => {
    work(true);
    try {
      const { thread_id, turns } = await open();
      const { turn } = await api.askIn(thread_id, { question, standalone: question, after: turns.length });
      remember(turn.run_id, question);
      asked(thread_id);
    } catch (error) {
      setWrong(why(error));
    }
    work(false);
  };
  return (
    <section className="suggested" aria-label={speak.label(words.askNext)}>
      <h3>{words.askNext}</h3>
      {found.questions.map((one) => (
        <button key={one} className="example" disabled={busy} onClick={() => void ask(one)} dir="auto">
          {plain(one)}
        </button>
      ))}
      {wrong && <p role="alert">{plain(wrong)}</p>}
    </section>
  );
}
