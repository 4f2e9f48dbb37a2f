/** Decides which of many similar events are recorded one by one and which are only counted. */

export interface FloodWindow {
  /** Milliseconds. */
  readonly openedAt: number
  readonly noted: number
  readonly counted: number
}

export const FLOOD_WINDOW_MS = 10_000
export const FLOOD_NOTES = 3

export const isOver = (window: FloodWindow, now: number): boolean =>
  now - window.openedAt >= FLOOD_WINDOW_MS || now < window.openedAt

/** `note`: record the event. */
export function nextWindow(
  window: FloodWindow | null,
  now: number,
): { readonly note: boolean; readonly window: FloodWindow } {
  if (window === null || isOver(window, now)) {
    return { note: true, window: { openedAt: now, noted: 1, counted: 0 } }
  }
  const { openedAt, noted, counted } = window
  return noted < FLOOD_NOTES
    ? { note: true, window: { openedAt, noted: noted + 1, counted } }
    : { note: false, window: { openedAt, noted, counted: counted + 1 } }
}

/** Operators and scripts are always noted, except for logins, which anybody can try. */
export const canFlood = (kind: string, actor: string): boolean =>
  kind.startsWith('auth.') || !(actor === 'operator' || /^(token|person):/.test(actor))
