/** The events page and its filter, in English. */
export const EVENTS = {} as const
