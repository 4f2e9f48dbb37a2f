/** Finds the address of a receiver and checks it: what is connected to is what was checked. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import { refuseOutgoing, type OutgoingRules } from './rules/outgoing-address.ts'

/** Finds the address to connect to. The refusal says in words why nothing may be sent there. */
export type FindOutgoing = (to: {
  readonly host: string
  readonly port: number
}) => Promise<Result<string, string>>

/** Resolves to every address of a name; rejects where it has none. */
type ResolveName = (host: string) => Promise<readonly { readonly address: string }[]>

const askSystem: ResolveName = (host) => lookup(host, { all: true })

/** Creates the check. `rules` is asked at each attempt, so that a changed setting counts at once. */
export function createOutgoing(
  rules: () => Omit<OutgoingRules, 'own'>,
  resolveName = askSystem,
): FindOutgoing {
  return async ({ host, port }) => {
    const found = isIP(host) === 0 ? await resolveName(host).catch(() => []) : [{ address: host }]
    const [first] = found
    if (first === undefined) return refuse('host name not found')
    const now = { ...rules(), own: listOwn() }
    // Every address that the name has must be allowed: which one is used is the resolver's choice.
    for (const { address } of found) {
      const why = refuseOutgoing({ address, port }, now)
      if (why !== null) return refuse(`nothing is sent there: ${why}`)
    }
    return accept(first.address)
  }
}

const listOwn = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address))
