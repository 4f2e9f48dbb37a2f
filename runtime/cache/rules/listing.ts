/** What `GET /catalog?all` of a cache says, read by its own command line. */
import { z } from 'zod'
import { renderSize } from '../../core/foundation/size.ts'

const LISTED = z
  .object({
    name: z.string().catch(''),
    state: z.string().catch('ready'),
    error: z.string().nullable().catch(null),
    size_bytes: z.number().nullable().catch(null),
    /** Null: nothing is being downloaded. */
    bytes_done: z.number().nullable().catch(null),
    sha256: z.string().nullable().catch(null),
  })
  .transform(({ size_bytes, bytes_done, ...image }) => ({
    ...image,
    sizeBytes: size_bytes,
    bytesDone: bytes_done,
  }))

export type ListedImage = Readonly<z.infer<typeof LISTED>>

const LISTING = z.object({ entries: z.array(LISTED) }).catch({ entries: [] })

export const parseListing = (answer: unknown): readonly ListedImage[] =>
  LISTING.parse(answer).entries

export const renderListed = ({ name, state, error, sizeBytes, sha256 }: ListedImage) => ({
  name,
  state: error === null ? state : `${state}: ${error}`,
  size: sizeBytes === null ? '' : renderSize(sizeBytes),
  sha256: sha256?.slice(0, 12) ?? '',
})
