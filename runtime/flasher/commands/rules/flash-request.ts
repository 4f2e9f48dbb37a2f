/** Earlier line: parses the arguments of `flash`, and reports what is wrong with them. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import type { FlashOptions, FlashOrder } from '#engine/flash/rules/flash.ts'
import { parseLocation, renderLocationRefusal } from '#kit/net/rules/image-location.ts'
import type { Provisioning } from '#engine/flash/rules/provisioning.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { PROVISIONING_MODES } from './commands.ts'

export interface CommandRequest extends FlashOrder {
  readonly dryRun: boolean
  readonly provisioning: Provisioning
}

interface FlashMisuse {
  readonly message: string
  readonly hint?: string
}

type FlashArguments = Pick<Arguments, 'values' | 'lists' | 'switches'>

/** Checks consent first, then flags that depend on each other. */
export function parseFlashRequest(given: FlashArguments): Result<CommandRequest, FlashMisuse> {
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
): FlashMisuse | null {
  if (switches.has('no-verify') && switches.has('verify-all')) return VERIFY_TWICE
  if (targets.length < 2) return null
  if (switches.has('delta')) return DELTA_MANY
  return mode === 'none' ? null : PROVISION_MANY
}

function parseImage({
  image = '',
  format: name,
}: FlashArguments['values']): Result<
  Pick<CommandRequest, 'image' | 'format' | 'anyContent'>,
  FlashMisuse
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

const NO_CONSENT: FlashMisuse = {
  message: 'flash needs --dry-run or --yes',
  hint: '--dry-run checks everything and writes nothing; --yes overwrites the target.',
}
const NO_FORMAT: FlashMisuse = {
  message: '--image - needs --format: standard input has no file name',
  hint: `One of: ${IMAGE_FORMATS.join(', ')}`,
}
const DELTA_MANY: FlashMisuse = {
  message: '--delta needs exactly one --target',
  hint: 'Flash the disks one after the other.',
}
const PROVISION_MANY: FlashMisuse = {
  message: '--provision needs exactly one --target',
  hint: 'Flash the disks one after the other.',
}
const VERIFY_TWICE: FlashMisuse = {
  message: '--no-verify and --verify-all cannot be used together',
}

function decideVerify(switches: ReadonlySet<string>): FlashOptions['verify'] {
  if (switches.has('no-verify')) return 'none'
  return switches.has('verify-all') ? 'all' : 'data'
}

function parseProvisioning(
  values: Readonly<Record<string, string>>,
): Result<Provisioning, FlashMisuse> {
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
