import { useCallback } from "react";
import * as api from "../api";
import { useLoaded } from "../hooks";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";
import { ConceptForm } from "./Knowledge";

export function Concepts({ id, term, speak }: { id: string; term: string; speak: Tongue }) {
  return (
    <section aria-label={speak.words.concept}>
      <ConceptForm key={term} term={term} speak={speak} />
      {term && !id && <Matches key={term} term={term} speak={speak} />}
      {id && <One key={id} id={id} speak={speak} />}
    </section>
  );
}

function Matches({ term, speak }: { term: string; speak: Tongue }) {
  const look = useCallback(() => api.concepts(term), [term]);
  const { found, wrong } = useLoaded(look);
  if (wrong) return <p role="alert">{plain(wrong)}</p>;
  return (
    <>
      <h1>{plain(term)}</h1>
      {found?.concepts.length === 0 && <p>{speak.words.noConcept}</p>}
      <ul>
        {found?.concepts.map((one) => (
          <li key={one.id}>
            <a href={link("concepts", one.id)}>{plain(one.name)}</a> <span className="small">{plain(one.id)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function One({ id, speak }: { id: string; speak: Tongue }) {
  const { words } = speak;
  const look = useCallback(() => api.concept(id), [id]);
  const { found, wrong } = useLoaded(look);
  if (wrong) return <p role="alert">{plain(wrong)}</p>;
  if (!found) return null;
  return (
    <>
      <h1>{plain(found.name)}</h1>
      <p className="small">{plain([found.id, ...found.types.map(speak.kind)].join(" · "))}</p>
      {found.names.length > 1 && <p>{`${words.names}: ${plain(found.names.slice(1).join("; "))}`}</p>}
      {found.definitions.map(([source, text], index) => (
        <blockquote key={index} className="sheet">
          {plain(text)} <span className="small">{plain(source)}</span>
        </blockquote>
      ))}
      <h2>{words.relations}</h2>
      {found.relations.length === 0 && <p>{words.noRelations}</p>}
      <ul className="relations">
        {found.relations.map((one, index) => (
          <li key={index}>
            <End id={one.subject} name={one.subject_name} here={found.id} />
            <span className="predicate">{plain(speak.relation(one.predicate))}</span>
            <End id={one.object} name={one.object_name} here={found.id} />
          </li>
        ))}
      </ul>
    </>
  );
}

function End({ id, name, here }: { id: string; name: string; here: string }) {
  if (id === here) return <strong>{plain(name)}</strong>;
  return <a href={link("concepts", id)}>{plain(name)}</a>;
}
