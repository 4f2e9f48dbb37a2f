/** What several pages show: machines, disks, runs, the next boot, in English. */
export const VIEW = {} as const
