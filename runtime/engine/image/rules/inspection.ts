/** Chooses the tool that shows the details of an image, and parses its output ("Image info"). */
import { type ImageFormat, type ImageInfo } from './image.ts'
import { parseJson } from '../../../kit/foundation/json-reader.ts'
import { isRecord } from '../../../kit/foundation/shape.ts'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'

type Detail = NonNullable<ImageInfo['detail']>

interface Inspection {
  readonly argv: readonly [string, ...string[]]
  /** The tool's standard output to what is shown; the refusal is in words. */
  parse(output: string): Result<Detail, string>
}

const asText = (output: string) => accept(output.trim())

/** What xz may use on an index that claims to be huge. */
const XZ_MEMORY = '--memlimit-decompress=256MiB'

const INSPECTIONS: { readonly [Format in ImageFormat]?: (path: string) => Inspection } = {
  // --force: links are listed as well.
  'img.zst': (path) => ({ argv: ['zstd', '-l', '-f', '--', path], parse: asText }),
  'img.xz': (path) => ({ argv: ['xz', '--list', XZ_MEMORY, '--', path], parse: asText }),
  // Never without -f: a file whose format is guessed can make the tool open any other file.
  qcow2: (path) => ({
    argv: ['qemu-img', 'info', '-f', 'qcow2', '--output=json', '--', plainPath(path)],
    parse: parseObject,
  }),
}

/** Null where no tool has more to say than we know. */
export const planInspection = (format: ImageFormat, path: string): Inspection | null =>
  INSPECTIONS[format]?.(path) ?? null

/** qemu-img takes what stands before a colon for a protocol, unless a slash comes first. */
const plainPath = (path: string) => (/^[^/]*:/.test(path) ? `./${path}` : path)

function parseObject(output: string): Result<Detail, string> {
  const parsed = parseJson(output)
  if (isRecord(parsed)) return accept(parsed)
  return refuse('the tool answered with something else than a JSON object')
}
