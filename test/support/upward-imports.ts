/** What the plan of the house does not allow and is still there: each list may only become shorter. */

/** Imports that point up the stack. */
export const UPWARD_IMPORTS: readonly string[] = [
  'runtime/kit/web/answers/caller.ts -> runtime/fleet/state/journal.ts',
  'runtime/server/current/images/pins.ts -> runtime/cache/store/pins.ts',
]

/** Rooms that need each other. */
export const MUTUAL_ROOMS: readonly (readonly string[])[] = []
