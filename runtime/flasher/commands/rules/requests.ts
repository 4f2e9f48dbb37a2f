/** Parses the arguments of flash and push, and reports what is wrong with them; says what was pushed. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { IMAGE_FORMATS, IMAGE_ENDINGS } from '#appliance/disk-images.ts'
import type { FlashOptions, FlashOrder } from '#engine/flash/rules/flash-plan.ts'
import {
  parseLocation,
  renderLocationRefusal,
  fileNameOf,
  renderSafeUrl,
  type Location,
} from '#kit/net/rules/image-location.ts'
import type { Provisioning } from '#engine/flash/rules/provisioning.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { PROVISIONING_MODES } from './commands.ts'
import type { Pushed, PushOrder } from '#engine/pack/rules/push.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration, renderExactSize } from '#kit/foundation/size.ts'
import { parseOrasTarget, renderOrasRef, type OrasRef } from '#kit/net/registry/rules/oras.ts'
import type { DocumentFields } from './exit-codes.ts'

export interface CommandRequest extends FlashOrder {
  readonly dryRun: boolean
  readonly provisioning: Provisioning
}

interface Misuse {
  readonly message: string
  readonly hint?: string
}

type FlashArguments = Pick<Arguments, 'values' | 'lists' | 'switches'>

/** Checks consent first, then flags that depend on each other. */
export function parseFlashRequest(given: FlashArguments): Result<CommandRequest, Misuse> {
  const { values, lists, switches } = given
  const dryRun = switches.has('dry-run')
  if (!dryRun && !switches.has('yes')) return refuse(NO_CONSENT)
  const provisioning = parseProvisioning(values)
  if (!provisioning.ok) return provisioning
  const image = parseImage(values)
  if (!image.ok) return image
  const targets = lists['target'] ?? []
  const clash = findClash(given, provisioning.value, targets)
  if (clash !== null) return refuse(clash)
  return accept({
    ...image.value,
    targets: targets.map((path) => ({ path })),
    mirrors: lists['mirror'] ?? [],
    dryRun,
    options: parseOptions(given),
    provisioning: provisioning.value,
  })
}

function findClash(
  { switches }: FlashArguments,
  { mode }: Provisioning,
  targets: readonly string[],
): Misuse | null {
  if (switches.has('no-verify') && switches.has('verify-all'))
    return { message: '--no-verify and --verify-all cannot be used together' }
  if (targets.length < 2) return null
  if (switches.has('delta')) return needsOneTarget('--delta')
  return mode === 'none' ? null : needsOneTarget('--provision')
}

function parseImage({
  image = '',
  format: name,
}: FlashArguments['values']): Result<
  Pick<CommandRequest, 'image' | 'format' | 'anyContent'>,
  Misuse
> {
  const location = parseLocation(image)
  if (!location.ok) return refuse({ message: renderLocationRefusal(location.refusal) })
  const format = IMAGE_FORMATS.find((known) => known === name) ?? null
  const isStdin = location.value.kind === 'stdin'
  return isStdin && format === null
    ? refuse(NO_FORMAT)
    : accept({ image, format, ...(format !== null && !isStdin ? { anyContent: true } : {}) })
}

const parseOptions = ({ values, switches }: Omit<FlashArguments, 'lists'>): FlashOptions => ({
  verify: decideVerify(switches),
  sha256: values['sha256']?.toLowerCase() ?? null,
  allowPartition: switches.has('allow-partition'),
  fixGpt: switches.has('fix-gpt'),
  indexSha256: values['index-sha256']?.toLowerCase() ?? null,
  delta: switches.has('delta'),
  grow: switches.has('grow'),
})

const NO_CONSENT: Misuse = {
  message: 'flash needs --dry-run or --yes',
  hint: '--dry-run checks everything and writes nothing; --yes overwrites the target.',
}
const NO_FORMAT: Misuse = {
  message: '--image - needs --format: standard input has no file name',
  hint: `One of: ${IMAGE_FORMATS.join(', ')}`,
}
const needsOneTarget = (flag: string): Misuse => ({
  message: `${flag} needs exactly one --target`,
  hint: 'Flash the disks one after the other.',
})

function decideVerify(switches: ReadonlySet<string>): FlashOptions['verify'] {
  if (switches.has('no-verify')) return 'none'
  return switches.has('verify-all') ? 'all' : 'data'
}

function parseProvisioning(values: Readonly<Record<string, string>>): Result<Provisioning, Misuse> {
  const mode = PROVISIONING_MODES.find((name) => name === values['provision']) ?? 'none'
  const { 'user-data': userData, 'cijoe-workflow': workflow } = values
  switch (mode) {
    case 'none':
      return accept({ mode })
    case 'cloud-init':
      return userData === undefined
        ? refuse({ message: '--provision cloud-init needs --user-data PATH' })
        : accept({ mode, userData, metaData: values['meta-data'] ?? null })
    case 'cijoe':
      return workflow === undefined
        ? refuse({ message: '--provision cijoe needs --cijoe-workflow PATH' })
        : accept({ mode, workflow, config: values['cijoe-config'] ?? null })
  }
}

const ARCH = /^[a-z0-9][a-z0-9_.-]{0,31}$/i
const MAX_NAME = 200

export function parsePushRequest({
  positionals,
  values,
}: Pick<Arguments, 'positionals' | 'values'>): Result<PushOrder, Misuse> {
  const [image = '', reference = ''] = positionals
  const location = parseLocation(image)
  if (!location.ok) return refuse({ message: renderLocationRefusal(location.refusal) })
  const ref = parseOrasTarget(reference)
  if (!ref.ok)
    return refuse({
      message: `${ref.refusal}: ${printable(renderSafeUrl(reference))}`,
      hint: 'Such as oras://registry.example/lab/debian:13.',
    })
  const labels = parseLabels(values, location.value)
  if (!labels.ok) return labels
  if (location.value.kind === 'stdin' && values['format'] === undefined)
    return refuse(PUSH_NO_FORMAT)
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
): Result<Pick<PushOrder, 'name' | 'arch'>, Misuse> {
  const name = values['name']
  const arch = values['arch'] ?? null
  if (arch !== null && !ARCH.test(arch))
    return refuse({ message: '--arch must be a word such as x86_64, amd64 or arm64' })
  if (name !== undefined) return isName(name) ? accept({ name, arch }) : refuse(BAD_NAME)
  if (location.kind === 'stdin') return refuse(PUSH_NO_FORMAT)
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

const PUSH_NO_FORMAT: Misuse = {
  message: 'an image from standard input needs --format and --name',
  hint: `Formats: ${IMAGE_FORMATS.join(', ')}`,
}
const BAD_NAME: Misuse = {
  message: '--name must be a file name without a folder, of at most 200 characters',
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
