// What an answer cost, as the line below it says: nothing where no model was asked.

import type { Usage } from "./api";
import { WORDS } from "./words";

const LEAST = 0.0001; // the smallest amount that is written out

export function costParts(usage: Usage | null, words: typeof WORDS.en): string[] {
  if (!usage?.calls) return [];
  const count = (one: number) => one.toLocaleString("en");
  const cached = usage.cached_tokens ? ` (${count(usage.cached_tokens)} ${words.tokensCached})` : "";
  const read = usage.prompt_tokens + usage.scored_tokens;
  const parts = [
    `${count(usage.calls)} ${words.modelCalls}`,
    `${count(read)} ${words.tokensRead}${cached}, ${count(usage.completion_tokens)} ${words.tokensWritten}`,
  ];
  return usage.money ? [...parts, shownMoney(usage.money)] : parts;
}

// An amount that is not 0 is never written as 0.
export function shownMoney({ amount, currency }: { amount: number; currency: string }): string {
  if (amount > 0 && amount < LEAST) return `< ${LEAST} ${currency}`;
  const digits = amount < 1 ? 4 : 2;
  return `${amount.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${currency}`;
}
