import type { Danger } from "../api";
import { plain } from "../plain";

// Whom to call, before anything else is read. An alert is read out at once.
export function DangerNotice({ danger }: { danger: Danger | null | undefined }) {
  if (!danger) return null;
  return (
    <div className="danger" role="alert" lang={danger.language}>
      <p>{plain(danger.text)}</p>
    </div>
  );
}
