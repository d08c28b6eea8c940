import { useCallback } from "react";
import * as api from "../api";
import { useLoaded } from "../hooks";
import { about, Outside } from "../parts/Cards";
import { Facts } from "../parts/Machinery";
import { Wrong } from "../parts/Wrong";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

const AROUND = 2;

export function PassagePage({ id, speak }: { id: string; speak: Tongue }) {
  const { words } = speak;
  const look = useCallback(() => api.passage(id, AROUND), [id]);
  const { found, wrong } = useLoaded(look);
  if (wrong) return <Wrong text={wrong} />;
  if (!found) return null;
  const { passage, context, provenance } = found;
  const around = context.length ? context : [passage];
  return (
    <section aria-label={words.passage}>
      <h1>{plain(passage.title || passage.id)}</h1>
      <p className="small">
        {`${speak.source(passage.source)} · ${about(passage, speak)} `}
        <Outside url={passage.locator.url} />
      </p>
      {around.length > 1 && <h2>{words.neighbours}</h2>}
      <div className="around">
        {around.map((one) => (
          <One key={one.id} one={one} here={one.id === id} />
        ))}
      </div>
      {passage.source === "graph" && passage.locator.code && (
        <p>
          <a href={link("concepts", passage.locator.code)}>{`${words.inGraph}: ${plain(passage.locator.code)}`}</a>
        </p>
      )}
      {provenance && <Origin found={found} speak={speak} />}
    </section>
  );
}

function One({ one, here }: { one: api.Passage; here: boolean }) {
  return (
    <article className={here ? "sheet here" : "beside"} aria-current={here || undefined}>
      {!here && (
        <p className="small">
          <a href={link("passages", one.id)}>{plain(one.locator.section || one.id)}</a>
        </p>
      )}
      <p className="text" dir="auto" lang={one.language}>
        {plain(one.text)}
      </p>
    </article>
  );
}

function Origin({ found, speak }: { found: api.Found; speak: Tongue }) {
  const { words } = speak;
  const origin = found.provenance;
  if (!origin) return null;
  const facts: [string, string][] = [
    [words.passage, found.passage.id],
    [words.document, origin.document],
    [words.file, origin.origin],
    ["URL", found.passage.locator.url],
    [words.licence, found.passage.licence],
    [words.types, origin.kinds.join(", ")],
    [words.trust, String(origin.trust)],
    [words.version, String(origin.version)],
    ["SHA-256", origin.checksum],
    [words.snapshot, found.snapshot],
  ];
  return (
    <section aria-label={words.origin}>
      <h2>{words.origin}</h2>
      {origin.retracted && <p role="alert">{words.retracted}</p>}
      <Facts facts={facts} />
    </section>
  );
}
