import { type FormEvent, useState } from "react";
import * as api from "../api";
import { sendOnEnter, why } from "../hooks";
import { plain } from "../plain";
import type { Tongue } from "../words";
import { remember } from "./Begun";
import { DangerNotice } from "./Danger";

interface Given {
  open: () => Promise<api.Thread>; // the conversation that is asked in; begun where there is none
  asked: (thread: string) => void;
  moved?: () => void; // somebody else asked in it meanwhile
  speak: Tongue;
}

// A question after others. How it will be searched for can be seen and changed before it is asked.
export function FollowUp({ open, asked, moved, speak }: Given) {
  const { words } = speak;
  const [question, put] = useState("");
  const [alone, word] = useState<string | null>(null);
  const [wrong, setWrong] = useState("");
  const [danger, warn] = useState<api.Danger | null>(null);
  const [busy, work] = useState(false);
  const doing = async (made: (thread: api.Thread) => Promise<void>) => {
    if (busy) return; // Enter sends whatever the button says
    setWrong("");
    work(true);
    try {
      await made(await open());
    } catch (error) {
      setWrong(why(error));
      if (error instanceof api.Refusal) {
        warn(error.danger);
        if (error.status === 409) moved?.();
      }
    }
    work(false);
  };
  const show = () => doing(async ({ thread_id }) => word((await api.standalone(thread_id, question)).standalone));
  const send = (event: FormEvent) => {
    event.preventDefault();
    void doing(async ({ thread_id, turns }) => {
      const how = alone?.trim() ? { standalone: alone } : {};
      const { turn } = await api.askIn(thread_id, { question, after: turns.length, ...how });
      remember(turn.run_id, question);
      put("");
      word(null);
      asked(thread_id);
    });
  };
  return (
    <form className="sheet followup" onSubmit={send}>
      <DangerNotice danger={danger} />
      <label className="big">
        {words.followUp}
        <textarea required rows={2} value={question} onKeyDown={sendOnEnter} onChange={(e) => (put(e.target.value), word(null))} />
      </label>
      {alone !== null && (
        <label>
          {words.standalone}
          <textarea rows={2} value={alone} onChange={(event) => word(event.target.value)} />
        </label>
      )}
      <p className="row">
        <button className="main" disabled={busy}>
          {words.ask}
        </button>
        <button type="button" disabled={busy || !question.trim()} onClick={() => void show()}>
          {words.showStandalone}
        </button>
      </p>
      {wrong && <p role="alert">{plain(wrong)}</p>}
    </form>
  );
}
