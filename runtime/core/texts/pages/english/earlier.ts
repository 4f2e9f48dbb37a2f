/** The earlier line's pages, in English. */
export const EARLIER = {} as const
