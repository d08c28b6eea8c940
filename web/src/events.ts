// The events of a run, as the server numbers them.

// Its shape is that of its type in osler.trace.events.
export type Event = { type: string } & Record<string, any>;

export interface Heard {
  at: number; // the event's number, from 1
  event: Event;
}

export const END = /^run\.(finished|failed|cancelled)$/;
