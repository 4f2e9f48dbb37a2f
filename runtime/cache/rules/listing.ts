/** Parses `GET /catalog?all` for the cache's own command line. */
import { z } from 'zod'
import { parseEach } from '#kit/foundation/shape.ts'
import { renderSize } from '#kit/foundation/size.ts'

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
    ...(movedAt === null ? [] : [`upstream moved on (seen ${movedAt})`]),
  ].join(', '),
  size: size_bytes === null || isExact ? size_bytes : renderSize(size_bytes),
  sha256: sha256?.slice(0, 12) ?? '',
})
