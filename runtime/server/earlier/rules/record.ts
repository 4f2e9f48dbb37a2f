/** Earlier line: stores and parses a machine's record. */
import { z } from 'zod'
import { MACHINE_PROVISIONING } from '#fleet/workflow/rules/provisioning.ts'
import { decodeDeployedRow } from '#fleet/machine/rules/deployed-row.ts'
import { MacSchema } from '#kit/net/rules/mac-schema.ts'
import { BOOT_POLICIES, createMachine, WORKFLOW_STATUSES, type Machine } from './machine.ts'

const time = z.iso.datetime({ offset: true })
const maybeTime = time.nullable().catch(null)
const maybeText = z.string().nullable().catch(null)

const ArmerSchema = z
  .object({ actor: z.string(), ip: z.string().nullable(), at: time })
  .nullable()
  .catch(null)

/** What must be right is the MAC, and the policy; all else has a value that does no harm. */
const RecordSchema = z.object({
  mac: MacSchema,
  boot_policy: z.enum(BOOT_POLICIES),
  image: maybeText,
  provisioning_mode: z.enum(MACHINE_PROVISIONING).catch('none'),
  hostname: maybeText,
  cijoe_workflow_ref: maybeText,
  last_known_good: z.record(z.string(), z.unknown()).nullable().catch(null),
  discovered_at: maybeTime,
  last_seen_at: maybeTime,
  last_seen_ip: maybeText,
  last_flashed_at: maybeTime,
  last_workflow_run_at: maybeTime,
  last_workflow_status: z.enum(WORKFLOW_STATUSES).nullable().catch(null),
  last_workflow_output_path: maybeText,
  created_at: time,
  updated_at: time,
  armed_at: maybeTime,
  armed_by: ArmerSchema,
  offered_at: maybeTime,
  failure: z.object({ at: time, reason: z.string().nullable() }).nullable().catch(null),
  disk_boot: z.object({ at: time, ip: z.string() }).nullable().catch(null),
  disarmed_at: maybeTime,
  sent: z.object({ image: z.string(), at: time, armed_by: ArmerSchema }).nullable().catch(null),
})

/** Null where it cannot be a machine. */
export function parseRecord(stored: unknown): Machine | null {
  const parsed = RecordSchema.safeParse(stored)
  if (!parsed.success) return null
  const { armed_at, ...fields } = parsed.data
  return {
    ...createMachine(fields.mac, fields.boot_policy, fields.created_at),
    ...fields,
    armed_at: armed_at ?? fields.updated_at,
  }
}

/** Null where it cannot be a machine. */
export const parseDeployedRow = (row: Readonly<Record<string, unknown>>): Machine | null =>
  parseRecord(decodeDeployedRow(row))
