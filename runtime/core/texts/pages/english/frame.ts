/** What stands around and between the pages: navigation, search, tables, login, errors, in English. */
export const FRAME = {} as const
