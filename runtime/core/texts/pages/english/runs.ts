/** The runs: list and page, in English. */
export const RUNS = {} as const
