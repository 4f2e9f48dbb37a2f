/** Earlier line: the body of `PUT /machines/{mac}` ("MachineUpsert"), and what it makes of a record. */
import { z } from 'zod'
import { MACHINE_PROVISIONING } from '#fleet/workflow/rules/provisioning.ts'
import { isBareFileName } from '#kit/foundation/file-name.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Armer } from '#engine/inventory/rules/run.ts'
import { BOOT_POLICIES, createMachine, type Machine } from './machine.ts'

/** Forms and clients send empty texts for none. */
const maybe = (text: z.ZodType<string, string>) =>
  z
    .string()
    .transform((given) => given.trim() || null)
    .pipe(text.nullable())
    .nullable()
    .default(null)

/** Drops unknown keys, as this line always did. Absent fields have defaults, whatever was there. */
export const MachineUpsertSchema = z.object({
  image: maybe(z.string().refine(isBareFileName, 'the name of a file in the image folder')),
  provisioning_mode: z.enum(MACHINE_PROVISIONING).default('none'),
  hostname: maybe(
    z
      .string()
      .max(253)
      .regex(/^[a-z0-9][\w.:-]*$/i, 'a host name or an address'),
  ),
  // An argument of a program: never an option.
  cijoe_workflow_ref: maybe(
    z
      .string()
      .max(1024)
      .regex(/^[^-\p{Cc}][^\p{Cc}]*$/u, 'the path of a workflow on the server'),
  ),
  boot_policy: z.enum(BOOT_POLICIES).default('local'),
})

type MachineUpsert = Readonly<z.infer<typeof MachineUpsertSchema>>

/** `before` null: a new machine. */
export function applyUpsert(
  before: Machine | null,
  mac: Mac,
  upsert: MachineUpsert,
  by: Armer,
): Machine {
  const machine = before ?? createMachine(mac, upsert.boot_policy, by.at)
  const next = { ...machine, ...upsert, updated_at: by.at }
  return before !== null && isSameIntent(machine, next) ? next : arm(next, by)
}

/** A new cycle makes the tokens of the one before void. */
export const arm = (machine: Machine, by: Armer): Machine => ({
  ...machine,
  armed_at: by.at,
  armed_by: by,
  offered_at: null,
  failure: null,
  disarmed_at: null,
})

const isSameIntent = (before: Machine, after: Machine): boolean =>
  before.boot_policy === after.boot_policy &&
  before.image === after.image &&
  before.provisioning_mode === after.provisioning_mode
