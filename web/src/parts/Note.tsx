import { plain } from "../plain";
import type { Tongue } from "../words";

// Text by a model that may not word medicine: folded, and called what it is.
export function Note({ text, speak }: { text: string; speak: Tongue }) {
  if (!text) return null;
  return (
    <details className="modelnote small">
      <summary>{speak.words.modelNote}</summary>
      <p>{plain(text)}</p>
    </details>
  );
}
