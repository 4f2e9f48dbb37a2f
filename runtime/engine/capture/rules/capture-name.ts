/** What the captured image of a machine is called, by a template for many of them. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'
import { CaptureNameSchema } from './capture-upload.ts'

/** Unique for each machine, even where names are equal. */
export const NAME_FOR_EACH = '{name}-{mac}.img.zst'

export const isForEach = (template: string): boolean => /\{(?:name|mac)\}/.test(template)

/** For a machine without a name; its MAC address is in the image's name anyway. */
const NAMELESS = 'machine'
const MAX_NAME = 60

interface NamedMachine {
  readonly mac: Mac
  readonly name: string | null
  readonly hostname: string | null
}

/** The refusal says why the name cannot be that of a file. */
export function nameCapture(machine: NamedMachine, template: string): Result<string, string> {
  const mac = renderHyphens(machine.mac)
  const called = machine.name ?? machine.hostname ?? (template.includes('{mac}') ? NAMELESS : mac)
  const values: Readonly<Record<string, string>> = { mac, name: toFileName(called) || NAMELESS }
  const filled = template.replaceAll(/\{(name|mac)\}/g, (_, key: string) => values[key] ?? '')
  const checked = CaptureNameSchema.safeParse(filled)
  if (checked.success) return accept(filled)
  return refuse(`No image can be called ${filled}: ${checked.error.issues[0]?.message}.`)
}

const toFileName = (name: string): string =>
  name
    .replaceAll(/[^\p{L}\p{N}._-]+/gu, '-')
    .slice(0, MAX_NAME)
    .replaceAll(/^[.-]+|-+$/g, '')
