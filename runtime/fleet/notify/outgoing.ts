/** Where a message goes: the addresses of a receiver, found and checked; what is connected to is what was checked. */
import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP, type TcpNetConnectOpts } from 'node:net'
import { listOwnAddresses } from '#kit/host/own-addresses.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { type DeliveryOutcome, failed } from './rules/message.ts'
import { type OutgoingRules, refuseOutgoing } from './rules/channel.ts'

/** Finds the addresses to connect to, at least one. The refusal says in words why nothing may be sent there. */
export type FindOutgoing = (to: {
  readonly host: string
  readonly port: number
}) => Promise<Result<readonly string[], string>>

/** Resolves to every address of a name; rejects where it has none. */
type ResolveName = (host: string) => Promise<readonly { readonly address: string }[]>

const askSystem: ResolveName = (host) => lookup(host, { all: true })

/** `rules` is asked at each attempt, so that a changed setting counts at once. */
export function createOutgoing(
  rules: () => Omit<OutgoingRules, 'own'>,
  resolveName = askSystem,
): FindOutgoing {
  return async ({ host, port }) => {
    const found = isIP(host) === 0 ? await resolveName(host).catch(() => []) : [{ address: host }]
    if (found.length === 0) return refuse('host name not found')
    const now = { ...rules(), own: listOwnAddresses() }
    // Every address that the name has must be allowed: any of them may be the one that answers.
    for (const { address } of found) {
      const why = refuseOutgoing({ address, port }, now)
      if (why !== null) return refuse(why)
    }
    return accept(found.map(({ address }) => address))
  }
}

/** Milliseconds after which the next address is tried, where the limit leaves it so much. */
const NEXT_ADDRESS_MS = 3000

/** To these addresses alone, in turn until one answers. The name is not looked up again. */
export function routeTo(
  { host, port }: { readonly host: string; readonly port: number },
  addresses: readonly string[],
  limitMs: number,
) {
  const all: LookupAddress[] = addresses.map((address) => ({ address, family: isIP(address) }))
  return {
    host,
    port,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.min(
      NEXT_ADDRESS_MS,
      Math.max(10, Math.floor(limitMs / (all.length + 1))),
    ),
    lookup: (_host, _options, done) => done(null, all),
  } satisfies TcpNetConnectOpts
}

export interface SendingLimits {
  readonly find: FindOutgoing
  /** PEM texts of authorities; undefined: Node's own. */
  readonly authorities: readonly string[] | undefined
  /** Milliseconds for all of it. */
  readonly limitMs: number
  readonly signal: AbortSignal
}

export const STOPPED = 'the server was stopped in the meantime'

/** The limit was over, or the server was stopped, before the name server has answered. */
export const unfound = ({
  signal,
  limitMs,
}: Pick<SendingLimits, 'signal' | 'limitMs'>): DeliveryOutcome =>
  failed(signal.aborted ? STOPPED : `the name server gave no address within ${limitMs / 1000} s`)

/** The certificate must be for the name; the address was decided before. */
export const describeTls = (
  host: string,
  authorities: SendingLimits['authorities'],
): { readonly servername?: string; readonly ca?: string[] } => ({
  ...(isIP(host) === 0 ? { servername: host } : {}),
  ...(authorities === undefined ? {} : { ca: [...authorities] }),
})

/**
 * Resolves to what the work resolves to; null: the signal came first. The work then goes on by itself,
 * and what becomes of it is nobody's business any more.
 */
export async function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>()
  const end = () => resolve(null)
  if (signal.aborted) end()
  signal.addEventListener('abort', end, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', end)
  }
}
