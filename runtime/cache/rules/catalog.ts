/** Renders the response of `GET /catalog`, and checks the body of `POST /pins`: the format all clients of such a cache read, with fields of our own. */
import {
  type CatalogFields,
  fileUrl,
  MAX_CAPTURED,
  MAX_USERS,
} from '#engine/catalog/rules/cache-entry.ts'
import { z } from 'zod'
import { parseEach } from '#kit/foundation/shape.ts'
import { renderSize } from '#kit/foundation/size.ts'

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
    /** Of each ref, the first machines by name. */
    users: z
      .array(
        z.object({ ref: z.string().max(64), mac: z.string().max(40), name: z.string().max(200) }),
      )
      .max(MAX_USERS)
      .default([]),
  })
  .refine(({ refs, machines }) => machines === null || machines.length === refs.length, {
    path: ['machines'],
    message: 'must have one number for each of refs',
  })

// Parses `GET /catalog?all` for the cache's own command line.

const Text = z.string().nullable().catch(null)
const Count = z.number().nullable().catch(null)
const Listed = z.object({
  name: z.string().catch(''),
  src: z.string().catch(''),
  state: z.string().catch('ready'),
  error: Text,
  size_bytes: Count,
  /** Null: nothing is being downloaded. */
  bytes_done: Count,
  sha256: Text,
  upstream_moved_at: Text,
})
const Listing = z.object({ entries: z.array(z.unknown()) })

export type CacheImage = Readonly<z.infer<typeof Listed>>

/** Anything else than a listing has no images. */
export const parseListing = (answer: unknown): readonly CacheImage[] =>
  parseEach(Listed, Listing.safeParse(answer).data?.entries)

export const LIST_COLUMNS = [
  { key: 'name', least: 12, cut: 'middle', tells: true },
  { key: 'state', least: 12 },
  { key: 'size', drops: 2 },
  { key: 'sha256', drops: 1 },
] as const

/** `isExact`: the size in bytes, for programs. */
export const renderListed = (
  { name, state, error, size_bytes, sha256, upstream_moved_at: movedAt }: CacheImage,
  isExact: boolean,
) => ({
  name,
  state: [
    error === null ? state : `${state}: ${error}`,
    ...(movedAt === null ? [] : [`newer version at the source (seen ${movedAt})`]),
  ].join(', '),
  size: size_bytes === null || isExact ? size_bytes : renderSize(size_bytes),
  sha256: sha256?.slice(0, 12) ?? '',
})
