import { expect, it } from "vitest";
import { chosenFilters } from "./parts/Filter";

it("sends what was filled in, as the API takes it", () => {
  expect(chosenFilters({ since: "2020", until: "", as_of: "2024-01-31", kinds: "rct, guideline," })).toEqual({
    since: 2020,
    as_of: "2024-01-31",
    kinds: ["rct", "guideline"],
  });
  expect(chosenFilters({ since: "2020-03", until: "2024", as_of: "2024" })).toEqual({
    since: "2020-03",
    until: 2024,
    as_of: 2024,
  });
  expect(chosenFilters({})).toEqual({});
});
