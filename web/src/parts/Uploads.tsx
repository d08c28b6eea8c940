import { useCallback, useEffect, useState } from "react";
import * as api from "../api";
import { useLoaded, why } from "../hooks";
import { plain, shortBytes } from "../plain";
import type { Tongue, Words } from "../words";
import { moment } from "./Machinery";

type Line = { name: string; said: string; bad: boolean };

// Documents that readers send into a source of their own; nothing where no source takes any.
export function Uploads({ changed, speak }: { changed: () => void; speak: Tongue }) {
  const { words } = speak;
  const { found } = useLoaded(api.places);
  const [source, choose] = useState("");
  if (!found?.sources.length) return null;
  const into = source || found.sources[0] || "";
  return (
    <section aria-label={words.mine} className="uploads">
      <h2>{words.mine}</h2>
      {found.sources.length > 1 && (
        <label className="narrow">
          {words.source}
          <select value={into} onChange={(event) => choose(event.target.value)}>
            {found.sources.map((name) => (
              <option key={name} value={name}>
                {speak.source(name)}
              </option>
            ))}
          </select>
        </label>
      )}
      <Library key={into} source={into} places={found} changed={changed} speak={speak} />
    </section>
  );
}

type Given = { source: string; places: api.Places; changed: () => void; speak: Tongue };

function Library({ source, places, changed, speak }: Given) {
  const { words } = speak;
  const [files, put] = useState<api.Upload[]>([]);
  const [lines, tell] = useState<Line[]>([]);
  const [sending, send] = useState<{ name: string; share: number } | null>(null);
  const look = useCallback(() => {
    api.uploads(source).then(({ uploads }) => put(uploads), () => undefined);
  }, [source]);
  useEffect(look, [look]);
  const note = (name: string, said: string, bad = false) => tell((known) => [{ name, said, bad }, ...known]);
  const reading = (name: string, made: Promise<api.Sent | void>) =>
    made
      .then((done) => note(name, done ? outcome(done, words) : words.deleted), (error) => note(name, why(error) || words.notSent, true))
      .finally(() => (look(), changed()));
  const take = async (chosen: File[]) => {
    for (const file of chosen) {
      if (file.size > places.mib * 2 ** 20) {
        note(file.name, `${words.tooLarge} ${places.mib} MiB`, true);
        continue;
      }
      send({ name: file.name, share: 0 });
      await reading(file.name, api.send(source, file, (share) => send({ name: file.name, share })));
    }
    send(null);
  };
  return (
    <div className="sheet">
      <label className="button file">
        {words.sendFiles}
        <input
          type="file"
          className="unseen"
          multiple
          disabled={sending !== null}
          accept={places.endings.join(",")}
          onChange={(event) => {
            void take([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
      </label>
      <p className="small">{`${places.endings.join(", ")}; ${places.mib} MiB`}</p>
      {sending && (
        <p role="status">
          {`${plain(sending.name)}: ${sending.share < 1 ? words.sending : words.readingFile} `}
          <progress aria-label={words.sending} max={1} value={sending.share < 1 ? sending.share : undefined} />
        </p>
      )}
      <div className="lines" aria-live="polite">
        {lines.map((one, index) => (
          <p key={lines.length - index} role={one.bad ? "alert" : undefined}>{`${plain(one.name)}: ${plain(one.said)}`}</p>
        ))}
      </div>
      {files.length === 0 && <p>{words.noFiles}</p>}
      {files.length > 0 && (
        <Files files={files} speak={speak} read={(one) => void reading(one.name, api.reread(one))} drop={(one) => void reading(one.name, api.deleteUpload(one))} />
      )}
    </div>
  );
}

type Held = { files: api.Upload[]; read: (one: api.Upload) => void; drop: (one: api.Upload) => void; speak: Tongue };

function Files({ files, read, drop, speak }: Held) {
  const { words } = speak;
  return (
    <ul className="runs files">
      {files.map((one) => (
        <li key={one.name}>
          <div>
            <strong>{plain(one.name)}</strong>
            <span className="small">{`${shortBytes(one.bytes)} · ${moment(one.sent, speak)}`}</span>
          </div>
          <button onClick={() => read(one)} aria-label={`${words.readAgain}: ${one.name}`}>
            {words.readAgain}
          </button>
          <Sure words={[words.remove, words.sureRemove]} name={one.name} done={() => drop(one)} />
        </li>
      ))}
    </ul>
  );
}

// A button that asks once more before it does what cannot be undone.
export function Sure({ words, name, done }: { words: [string, string]; name: string; done: () => void }) {
  const [sure, ask] = useState(false);
  const said = words[sure ? 1 : 0];
  return (
    <button aria-label={`${said}: ${name}`} onBlur={() => ask(false)} onClick={() => (sure ? done() : ask(true))}>
      {said}
    </button>
  );
}

export function outcome(done: api.Sent, words: Words): string {
  const left = leftOut(done, words);
  if (!done.passages) return left || words.alreadyThere;
  const read = `${words.documents} ${done.documents}, ${words.passages} ${done.passages}`;
  return [read, done.replaced && words.replaced, words.foundAtOnce, left].filter(Boolean).join(" · ");
}

// What of a file became no document; empty where all did.
export function leftOut(done: api.Sent, words: Words): string {
  const dropped = Object.entries(done.drops).map(([reason, count]) => `${reason} ×${count}`);
  return dropped.length ? `${words.dropped}: ${dropped.join(", ")}` : "";
}
