/** The settings page, in English. */
export const SETTINGS = {} as const
