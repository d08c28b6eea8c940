import * as api from "../api";
import { useLoaded } from "../hooks";
import { SortedTable } from "../parts/SortedTable";
import { Wrong } from "../parts/Wrong";
import { plain } from "../plain";
import type { Tongue } from "../words";

// The published figures of this version: the same as in the documentation, made from its scores.
export function Scoreboard({ speak }: { speak: Tongue }) {
  const { words } = speak;
  const { found, wrong } = useLoaded(api.scoreboard);
  if (wrong) return <Wrong text={wrong} />;
  const [, ...blocks] = found ?? []; // the first is the heading
  return (
    <section aria-label={words.scoreboard} className="scoreboard">
      <h1>{words.scoreboard}</h1>
      {blocks.map((block, index) => (
        <Block key={index} block={block} name={heading(blocks, index)} />
      ))}
    </section>
  );
}

// The heading that a block stands under.
function heading(blocks: api.Block[], index: number): string {
  return blocks.slice(0, index).findLast((one) => one.heading)?.heading ?? "";
}

function Block({ block, name }: { block: api.Block; name: string }) {
  if (block.heading) return block.level === 2 ? <h2>{plain(block.heading)}</h2> : <h3>{plain(block.heading)}</h3>;
  if (block.text) return <p className="small">{plain(block.text)}</p>;
  if (block.list)
    return (
      <ul className="small">
        {block.list.map((line) => (
          <li key={line}>{plain(line)}</li>
        ))}
      </ul>
    );
  const rows = (block.rows ?? []).map((cells) => ({ cells: cells.map((text) => ({ text })) }));
  return <SortedTable name={name} head={block.head ?? []} rows={rows} />;
}
