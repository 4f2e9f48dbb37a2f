/** The machines: list, page, forms, questions, changes of many at once, in English. */
export const MACHINES = {} as const
