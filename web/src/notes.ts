import type { Event } from "./events";

// What a model wrote that may not word medicine is a note, never medicine: it is folded away.
// The same cases as in osler.trace.notes.
const FOLDED = "…";

export function splitNote(event: Event, notesOf: string[]): { bare: Event; note: string } {
  const [planner, reader] = [notesOf.includes("planner"), notesOf.includes("reader")];
  const without = (field: string, left = "") =>
    event[field] ? { bare: { ...event, [field]: left }, note: String(event[field]) } : { bare: event, note: "" };
  switch (event.type) {
    case "stack.push":
      if (event.draft && planner) return without("draft", FOLDED);
      return notesOf.includes(event.writer) ? without("text") : { bare: event, note: "" };
    case "stack.pop":
      return planner ? without("reason") : { bare: event, note: "" };
    case "model.asked": {
      const role = event.role === "helper" ? "planner" : event.role;
      return event.kind === "complete" && notesOf.includes(role) ? without("reply") : { bare: event, note: "" };
    }
    case "lf.boundary":
      return reader ? without("answer", FOLDED) : { bare: event, note: "" };
    case "lf.focus":
      return reader ? without("reason") : { bare: event, note: "" };
    case "lf.node":
      return reader && event.own_knowledge ? without("answer") : { bare: event, note: "" };
    default:
      return { bare: event, note: "" };
  }
}
