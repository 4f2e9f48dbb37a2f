/** Parses what a tool says of an image ("Image info"). */
import type { ImageFormat } from '#appliance/disk-images.ts'
import { FORMATS } from './format.ts'
import type { ImageInfo } from './image.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

type Detail = NonNullable<ImageInfo['detail']>

interface PlannedInspection {
  readonly argv: readonly [string, ...string[]]
  parse(output: string): Result<Detail, string>
}

/** Null: no tool knows more than we do. */
export function planInspection(format: ImageFormat, path: string): PlannedInspection | null {
  const inspection = FORMATS[format].inspect?.(path)
  return inspection === undefined
    ? null
    : { argv: inspection.argv, parse: PARSERS[inspection.prints] }
}

const PARSERS = {
  text: (output: string): Result<Detail, string> => accept(output.trim()),
  object: parseObject,
} as const

function parseObject(output: string): Result<Detail, string> {
  const parsed = parseJson(output)
  if (isRecord(parsed)) return accept(parsed)
  return refuse('the tool answered with something else than a JSON object')
}
