/** Parses the arguments of `push`, and says what was pushed. */
import { IMAGE_ENDINGS, IMAGE_FORMATS } from '#appliance/disk-images.ts'
import type { Pushed, PushOrder } from '#engine/pack/rules/push.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration, renderExactSize } from '#kit/foundation/size.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { parseOrasTarget, renderOrasRef, type OrasRef } from '#kit/net/registry/rules/oras.ts'
import {
  fileNameOf,
  parseLocation,
  renderLocationRefusal,
  renderSafeUrl,
  type Location,
} from '#kit/net/rules/image-location.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import type { DocumentFields } from './exit-codes.ts'

interface PushMisuse {
  readonly message: string
  readonly hint?: string
}

const ARCH = /^[a-z0-9][a-z0-9_.-]{0,31}$/i
const MAX_NAME = 200

export function parsePushRequest({
  positionals,
  values,
}: Pick<Arguments, 'positionals' | 'values'>): Result<PushOrder, PushMisuse> {
  const [image = '', reference = ''] = positionals
  const location = parseLocation(image)
  if (!location.ok) return refuse({ message: renderLocationRefusal(location.refusal) })
  const ref = parseOrasTarget(reference)
  if (!ref.ok)
    return refuse({
      message: `${ref.refusal}: ${printable(renderSafeUrl(reference))}`,
      hint: EXAMPLE,
    })
  const labels = parseLabels(values, location.value)
  if (!labels.ok) return labels
  if (location.value.kind === 'stdin' && values['format'] === undefined) return refuse(NO_FORMAT)
  return accept({
    image,
    ref: ref.value,
    ...labels.value,
    ...parsePacking(values, location.value),
  })
}

function parsePacking(
  values: Arguments['values'],
  { kind }: Location,
): Pick<PushOrder, 'format' | 'anyContent' | 'sha256' | 'level'> {
  const format = IMAGE_FORMATS.find((known) => known === values['format']) ?? null
  return {
    format,
    // Standard input has no name, so that its format has to be given.
    anyContent: format !== null && kind !== 'stdin',
    sha256: values['sha256']?.toLowerCase() ?? null,
    level: Number(values['level']),
  }
}

function parseLabels(
  values: Arguments['values'],
  location: Location,
): Result<Pick<PushOrder, 'name' | 'arch'>, PushMisuse> {
  const name = values['name']
  const arch = values['arch'] ?? null
  if (arch !== null && !ARCH.test(arch)) return refuse(BAD_ARCH)
  if (name !== undefined) return isName(name) ? accept({ name, arch }) : refuse(BAD_NAME)
  if (location.kind === 'stdin') return refuse(NO_FORMAT)
  const own = withoutEnding(fileNameOf(location))
  return accept({ name: isName(own) ? own : 'disk', arch })
}

const withoutEnding = (fileName: string): string => {
  const ending = IMAGE_ENDINGS.find((one) => fileName.toLowerCase().endsWith(one))
  return ending === undefined ? fileName : fileName.slice(0, -ending.length)
}

/** The name becomes a file name wherever the image is pulled. */
const isName = (name: string): boolean =>
  name.length <= MAX_NAME && /^[^\p{C}\p{Z}/\\.][^\p{C}\p{Zl}\p{Zp}/\\]*$/u.test(name)

const EXAMPLE = 'Such as oras://registry.example/lab/debian:13.'
const NO_FORMAT: PushMisuse = {
  message: 'an image from standard input needs --format and --name',
  hint: `Formats: ${IMAGE_FORMATS.join(', ')}`,
}
const BAD_ARCH: PushMisuse = { message: '--arch is a word such as x86_64, amd64 or arm64' }
const BAD_NAME: PushMisuse = {
  message: '--name is a file name without a folder, of at most 200 characters',
}

export const pushedFields = ({ ref }: PushOrder, pushed: Pushed): DocumentFields => ({
  reference: renderOrasRef(ref),
  pinned: pinnedOf(ref, pushed),
  manifest: pushed.manifest,
  name: pushed.name,
  format: pushed.format,
  arch: pushed.arch,
  size_bytes: pushed.sizeBytes,
  sha256: pushed.sha256,
  index_sha256: pushed.indexSha256,
  packed: pushed.isPacked,
  already_there: pushed.wasThere,
  ranges: pushed.hasRanges,
  seconds: Math.round(pushed.seconds * 1000) / 1000,
})

export function renderPushed({ ref }: PushOrder, pushed: Pushed): string {
  const did = pushed.wasThere ? 'was there already' : 'stored and verified'
  return `\
${renderOrasRef(ref)}: ${renderExactSize(pushed.sizeBytes)}, ${did}, in ${renderDuration(pushed.seconds)}
pinned        ${pinnedOf(ref, pushed)}
sha256        ${pushed.sha256}
index_sha256  ${pushed.indexSha256}
`
}

const pinnedOf = (ref: OrasRef, { manifest }: Pushed): string =>
  renderOrasRef({ ...ref, version: { kind: 'digest', digest: manifest } })
