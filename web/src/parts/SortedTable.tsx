import { useState } from "react";
import { plain } from "../plain";

export interface Cell {
  text: string;
  value?: string; // what it is sorted by; else the number that it begins with, or its words
  href?: string;
}

export interface Row {
  cells: Cell[];
  title?: string;
}

interface Given {
  name: string;
  head: string[];
  rows: Row[];
}

const LONG = 40; // letters of a cell that is to be read as a sentence

// A table that sorts by the column whose head is pressed; once more turns it round.
export function SortedTable({ name, head, rows }: Given) {
  const [by, sort] = useState<number | null>(null);
  const [down, turn] = useState(false);
  const press = (column: number) => (turn(by === column && !down), sort(column));
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label={name}>
      <table className="sorted">
        <thead>
          <tr>
            {head.map((title, column) => {
              const order = by === column ? (down ? "descending" : "ascending") : undefined;
              return title ? (
                <th key={column} scope="col" aria-sort={order}>
                  <button className="plain" onClick={() => press(column)}>
                    {title}
                  </button>
                </th>
              ) : (
                <td key={column} />
              );
            })}
          </tr>
        </thead>
        <tbody>
          {(by === null ? rows : sorted(rows, by, down)).map((row, index) => (
            <tr key={index} title={row.title && plain(row.title)}>
              {row.cells.map(({ text, href }, column) => (
                <td key={column} className={text.length > LONG ? "long" : undefined}>
                  {href ? <a href={href}>{plain(text)}</a> : plain(text)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const NUMBER = /^[-+−]?[\d,]*\.?\d+(?=$|[\s%[(])/;

// Numbers by their size, words by the alphabet; what is not stated stands last.
export function sorted(rows: Row[], column: number, down: boolean): Row[] {
  const key = (row: Row) => row.cells[column]?.value || row.cells[column]?.text || "";
  const size = (text: string) => Number((NUMBER.exec(text)?.[0] ?? "x").replaceAll(",", "").replace("−", "-"));
  return [...rows].sort((first, second) => {
    const [a, b] = [key(first), key(second)];
    if (!a || !b) return Number(!a) - Number(!b);
    const numbers = Number.isFinite(size(a)) && Number.isFinite(size(b));
    return (numbers ? size(a) - size(b) : a.localeCompare(b)) * (down ? -1 : 1);
  });
}
