/** A body as its schema says, or a 422 that names each field. */
import type { ZodType } from 'zod'
import { listFieldErrors } from '../core/field-error.ts'
import { refuseFields } from './faults.ts'

export function checked<Value>(schema: ZodType<Value>, body: unknown): Value {
  const parsed = schema.safeParse(body)
  if (!parsed.success) throw refuseFields(listFieldErrors(parsed.error))
  return parsed.data
}
