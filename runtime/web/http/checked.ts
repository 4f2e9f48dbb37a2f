/** Bodies as their schemas say, and the same schemas as the API document spells them. */
import * as z from 'zod'
import { listFieldErrors } from '../../core/foundation/field-error.ts'
import { refuseFields } from './faults.ts'

/** The body (or query), or a 422 that names each field. */
export function checked<Value>(
  schema: z.ZodType<Value>,
  body: unknown,
  where: 'body' | 'query' = 'body',
): Value {
  const parsed = schema.safeParse(body)
  if (!parsed.success) throw refuseFields(listFieldErrors(parsed.error, where))
  return parsed.data
}

/** `input` for what is sent (a default makes a field optional), `output` for what is answered. */
export function renderSchema(
  schema: z.ZodType,
  io: 'input' | 'output',
): Readonly<Record<string, unknown>> {
  // The dialect is said once, by the document.
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io })
  return rest
}
