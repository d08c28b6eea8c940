import { useState, type FormEvent } from "react";
import { judge, type Run, type Verdict } from "../api";
import { why } from "../hooks";
import type { Tongue } from "../words";

const VERDICTS: Verdict[] = ["helpful", "wrong", "unsafe"];

// What a reader says of an answer: a verdict, and why.
export function Feedback({ run, speak }: { run: Run; speak: Tongue }) {
  const { words } = speak;
  const [verdict, choose] = useState<Verdict | null>(null);
  const [note, write] = useState("");
  const [told, tell] = useState("");
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (!verdict) return;
    judge(run.run_id, verdict, note).then(
      () => (tell(words.judged), choose(null), write("")),
      (error) => tell(why(error)),
    );
  };
  return (
    <form className="feedback" onSubmit={send} aria-label={speak.label(words.judging)}>
      <p className="small">
        {words.judging}{" "}
        {VERDICTS.map((one) => (
          <button key={one} type="button" aria-pressed={verdict === one} onClick={() => choose(one)}>
            {words[one]}
          </button>
        ))}
      </p>
      {verdict && (
        <>
          <label>
            {words.judgedWhy}
            <textarea value={note} maxLength={4000} rows={2} onChange={(event) => write(event.target.value)} />
          </label>
          <button>{words.send}</button>
        </>
      )}
      <p role="status" className="small">
        {told}
      </p>
    </form>
  );
}
