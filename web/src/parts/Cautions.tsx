import type { Caution } from "../api";
import { link } from "../place";
import { plain } from "../plain";
import type { Tongue } from "../words";

// Evidence that is out of date: never behind a click.
export function Cautions({ found, speak }: { found: Caution[]; speak: Tongue }) {
  if (found.length === 0) return null;
  return (
    <section className="cautions" role="note" aria-label={speak.words.cautions}>
      <h3>{speak.words.cautions}</h3>
      <ul>
        {found.map((one, index) => (
          <li key={index}>
            <span>{plain(one.text)}</span>
            {one.evidence.map((quoted) => (
              <q key={`${quoted.passage.id} ${quoted.quote}`} className="small">
                {plain(quoted.quote)}{" "}
                <a href={link("passages", quoted.passage.id)}>{plain(quoted.passage.title || quoted.passage.id)}</a>
              </q>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}
