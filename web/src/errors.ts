// What went wrong, in a reader's words: neither a browser's nor a validator's.

import { Away, Refusal } from "./api";
import { Gone } from "./stream";
import type { Words } from "./words";

const SAID: Record<string, keyof Words> = {
  too_long: "tooLong",
  too_large: "tooLong",
  too_many_runs: "tooManyRuns",
  full: "full",
  stopping: "stopping",
  unknown_run: "noSuchAnswer",
  damaged_run: "noSuchAnswer",
  unknown_thread: "noSuchAnswer",
  thread_moved: "threadMoved",
  invalid: "notTaken",
  internal: "serverFailed",
  bad_upload: "badUpload",
  busy: "full",
  thread_full: "threadFull",
};
const BY_STATUS: Record<number, keyof Words> = { 401: "keyEnded", 403: "notAllowed", 404: "notThere", 408: "away", 413: "tooLong", 429: "tooOften", 500: "serverFailed" };

export function explained(error: unknown, words: Words): string {
  if (error instanceof Away || (error instanceof Gone && error.status === 0)) return words.away;
  if (error instanceof Gone) return words[BY_STATUS[error.status] ?? "noSuchAnswer"];
  if (!(error instanceof Refusal)) return words.pageFailed;
  const known = SAID[error.code] ?? BY_STATUS[error.status];
  return words[known ?? "refused"] || error.message || words.serverFailed;
}
