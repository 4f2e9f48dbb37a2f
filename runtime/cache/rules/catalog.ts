/** Renders the response of `GET /catalog`, and checks the body of `POST /pins`: the format all clients of such a cache read, with fields of our own. */
import type { CatalogFields } from '#engine/catalog/rules/catalog-fields.ts'
import { fileUrl } from '#engine/catalog/rules/dropped-file.ts'
import { MAX_CAPTURED } from '#engine/catalog/rules/captured-machine.ts'
import { z } from 'zod'

export interface ShownImage {
  readonly entry: CatalogFields
  /** Empty: it is no dropped file. */
  readonly fileName: string
  readonly state: string
  readonly error: string | null
  readonly isPinned: boolean
  readonly lookedAt: string | null
  readonly movedAt: string | null
  readonly addedAt: string | null
  readonly bytesDone: number | null
  /** Bytes a second. */
  readonly rate: number | null
}

/** Complete images only, as in the deployed service; `all`: the others too, with their state. */
export function renderCatalog(shown: readonly ShownImage[], baseUrl: string, all: boolean) {
  const entries = shown
    .filter(({ state }) => all || state === 'ready')
    .map((one) => ({
      ...renderEntry(one, baseUrl),
      ...present({ upstream_moved_at: one.movedAt, added_at: one.addedAt }),
      ...(all ? renderState(one) : {}),
    }))
  // That service says "none" with empty texts.
  return { url: '', env_url: '', fetched_at: '', last_error: '', entries }
}

/** Fields without a value are left out. */
export function renderEntry(
  { entry, fileName }: Pick<ShownImage, 'entry' | 'fileName'>,
  baseUrl: string,
) {
  const resolved = fileName === '' ? entry.resolved_src : fileUrl(baseUrl, fileName)
  return present({ ...entry, resolved_src: resolved })
}

/** `lookedAt` changes often: clients that wait for news must not wake for it. */
const renderState = ({ state, error, isPinned, bytesDone, rate, lookedAt }: ShownImage) =>
  present({
    state,
    error,
    pinned: isPinned,
    bytes_done: bytesDone,
    bytes_per_second: rate,
    upstream_looked_at: lookedAt,
  })

const present = (fields: object): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))

const MAX_REFS = 10_000

export const PinsSchema = z
  .strictObject({
    /** Name or address of the server; its report replaces the one before. */
    holder: z.string().min(1).max(200),
    refs: z
      .array(z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits'))
      .max(MAX_REFS),
    /** Machines by ref; null: the server does not say. */
    machines: z
      .array(z.int().min(0))
      .nullish()
      .transform((counts) => counts ?? null),
    /** The machines whose capture was ordered, with their labels. */
    captured: z
      .array(z.object({ mac: z.string().max(40), labels: z.array(z.string().max(200)).max(200) }))
      .max(MAX_CAPTURED)
      .default([]),
  })
  .refine(({ refs, machines }) => machines === null || machines.length === refs.length, {
    path: ['machines'],
    message: 'must have one number for each of refs',
  })
