import { useCallback, useEffect, useRef } from "react";
import { passage, type Evidence, type Passage } from "../api";
import { useLoaded } from "../hooks";
import { link } from "../place";
import { marked, plain } from "../plain";
import type { Tongue } from "../words";
import { about, Outside } from "./Cards";

const AROUND = 2; // passages on either side, as far as they are of the section

// What the section says before and after the passage, where it still reads as it did.
function useSection({ id, text, locator }: Passage): [string, string] {
  const look = useCallback(() => passage(id, AROUND).catch(() => null), [id]);
  const section = (useLoaded(look).found?.context ?? []).filter((one) => one.locator.section === locator.section);
  const at = section.findIndex((one) => one.id === id);
  if (section[at]?.text !== text) return ["", ""];
  const joined = (side: Passage[]) => plain(side.map((one) => one.text).join("\n"));
  return [joined(section.slice(0, at)), joined(section.slice(at + 1))];
}

// The passage with its quote marked. Text is text: nothing in it is read as markup.
export function Opened({ one, speak, close }: { one: Evidence; speak: Tongue; close: () => void }) {
  const { words } = speak;
  const box = useRef<HTMLDialogElement>(null);
  const [above, below] = useSection(one.passage);
  useEffect(() => box.current?.showModal(), []);
  useEffect(() => {
    box.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
  }, [above, below]);
  const [before, quote, after] = marked(one.passage.text, ...one.quote_span);
  return (
    <dialog ref={box} onClose={close} aria-labelledby="opened">
      <h2 id="opened">{`${one.mark} ${plain(one.passage.title || one.passage.id)}`}</h2>
      <p className="small">{`${speak.source(one.passage.source)} · ${about(one.passage, speak)}`}</p>
      <p className="passage" tabIndex={0} dir="auto" lang={one.passage.language}>
        {above && <span className="beside">{`${above}\n`}</span>}
        {before}
        <mark>{quote}</mark>
        {after}
        {below && <span className="beside">{`\n${below}`}</span>}
      </p>
      <p className="small">
        <Outside url={one.passage.locator.url} />
      </p>
      <p className="row">
        <button className="main" onClick={() => box.current?.close()}>
          {words.close}
        </button>
        <a href={link("passages", one.passage.id)}>{words.neighbours}</a>
      </p>
    </dialog>
  );
}
