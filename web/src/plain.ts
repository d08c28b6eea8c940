// Text of models and passages, as it can be shown: what would reorder or hide letters is named.
// Soft hyphens, joiners and marks of direction are left: honest texts need them.

const HIDDEN =
  /[\u200b\u2060\ufeff\u180e\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

export function plain(text: string): string {
  return text.replace(HIDDEN, (letter) => {
    const code = letter.codePointAt(0) ?? 0;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// The spans of the server count code points, as Python does.
export function marked(text: string, from: number, to: number): [string, string, string] {
  const letters = [...text];
  const part = (a: number, b?: number) => plain(letters.slice(a, b).join(""));
  return [part(0, from), part(from, to), part(to)];
}

// Seconds as a reader wants them: two digits below ten, whole ones above.
export function shortSeconds(seconds: number | null | undefined, absent: string): string {
  if (seconds === null || seconds === undefined) return absent;
  return String(seconds < 10 ? Number(seconds.toPrecision(2)) : Math.round(seconds));
}

// The text in pieces, each with whether a word of the query stands there; Chinese by pairs of signs.
export function highlighted(text: string, query: string): [string, boolean][] {
  const words = query.toLowerCase().match(/[\p{Script=Han}]+|[\p{L}\p{N}]+/gu) ?? [];
  const parts = words.flatMap((word) =>
    /\p{Script=Han}/u.test(word) && word.length > 2
      ? [word, ...[...word].slice(1).map((sign, at) => [...word][at] + sign)]
      : [word],
  );
  const wanted = [...new Set(parts.filter((part) => part.length > 1))].sort((a, b) => b.length - a.length);
  if (wanted.length === 0) return [[plain(text), false]];
  const pieces = plain(text).split(new RegExp(`(${wanted.join("|")})`, "giu"));
  return pieces.map((piece, at): [string, boolean] => [piece, at % 2 === 1]).filter(([piece]) => piece);
}

export function shortBytes(bytes: number): string {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
