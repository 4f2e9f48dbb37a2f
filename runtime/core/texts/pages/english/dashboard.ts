/** The dashboard, in English. */
export const DASHBOARD = {} as const
