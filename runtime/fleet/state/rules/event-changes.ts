/** The fields that a change has changed, as events record them: what was there before, and what is after. */
import { z } from 'zod'

interface FieldChange {
  readonly before: unknown
  readonly after: unknown
}

export type FieldChanges = Readonly<Record<string, FieldChange>>

type FieldValues = Readonly<Record<string, unknown>>

/** Both have the same fields; secrets must not be among them. */
export function compareFields(before: FieldValues, after: FieldValues): FieldChanges {
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(before[name] ?? null) !== JSON.stringify(value ?? null),
  )
  return Object.fromEntries(
    changed.map(([name, value]) => [name, { before: before[name] ?? null, after: value ?? null }]),
  )
}

const Recorded = z.object({
  changes: z.record(z.string(), z.object({ before: z.unknown(), after: z.unknown() })),
})

export const readChanges = (details: FieldValues | null): FieldChanges =>
  Recorded.safeParse(details).data?.changes ?? {}

export function renderValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(renderValue).join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
