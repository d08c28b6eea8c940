import type { Tongue } from "../words";

export type Filters = { since?: string; until?: string; as_of?: string; kinds?: string };

// A year, a month or a day.
export const DATE = "\\d{4}(-\\d\\d){0,2}";

// As a request has them: years as numbers, other dates as words, kinds one by one, and nothing that was left empty.
export function chosenFilters({ since, until, as_of, kinds }: Filters): object {
  const named = (kinds ?? "").split(",").map((one) => one.trim()).filter(Boolean);
  return {
    ...(since ? { since: bound(since) } : {}),
    ...(until ? { until: bound(until) } : {}),
    ...(as_of ? { as_of: bound(as_of) } : {}),
    ...(named.length ? { kinds: named } : {}),
  };
}

export function bound(given: string): number | string {
  return /^\d{4}$/.test(given) ? Number(given) : given;
}

type Given = { chosen: Filters; choose: (next: Filters) => void; speak: Tongue };

// Which texts are searched, by date and kind; what is asked next is asked through the same.
export function Filter({ chosen, choose, speak }: Given) {
  const { words } = speak;
  const field = (name: keyof Filters) => ({
    value: chosen[name] ?? "",
    onChange: (event: { target: { value: string } }) => choose({ ...chosen, [name]: event.target.value }),
  });
  return (
    <details className="choices filter">
      <summary>{words.narrow}</summary>
      <p className="row">
        <label>
          {words.from}
          <input pattern={DATE} placeholder="2015" {...field("since")} />
        </label>
        <label>
          {words.to}
          <input pattern={DATE} placeholder="2024-06" {...field("until")} />
        </label>
        <label>
          {words.asOf}
          <input pattern={DATE} placeholder="2024-01-31" {...field("as_of")} />
        </label>
        <label>
          {words.kinds}
          <input maxLength={200} placeholder="rct, guideline" {...field("kinds")} />
        </label>
      </p>
    </details>
  );
}
