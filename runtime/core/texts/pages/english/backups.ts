/** The backups page, in English. */
export const BACKUPS = {} as const
