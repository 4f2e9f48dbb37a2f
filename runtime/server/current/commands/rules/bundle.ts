/** Current line: the export bundle, `inventory.json` version 3 ("Export bundle"). */
import { DISCOVERED_MODE } from '#server/current/machines/rules/boot-mode.ts'
import { z } from 'zod'
import {
  hideSecrets,
  MAX_TEMPLATES,
  keepSecrets,
  TemplateNameSchema,
  TemplateSchema,
  type NamedTemplate,
} from '#engine/first-boot/rules/template.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import { parseExact } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  InventoryDiskSchema,
  listOwnSerials,
  MAX_DISKS,
} from '#engine/inventory/rules/inventory.ts'
import { keepHeldBack } from '#server/current/machines/rules/disarming.ts'
import { createMachine, type Machine, NameSchema } from '#server/current/machines/rules/machine.ts'

const BUNDLE_VERSION = 3

/** Hardware and name, and nothing that operators decided. */
export interface BundleMachine {
  readonly mac: Mac
  /** Not in the specification; absent: nobody gave one. */
  readonly name?: string | null | undefined
  readonly known_disks: readonly InventoryDisk[] | null
  readonly known_disks_at: string | null
  /** As lshw gave it, with its spelling of numbers. */
  readonly hw_lshw: unknown
  readonly hw_lshw_at: string | null
}

interface Bundle extends Omit<z.infer<typeof BundleSchema>, 'machines'> {
  readonly machines: readonly BundleMachine[]
}

/** `hardware` is JSON text, `at` an ISO time; null: none is known. */
export const buildBundleMachine = (
  machine: Machine,
  hardware: { readonly json: string; readonly at: string } | null,
): BundleMachine => ({
  mac: machine.mac,
  ...(machine.name === null ? {} : { name: machine.name }),
  known_disks: machine.known_disks,
  known_disks_at: machine.known_disks_at,
  hw_lshw: hardware === null ? null : (parseExact(hardware.json) ?? null),
  hw_lshw_at: hardware?.at ?? null,
})

/** Sorts the machines by MAC. `now` is an ISO time; dots stand for secrets. */
export const buildBundle = (
  machines: readonly BundleMachine[],
  {
    version,
    now,
    templates,
  }: {
    readonly version: string
    readonly now: string
    readonly templates: readonly NamedTemplate[]
  },
): Bundle => ({
  bty_export_version: BUNDLE_VERSION,
  exported_at: now,
  exported_by_bty_version: version,
  // The specification has no templates. Many people read an export, so dots stand for secrets.
  ...(templates.length === 0
    ? {}
    : {
        first_boot_templates: templates.map(({ name, template, updated_at }) => ({
          name,
          ...hideSecrets(template),
          updated_at,
        })),
      }),
  machines: machines.toSorted((a, b) => (a.mac < b.mac ? -1 : 1)),
})

export const renderBundle = (bundle: Bundle): string => `${JSON.stringify(bundle, null, 2)}\n`

/** The refusal says in words what is wrong and how to fix it. */
export function parseBundle(text: string): Result<Bundle, string> {
  const document = parseExact(text)
  if (document === undefined) return refuse('inventory.json is not JSON')
  const version = VersionSchema.safeParse(document)
  if (!version.success) return refuse('this is not an export bundle: it has no bty_export_version')
  const refusal = refuseVersion(version.data.bty_export_version)
  if (refusal !== null) return refuse(refusal)
  const parsed = BundleSchema.safeParse(document)
  if (!parsed.success) return refuse(describeIssue(parsed.error))
  return checkMachines(parsed.data)
}

/** Leaves out templates that cannot be read. Their secrets must be entered again. */
export const contentOf = ({ machines, first_boot_templates = [] }: Bundle) => ({
  machines,
  templates: first_boot_templates.flatMap((listed): readonly NamedTemplate[] => {
    const parsed = BundleTemplateSchema.safeParse(listed)
    if (!parsed.success) return []
    const { name, updated_at, ...template } = parsed.data
    return [{ name, updated_at, template: keepSecrets(template, null) }]
  }),
})

const BundleTemplateSchema = TemplateSchema.safeExtend({
  name: TemplateNameSchema,
  updated_at: z.iso.datetime(),
})

/**
 * Keeps nothing that was decided about the machine ("bundle import"). `before` is the record it
 * replaces; a disk that may be half written stays held back.
 */
export const importMachine = (
  { mac, name, known_disks, known_disks_at, hw_lshw }: BundleMachine,
  before: Machine | null,
  now: string,
): Machine => {
  const machine: Machine = {
    ...createMachine(mac, DISCOVERED_MODE, now),
    known_disks,
    known_disks_at,
    name: name || null,
    own_serials: hw_lshw === null ? [] : listOwnSerials(hw_lshw),
  }
  return before === null ? machine : keepFacts(machine, before, now)
}

/** A lock protects a disk, a UART is a fact of the board, a name is a person's: none is a binding. */
function keepFacts(machine: Machine, before: Machine, now: string): Machine {
  const { hostname, locked, serial_console } = before
  const kept = { ...machine, name: machine.name ?? before.name, hostname, locked, serial_console }
  return keepHeldBack(kept, before, now) ?? kept
}

const VersionSchema = z
  .object({ bty_export_version: z.unknown() })
  .refine((bundle) => bundle.bty_export_version !== undefined)

function refuseVersion(version: unknown): string | null {
  const way = 'Import it with a release of that time, upgrade to 0.33.2 or later, and export again.'
  switch (version) {
    case BUNDLE_VERSION:
      return null
    case 1:
      return `the bundle has version 1, from before release 0.31.0; only version 3 is read. ${way}`
    case 2:
      return `the bundle has version 2, of releases 0.31.0 to 0.33.1, with image bytes; only version 3 is read. ${way}`
    default:
      return `the bundle has version ${shown(version)}; only version 3 is read`
  }
}

/** Other releases wrote `+00:00`. */
const time = z.iso
  .datetime({ offset: true })
  .transform((at) => (at.endsWith('Z') ? at : Temporal.Instant.from(at).toString()))
  .nullable()
  .default(null)

const BundleSchema = z.object({
  bty_export_version: z.literal(BUNDLE_VERSION),
  exported_at: z.string().max(64),
  exported_by_bty_version: z.string().max(64),
  first_boot_templates: z.array(z.unknown()).max(MAX_TEMPLATES).optional().catch([]),
  machines: z.array(
    z.object({
      mac: z.string().max(32),
      // Another tool may write anything here: what is no valid name counts as none.
      name: NameSchema.optional().catch(null),
      known_disks: z.array(InventoryDiskSchema).max(MAX_DISKS).nullable().default(null),
      known_disks_at: time,
      hw_lshw: z
        .union([z.record(z.string(), z.unknown()), z.array(z.unknown()), z.null()])
        .default(null),
      hw_lshw_at: time,
    }),
  ),
})

function checkMachines(parsed: z.infer<typeof BundleSchema>): Result<Bundle, string> {
  const machines = new Map<Mac, BundleMachine>()
  for (const [at, machine] of parsed.machines.entries()) {
    const mac = parseMac(machine.mac)
    if (!mac.ok) return refuse(`machines.${at}.mac: ${shown(machine.mac)} is not a MAC address`)
    if (machines.has(mac.value)) return refuse(`machines.${at}.mac: ${mac.value} is listed twice`)
    machines.set(mac.value, { ...machine, mac: mac.value })
  }
  return accept({ ...parsed, machines: [...machines.values()] })
}

function describeIssue({ issues }: z.ZodError): string {
  const [first] = issues
  return first === undefined ? 'not an export bundle' : `${first.path.join('.')}: ${first.message}`
}

const shown = (value: unknown) => (JSON.stringify(value) ?? 'undefined').slice(0, 40)
