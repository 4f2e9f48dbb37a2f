/** The page of the live system, and of its installation, in English. */
export const NETBOOT = {} as const
