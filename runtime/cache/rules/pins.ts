/** The body of `POST /pins`: which images a server's machines are bound to. */
import { z } from 'zod'
import { type FieldError, listFieldErrors } from '../../core/foundation/field-error.ts'
import { accept, refuse, type Result } from '../../core/foundation/result.ts'

interface PinRequest {
  /** The server's own name or address: what it says replaces what it said before. */
  readonly holder: string
  readonly refs: readonly string[]
  /** How many machines are bound to each of the refs; null: it does not say. */
  readonly machines: readonly number[] | null
}

const MAX_REFS = 10_000

const BODY = z
  .strictObject({
    holder: z.string().min(1).max(200),
    refs: z
      .array(z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits'))
      .max(MAX_REFS),
    machines: z
      .array(z.int().min(0))
      .nullish()
      .transform((counts) => counts ?? null),
  })
  .refine(({ refs, machines }) => machines === null || machines.length === refs.length, {
    path: ['machines'],
    message: 'must have one number for each of refs',
  })

export function parsePins(body: unknown): Result<PinRequest, readonly FieldError[]> {
  const checked = BODY.safeParse(body)
  return checked.success ? accept(checked.data) : refuse(listFieldErrors(checked.error))
}
