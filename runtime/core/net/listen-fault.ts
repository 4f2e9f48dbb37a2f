/** Explains why a server cannot listen, and where its address is set. */
import { Fault, hintOf, renderError } from '../foundation/fault.ts'
import { describeSystemError } from '../foundation/system-text.ts'

interface ListenPlace {
  readonly host: string
  readonly port: number
  /** Of the configuration: `server`. */
  readonly section: string
}

export function explainListening(cause: unknown, { host, port, section }: ListenPlace): Fault {
  const where = describeSystemError(cause) === null ? ` on ${host} port ${port}` : ''
  const prefix = `FLASHER_${section.toUpperCase()}`
  const setting = `Set them with ${prefix}_HOST and ${prefix}_PORT, or [${section}] host and port.`
  return new Fault('busy', `cannot listen${where}: ${renderError(cause)}`, {
    cause,
    hint: [hintOf(cause), setting].filter(Boolean).join(' '),
  })
}
