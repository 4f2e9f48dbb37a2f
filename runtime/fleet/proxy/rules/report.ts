/** What the proxy says of itself, in a file that flasher-web reads. */
import { z } from 'zod'
import { epochOf } from '#kit/foundation/instants.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { parseEach } from '#kit/foundation/shape.ts'
import type { HeardClient } from './hearing.ts'

export const REPORT_FILE = 'report.json'
export const MAX_REPORT_BYTES = 1024 * 1024
/** A proxy that has written nothing for so long has ended. */
const ALIVE_MS = 30_000

const line = z.string().max(1000)
const client = z.object({
  mac: line,
  arch: z.int().nullable(),
  isIpxe: z.boolean(),
  address: line.nullable(),
  askedAt: z.iso.datetime(),
  file: line.nullable(),
  loaded: z.object({ file: line, at: z.iso.datetime() }).nullable(),
  failed: z.object({ file: line, why: line }).nullable(),
}) satisfies z.ZodType<HeardClient>
const network = z.object({
  name: line,
  device: line,
  address: line,
  /** Null: not asked yet. */
  answers: z
    .array(z.object({ by: line, assigns: z.boolean(), file: line.nullable() }))
    .max(20)
    .readonly()
    .nullable(),
  /** Why it could not be asked; null: it was, or will be. */
  trouble: line.nullable(),
})

const SCHEMA = z.object({
  at: z.iso.datetime(),
  /** `waiting`: there is no wish, or none of its networks is here. */
  state: z.enum(['waiting', 'answering', 'failed']),
  why: line.nullable(),
  /** Times that dnsmasq had to be started again. */
  restarts: z.int(),
  networks: z.array(network).max(16).readonly(),
  left: z
    .array(z.object({ name: line, why: line }))
    .max(16)
    .readonly(),
  missing: z
    .array(z.object({ file: line, advice: line }))
    .max(16)
    .readonly(),
  /** Null: ours; else who serves TFTP on this host. */
  tftpBy: line.nullable(),
  clients: z.unknown(),
})

export interface ProxyReport extends Omit<z.infer<typeof SCHEMA>, 'clients'> {
  readonly clients: readonly HeardClient[]
}

/** Null: none, or of a proxy that has ended. */
export function parseReport(text: string, now: Date): ProxyReport | null {
  const parsed = SCHEMA.safeParse(parseJson(text))
  if (!parsed.success || now.getTime() - epochOf(parsed.data.at) > ALIVE_MS) return null
  return { ...parsed.data, clients: parseEach(client, parsed.data.clients).slice(-100) }
}

/** Who else names a boot file in a network, in words; null: nobody was heard. */
export function describeRival({ answers }: Pick<ProxyReport['networks'][number], 'answers'>) {
  const rival = answers?.find(({ file, assigns }) => file !== null || !assigns)
  if (rival === undefined) return null
  if (!rival.assigns) return `another PXE server answers, ${rival.by}`
  return `the DHCP server ${rival.by} sends its own boot file, ${rival.file}`
}
