/** What became of an order to flash, for those who wait for its end. */

/** `replaced`: the machine got another order; `disarmed`: it has none any more. */
export type RecordedOutcome = 'flashed' | 'failed' | 'deleted' | 'disarmed' | 'replaced'
