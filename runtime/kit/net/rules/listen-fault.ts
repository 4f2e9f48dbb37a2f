/** Explains why a server cannot listen, and where its address is set. */
import { Fault, hintOf, renderError } from '#kit/foundation/fault.ts'
import { describeSystemError } from '#kit/foundation/system-text.ts'

interface FailedAddress {
  readonly host: string
  readonly port: number
  /** How another address is chosen, as a sentence. */
  readonly settingHint: string
}

export function explainListening(
  cause: unknown,
  { host, port, settingHint }: FailedAddress,
): Fault {
  const where = describeSystemError(cause) === null ? ` on ${host} port ${port}` : ''
  return new Fault('busy', `cannot listen${where}: ${renderError(cause)}`, {
    cause,
    hint: [hintOf(cause), settingHint].filter(Boolean).join(' '),
  })
}
