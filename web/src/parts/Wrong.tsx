import { plain } from "../plain";

// Why there is nothing to see here: an alert under a heading that a screen reader lands on.
export function Wrong({ text }: { text: string }) {
  return (
    <>
      <h1 className="unseen">Osler</h1>
      <p role="alert">{plain(text)}</p>
    </>
  );
}
