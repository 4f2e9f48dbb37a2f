/** What `GET /catalog?all` of a cache says, read by its own command line. */
import { renderSize } from '../../core/foundation/size.ts'

export interface ListedImage {
  readonly name: string
  readonly state: string
  readonly error: string | null
  readonly sizeBytes: number | null
  /** Null: nothing is being downloaded. */
  readonly bytesDone: number | null
  readonly sha256: string | null
}

export function parseListing(answer: unknown): readonly ListedImage[] {
  const entries =
    typeof answer === 'object' && answer !== null && 'entries' in answer && answer.entries
  return Array.isArray(entries) ? entries.map(parseListed) : []
}

export const renderListed = ({ name, state, error, sizeBytes, sha256 }: ListedImage) => ({
  name,
  state: error === null ? state : `${state}: ${error}`,
  size: sizeBytes === null ? '' : renderSize(sizeBytes),
  sha256: sha256?.slice(0, 12) ?? '',
})

function parseListed(entry: unknown): ListedImage {
  const fields = new Map<string, unknown>(
    typeof entry === 'object' && entry !== null ? Object.entries(entry) : [],
  )
  const text = (name: string) => {
    const value = fields.get(name)
    return typeof value === 'string' ? value : null
  }
  const number = (name: string) => {
    const value = fields.get(name)
    return typeof value === 'number' ? value : null
  }
  return {
    name: text('name') ?? '',
    state: text('state') ?? 'ready',
    error: text('error'),
    sizeBytes: number('size_bytes'),
    bytesDone: number('bytes_done'),
    sha256: text('sha256'),
  }
}
