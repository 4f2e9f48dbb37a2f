/** What every way to a machine's power offers, so that all are used alike. */
import type { Result } from '../../kit/foundation/result.ts'
import type { BootOnce, PowerPress, PowerReading, PowerTrouble } from './rules/power.ts'
import type { PowerAbilities } from './rules/power-plan.ts'

/** What a BMC answers, or why it did not work. */
export type PowerAnswer<T> = Promise<Result<T, PowerTrouble>>

/** One visit at a BMC. It is given back however it ends: sessions of BMCs are few. */
export interface PowerVisit extends AsyncDisposable {
  /** Reads the state; `unknown` where the way cannot tell. */
  readState(): PowerAnswer<PowerReading>
  /** Sends the press. That it was accepted does not say that it was done. */
  press(press: PowerPress): PowerAnswer<null>
  /** Sets what the next boot starts from, and reads it back where that is possible. */
  setBoot(boot: BootOnce): PowerAnswer<null>
}

export interface PowerDriver {
  readonly abilities: PowerAbilities
  /** Opens a visit. The trouble says why there is none. */
  open(signal: AbortSignal): PowerAnswer<PowerVisit>
}
