import { useEffect, useRef } from "react";
import type { Evidence } from "../api";
import { link } from "../place";
import { marked, plain } from "../plain";
import type { Tongue } from "../words";
import { about, Outside } from "./Cards";

// The passage with its quote marked. Text is text: nothing in it is read as markup.
export function Opened({ one, speak, close }: { one: Evidence; speak: Tongue; close: () => void }) {
  const { words } = speak;
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current?.showModal();
    box.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
  }, []);
  const [before, quote, after] = marked(one.passage.text, ...one.quote_span);
  return (
    <dialog ref={box} onClose={close} aria-labelledby="opened">
      <h2 id="opened">{`${one.mark} ${plain(one.passage.title || one.passage.id)}`}</h2>
      <p className="small">{`${speak.source(one.passage.source)} · ${about(one.passage, speak)}`}</p>
      <p className="passage" tabIndex={0} dir="auto" lang={one.passage.language}>
        {before}
        <mark>{quote}</mark>
        {after}
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
